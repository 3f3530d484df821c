package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// How a request ended, in the truth log.
const (
	EndDone       = "done"           // everything was sent
	EndHTTPError  = "http_error"     // answered with an error status
	EndPage       = "page"           // answered with something else than a stream
	EndCut        = "cut"            // the server closed the connection in the middle
	EndReset      = "reset"          // the server reset the connection
	EndClientGone = "client_gone"    // the client left first
	EndStopped    = "server_stopped" // the server was stopped first
	EndFailed     = "server_failed"  // the server could not do what it should
)

// A Truth is a line of the truth log: what really happened to one request. Times
// are nanoseconds of the server's wall clock since 1970.
type Truth struct {
	ID           string `json:"id"` // of the completion; empty where the request was refused before one began
	Model        string `json:"model"`
	API          string `json:"api"`
	Purpose      string `json:"purpose,omitempty"` // header x-fermata-purpose: not part of a load
	ReceivedNs   int64  `json:"received_ns"`       // when the last byte of the request was read
	EndedNs      int64  `json:"ended_ns"`
	End          string `json:"end"`    // EndDone …
	Status       int    `json:"status"` // HTTP status; 0 where none was sent
	PromptTokens int    `json:"prompt_tokens"`
	Finish       string `json:"finish_reason,omitempty"`
	Events       []Sent `json:"events"` // those that brought text or tokens

	Simulated *Simulated `json:"simulated,omitempty"` // where the engine was a simulator
}

// Simulated is what a simulated system did with one request. Times are simulated
// nanoseconds since its time zero, which lies at zero_wall_ns.
type Simulated struct {
	Index            int64   `json:"index"` // in the parquet files of the truth
	Replica          int     `json:"replica"`
	ArrivalNs        int64   `json:"arrival_ns"`
	FirstScheduledNs *int64  `json:"first_scheduled_ns,omitempty"`
	FirstTokenNs     *int64  `json:"first_token_ns,omitempty"`
	EndNs            int64   `json:"end_ns"`
	Prompt           int     `json:"prompt_tokens"`
	Output           int     `json:"output_tokens"` // planned
	Session          string  `json:"session,omitempty"`
	Cached           int     `json:"cached_tokens"`
	Evictions        int     `json:"evictions"`
	ZeroWallNs       int64   `json:"zero_wall_ns"`
	TimeScale        float64 `json:"time_scale"`
}

// Sent is an event that was handed to the system without an error.
type Sent struct {
	SentNs    int64 `json:"sent_ns"`    // read just before the write
	PlannedNs int64 `json:"planned_ns"` // when it should have left
	Tokens    int   `json:"tokens"`
}

// A truthLog writes lines for many requests, each with one call of Write.
type truthLog struct {
	mu  sync.Mutex
	w   io.Writer
	err error // the first that a write gave
}

func (l *truthLog) write(t *Truth) {
	if l.w == nil {
		return
	}
	t.EndedNs = time.Now().UnixNano()
	if t.Events == nil {
		t.Events = []Sent{}
	}
	b, err := json.Marshal(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		_, err = l.w.Write(append(b, '\n'))
	}
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("writing the truth log: %w", err)
	}
}

func (l *truthLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
