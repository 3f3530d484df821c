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
	Think    time.Duration     // pause after the turn before, where Thinks
	Thinks   bool              // Think is the row's own; else the schedule says how long
	Before   []Exchange        // of its conversation, from the first on; At leaves it to who heard the answers
	Prompt   string            // plain text
	Messages []json.RawMessage // chat messages, passed through as they are

	PromptTokens int32 // intended; 0 where nobody knows
	OutputTokens int32 // most tokens of the answer; 0 leaves it to the server

	Params map[string]any // further body fields, sent as given
}

// Decided says why a field of a request's body is nobody's to set beside the run's
// own, such as "without a stream no token has a time"; empty for all others.
func Decided(field string) string { return decided[field] }

var decided = map[string]string{
	"model":    "name it under target.model",
	"messages": "what is asked is the workload's to say",
	"prompt":   "what is asked is the workload's to say",
	"stream":   "without a stream no token has a time",
}

// limits are fields by which a row would have another length than it says.
var limits = []string{"max_tokens", "max_completion_tokens"}

// Options say what to ask. The zero value asks for 512 tokens in and 128 out.
type Options struct {
	Input        Lengths `yaml:"input"`         // intended prompt tokens of synthetic prompts; default 512
	Output       Lengths `yaml:"output"`        // tokens of an answer; default 128 for synthetic prompts, else the data set's
	Turns        int     `yaml:"turns"`         // of each conversation; default 1, requests that stand alone
	SessionShare float64 `yaml:"session_share"` // of made-up requests that are turns of conversations, the others standing alone; default 1
	Prefix       *Prefix `yaml:"prefix"`        // what a share of synthetic prompts begins with; default nothing
	Lengths      string  `yaml:"lengths"`       // preset of joint prompt and answer lengths, see Presets; instead of input and output
	Dataset      string  `yaml:"dataset"`       // file of prompts, or a trace of lengths; replaces synthetic lengths
	Format       string  `yaml:"format"`        // of the data set, see Formats; default by its content
	Once         bool    `yaml:"once"`          // stop where the data set ends instead of starting over
	SkipBad      bool    `yaml:"skip_bad"`      // count the lines of the data set that cannot be read instead of stopping at the first

	MinInput  int `yaml:"min_input"` // filters, in tokens; 0 means none
	MaxInput  int `yaml:"max_input"`
	MinOutput int `yaml:"min_output"`
	MaxOutput int `yaml:"max_output"`
	MaxTotal  int `yaml:"max_total"` // of prompt and answer together
}
