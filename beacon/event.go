package beacon

import (
	"bytes"
	"fmt"
)

const (
	idDigits   = 10
	timeDigits = 19
	unknownID  = "0000000000"
	unknownNs  = "0000000000000000000"
)

// A form is an event as it goes out, in its chunk, but for the answer's number
// and the time of sending.
type form struct {
	bytes    []byte
	id, time int // where the digits stand
}

// newForm is the event of an answer, padded to size bytes.
func newForm(chat bool, size int) *form {
	write := func(pad int) []byte {
		head := `data: {"id":"beacon-` + unknownID + `","object":"%s","created":1700000000,"model":"beacon","ts":` + unknownNs + `,"pad":"%s","choices":[{"index":0,%s,"finish_reason":null}]}` + "\n\n"
		if chat {
			return fmt.Appendf(nil, head, "chat.completion.chunk", bytes.Repeat([]byte("x"), pad), `"delta":{"content":" tok"}`)
		}
		return fmt.Appendf(nil, head, "text_completion", bytes.Repeat([]byte("x"), pad), `"text":" tok","logprobs":null`)
	}
	event := write(max(0, size-len(write(0))))
	f := &form{bytes: chunk(event)}
	f.id = bytes.Index(f.bytes, []byte(unknownID))
	f.time = bytes.Index(f.bytes, []byte(unknownNs))
	return f
}

// chunk frames b for chunked transfer coding.
func chunk(b []byte) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(b), b) }

// digits writes v over b, with leading zeros.
func digits(b []byte, v int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
}

// ending is the end of an answer: the finish reason, the usage if it was asked
// for, the end marker and the last chunk, in one write.
func ending(chat, usage bool, number int64, prompt, output int) []byte {
	head := fmt.Sprintf(`{"id":%q,"object":"text_completion","created":1700000000,"model":"beacon","choices":[`, ID(number))
	last := `{"index":0,"text":"","logprobs":null,"finish_reason":"length"}]}`
	if chat {
		head = fmt.Sprintf(`{"id":%q,"object":"chat.completion.chunk","created":1700000000,"model":"beacon","choices":[`, ID(number))
		last = `{"index":0,"delta":{},"finish_reason":"length"}]}`
	}
	text := "data: " + head + last + "\n\n"
	if usage {
		text += fmt.Sprintf("data: %s],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n", head, prompt, output, prompt+output)
	}
	return append(chunk([]byte(text+"data: [DONE]\n\n")), "0\r\n\r\n"...)
}
