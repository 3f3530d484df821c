package dialect

import "strings"

// finishes are the known finish reasons, in lower case, and what they mean.
var finishes = map[string]string{
	"stop": "stop", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop", "end_turn": "stop",
	"complete": "stop", "completed": "stop", "word": "stop",

	"length": "length", "max_tokens": "length", "limit": "length", "max_output_tokens": "length", "model_length": "length",

	"context_window": "context_window", "model_context_window_exceeded": "context_window",

	"tool_calls": "tool_calls", "tool_use": "tool_calls", "tool_call": "tool_calls", "function_call": "tool_calls",

	"content_filter": "content_filter", "content_filtered": "content_filter", "guardrail_intervened": "content_filter",
	"safety": "content_filter", "recitation": "content_filter", "blocklist": "content_filter", "spii": "content_filter",
	"prohibited_content": "content_filter", "image_safety": "content_filter", "language": "content_filter",

	"refusal": "refusal",

	"pause_turn": "paused", "compaction": "paused",

	"error": "error", "error_toxic": "error", "malformed_function_call": "error", "unexpected_tool_call": "error",
	"insufficient_system_resource": "error", "failed": "error", "timeout": "error",

	"abort": "abort", "cancelled": "abort",
}

// normalFinish is the common word for a server's finish reason; one that nobody
// knows stays as it is.
func normalFinish(raw string) string {
	if known, ok := finishes[strings.ToLower(raw)]; ok {
		return known
	}
	return raw
}

// nextFinish is the finish reason after a further one came, and whether that was
// one too many. A later tool_calls corrects an earlier stop; else the first holds.
func nextFinish(have, came string) (reason string, extra bool) {
	switch {
	case have == "", have == "stop" && came == "tool_calls":
		return came, false
	default:
		return have, true
	}
}
