package serve

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"fermata/internal/conf"
)

// A Script is an Engine whose answers are written down: the same times for every
// request, whatever the load. docs/serve.md describes the language. NewScript
// makes it.
type Script struct {
	text   scriptText
	counts map[string]*atomic.Int64 // of each model, the requests that may fail
}

// NewScript reads a script; file is its name in messages. The error has all
// mistakes, each with its line.
func NewScript(file string, data []byte) (*Script, error) {
	s := &Script{counts: map[string]*atomic.Int64{}}
	doc, _ := conf.Read(file, data, &s.text) // its mistakes are among those of doc.Err
	doc.Report("", s.text.problems())
	if err := doc.Err(); err != nil {
		return nil, err
	}
	for name := range s.text.Models {
		s.counts[name] = new(atomic.Int64)
	}
	return s, nil
}

// Models implements Engine: the names in the script, sorted.
func (s *Script) Models() []string { return slices.Sorted(maps.Keys(s.text.Models)) }

// Admit implements Gate: it asks for the script's key, if it has one.
func (s *Script) Admit(r *http.Request) error {
	return checkKey(r, s.text.APIKey)
}

// Answer implements Engine.
func (s *Script) Answer(_ context.Context, q *Request) (iter.Seq[Event], error) {
	for _, name := range s.text.Reject {
		if slices.Contains(q.Fields, name) {
			r := badRequest(name, "Unrecognized request argument supplied: "+name)
			r.Fault.Code = "unknown_parameter"
			return nil, r
		}
	}
	m := s.text.Models[q.Model]
	n := int64(0)
	if m.Fail != nil && q.Purpose == "" {
		n = s.counts[q.Model].Add(1)
	}
	if n > 0 && n%int64(max(1, m.Fail.Every)) == 0 {
		return m.failing(q), nil
	}
	if len(m.Steps) > 0 {
		return m.play(m.Steps, q), nil
	}
	return m.stream(q, ending{}), nil
}

// scriptText is a script as people write it.
type scriptText struct {
	APIKey string           `yaml:"api_key"` // asked of every request; empty lets all in
	Reject []string         `yaml:"reject"`  // body fields that are refused with status 400
	Models map[string]model `yaml:"models"`
}

// A model is how one model answers. The zero value sends as many tokens as are
// asked for, all at once.
type model struct {
	TTFT     time.Duration `yaml:"ttft"` // from receipt to the first token
	Gap      time.Duration `yaml:"gap"`  // between events with tokens
	Tokens   length        `yaml:"tokens"`
	PerChunk int           `yaml:"per_chunk"` // tokens an event; default 1
	Freeze   []freeze      `yaml:"freeze"`
	Text     string        `yaml:"text"` // of one token; default "tok "

	Role   *bool  `yaml:"role"`   // true: at receipt; false: none; default: with the first token
	Finish string `yaml:"finish"` // default: length where max_tokens is reached, else stop
	Done   *bool  `yaml:"done"`   // whether the end marker comes; default true

	Usage        reported `yaml:"usage"`
	PromptTokens int      `yaml:"prompt_tokens"` // reported; default the words of the prompt plus Overhead
	Overhead     int      `yaml:"overhead"`      // prompt tokens of a chat template

	Fail  *fail  `yaml:"fail"`
	Steps []step `yaml:"steps"` // the whole answer; of the rest only Fail and the prompt's tokens count then
}

// A freeze is the gap before one token instead of the usual one.
type freeze struct {
	At  int           `yaml:"at"` // token, counted from 0
	For time.Duration `yaml:"for"`
}

// A fail makes every n-th request of a model fail. Requests with the header
// x-fermata-purpose (preflight, calibration) are neither counted nor failed, so
// that a run can begin.
type fail struct {
	Every   int           `yaml:"every"`   // default 1: all
	Kind    string        `yaml:"kind"`    // default status
	Status  int           `yaml:"status"`  // of kind status (default 503) and html (default 200)
	At      time.Duration `yaml:"at"`      // of kind status and html: from receipt
	After   *int          `yaml:"after"`   // tokens sent before; default 0, for no_finish and no_done all
	Message string        `yaml:"message"` // of kind status and error
	Steps   []step        `yaml:"steps"`   // the failing answer, instead of a kind
}

// The kinds of fail.
const (
	failStatus   = "status"
	failHTML     = "html"
	failJSON     = "json"
	failSilent   = "silent"
	failMute     = "mute"
	failStall    = "stall"
	failCut      = "cut"
	failReset    = "reset"
	failError    = "error"
	failNoFinish = "no_finish"
	failNoDone   = "no_done"
)

var failKinds = []string{failStatus, failHTML, failJSON, failSilent, failMute, failStall, failCut, failReset, failError, failNoFinish, failNoDone}

// A step is one thing that is sent at one moment. Role, Text, Reasoning, Finish
// and Usage of one step make one chunk; of the others a step has one.
type step struct {
	At *time.Duration `yaml:"at"` // from receipt; absent: in one write with the step before

	Role      bool      `yaml:"role"`
	Text      string    `yaml:"text"`
	Reasoning string    `yaml:"reasoning"`
	Tokens    *int      `yaml:"tokens"` // default 1 with text or reasoning, else 0
	Finish    string    `yaml:"finish"`
	Usage     *reported `yaml:"usage"`

	Comment string `yaml:"comment"`
	Data    string `yaml:"data"`  // payload of an event
	Raw     string `yaml:"raw"`   // bytes as they are
	Error   string `yaml:"error"` // message of an error inside the stream
	Done    bool   `yaml:"done"`

	Status int    `yaml:"status"` // a whole response with this status instead of a stream
	Body   string `yaml:"body"`   // of that response; default an error object
	Type   string `yaml:"type"`   // content type of Body; default application/json

	Close Closing `yaml:"close"`
}
