// Package workload says what to ask: prompts, their lengths and the lengths of
// their answers, all from one seed.
package workload

import (
	"encoding/json"
	"time"
)

// A Request is one thing to ask. Either Prompt or Messages is set.
type Request struct {
	ID       int64 // position in the workload: the same for the same seed
	Session  string
	Turn     int32
	Think    time.Duration     // pause after the turn before
	Prompt   string            // plain text
	Messages []json.RawMessage // chat messages, passed through as they are

	PromptTokens int32 // intended; 0 where nobody knows
	OutputTokens int32 // most tokens of the answer; 0 leaves it to the server

	Params map[string]any // further body fields, sent as given
	Tags   map[string]string
}

// Options say what to ask. The zero value asks for 512 tokens in and 128 out.
type Options struct {
	Input   int    `yaml:"input"`   // intended prompt tokens of synthetic prompts; default 512
	Output  int    `yaml:"output"`  // tokens of an answer; default 128 for synthetic prompts, else the data set's
	Dataset string `yaml:"dataset"` // JSONL file of prompts or messages; replaces synthetic prompts
	Once    bool   `yaml:"once"`    // stop where the data set ends instead of starting over
}
