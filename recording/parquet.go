package recording

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// A row group holds at most this many rows, and about this many arrivals, so
// that writing and reading take the same memory whatever the answers' length.
const (
	groupRows     = 16384
	groupArrivals = 1 << 20
)

// What all files share. Pages wait for the end of their row group in pieces of 8 KiB,
// as most columns have little.
var (
	compression = zstd.Codec{Level: zstd.SpeedFastest}
	pageBuffers = parquet.NewChunkBufferPool(8 << 10)
)

// A page is about this large before it is compressed: up to here the compressor
// takes it as one block, without a window of several MiB.
const pageSize = 128 << 10

// seriesPage is that of a page with a number a second: room for a page of every column
// is made at once.
const seriesPage = 4 << 10

// A requestRow is a row of requests.parquet; the order of the fields is that of
// the columns. docs/recording.md says what each means.
type requestRow struct {
	Index   int64  `parquet:"index,delta"`
	Session string `parquet:"session,optional,dict"`
	Turn    int32  `parquet:"turn"`
	Turns   *int32 `parquet:"turns,optional"`
	Phase   string `parquet:"phase,optional,dict"`
	Agent   string `parquet:"agent,optional,dict"`
	Target  string `parquet:"target,optional,dict"`

	Due       int64  `parquet:"due_ns,delta"`
	Sent      *int64 `parquet:"sent_ns,optional"`
	Connected *int64 `parquet:"connected_ns,optional"`
	FirstByte *int64 `parquet:"first_byte_ns,optional"`
	End       *int64 `parquet:"end_ns,optional"`

	Outcome      string `parquet:"outcome,dict"`
	FailedAt     string `parquet:"failed_at,optional,dict"`
	HTTPStatus   int32  `parquet:"http_status,optional"`
	Error        string `parquet:"error,optional,dict"`
	FinishReason string `parquet:"finish_reason,optional,dict"`
	ResponseID   string `parquet:"response_id,optional"`
	Try          int32  `parquet:"try"`

	PromptTokens    *int32 `parquet:"prompt_tokens,optional"`
	OutputTokens    *int32 `parquet:"output_tokens,optional"`
	CachedTokens    *int32 `parquet:"cached_tokens,optional"`
	ReasoningTokens *int32 `parquet:"reasoning_tokens,optional"`
	PromptIntended  *int32 `parquet:"prompt_tokens_intended,optional"`
	PromptReported  *int32 `parquet:"prompt_tokens_reported,optional"`
	PromptCounted   *int32 `parquet:"prompt_tokens_counted,optional"`
	OutputIntended  *int32 `parquet:"output_tokens_intended,optional"`
	OutputReported  *int32 `parquet:"output_tokens_reported,optional"`
	OutputCounted   *int32 `parquet:"output_tokens_counted,optional"`
	PromptSource    string `parquet:"prompt_tokens_source,optional,dict"`
	OutputSource    string `parquet:"output_tokens_source,optional,dict"`

	DeltaNs      []int64 `parquet:"delta_ns,list" parquet-element:",delta"`
	Tokens       []int32 `parquet:"tokens,list" parquet-element:",dict"`
	Read         []int32 `parquet:"read,list" parquet-element:",delta"`
	StampErrorNs []int64 `parquet:"stamp_error_ns,list" parquet-element:",delta"`
	Channel      []int8  `parquet:"channel,list" parquet-element:",dict"`
	TextBytes    []int32 `parquet:"text_bytes,list" parquet-element:",dict"`

	ServerReceived *int64 `parquet:"server_received_ns,optional"`
	ServerQueue    *int64 `parquet:"server_queue_ns,optional"`
	ServerPrefill  *int64 `parquet:"server_prefill_ns,optional"`

	Slow        *bool  `parquet:"slow,optional"`
	Check       string `parquet:"check,optional,dict"`
	CheckDetail string `parquet:"check_detail,optional"`

	ArrivalSource string   `parquet:"arrival_tokens_source,optional,dict"`
	Notes         []string `parquet:"notes,list" parquet-element:",dict"`
}

// A textRow is a row of text.parquet.
type textRow struct {
	Index     int64  `parquet:"index,delta"`
	Try       int32  `parquet:"try"`
	Prompt    string `parquet:"prompt"`
	Answer    string `parquet:"answer"`
	Reasoning string `parquet:"reasoning"`
}

func pointer[T any](m *Maybe[T]) *T {
	if !m.OK {
		return nil
	}
	return &m.V
}

// set fills the row from a trace, whose memory it shares.
func (r *requestRow) set(t *Trace) {
	*r = requestRow{
		Index: t.Index, Session: t.Session, Turn: t.Turn, Turns: pointer(&t.Turns), Phase: string(t.Phase), Agent: t.Agent, Target: t.Target,
		Due: t.Due, Sent: pointer(&t.Sent), Connected: pointer(&t.Connected), FirstByte: pointer(&t.FirstByte), End: pointer(&t.End),
		Outcome: string(t.Outcome), FailedAt: string(t.FailedAt), HTTPStatus: t.HTTPStatus, Error: t.Error,
		FinishReason: t.FinishReason, ResponseID: t.ResponseID, Try: t.Try,
		PromptTokens: pointer(&t.Prompt.Used), OutputTokens: pointer(&t.Output.Used),
		CachedTokens: pointer(&t.Cached), ReasoningTokens: pointer(&t.Reasoning),
		PromptIntended: pointer(&t.Prompt.Intended), PromptReported: pointer(&t.Prompt.Reported), PromptCounted: pointer(&t.Prompt.Counted),
		OutputIntended: pointer(&t.Output.Intended), OutputReported: pointer(&t.Output.Reported), OutputCounted: pointer(&t.Output.Counted),
		PromptSource: t.Prompt.Source, OutputSource: t.Output.Source,
		DeltaNs: t.DeltaNs, Tokens: t.Tokens, Read: t.Read, StampErrorNs: t.StampErrorNs, Channel: t.Channel, TextBytes: t.TextBytes,
		ServerReceived: pointer(&t.ServerReceived), ServerQueue: pointer(&t.ServerQueue), ServerPrefill: pointer(&t.ServerPrefill),
		Slow: pointer(&t.Slow), Check: t.Check, CheckDetail: t.CheckDetail,
		ArrivalSource: t.ArrivalSource, Notes: t.Notes,
	}
}

// makeValid makes the strings of a trace UTF-8, as Parquet promises to its
// readers: an error message may quote anything that a server sent.
func makeValid(t *Trace) {
	for _, s := range texts(t) {
		if !utf8.ValidString(*s) {
			*s = strings.ToValidUTF8(*s, "\uFFFD")
		}
	}
	for i, s := range t.Notes {
		if !utf8.ValidString(s) {
			t.Notes[i] = strings.ToValidUTF8(s, "\uFFFD")
		}
	}
}

// A parquetFile is one file being written.
type parquetFile[T any] struct {
	f    *os.File
	w    *parquet.GenericWriter[T]
	one  []T
	rows int64
}

// createParquet begins a file of row groups of at most so many rows, and of pages of
// about so many bytes.
func createParquet[T any](path string, group int64, page int) (*parquetFile[T], error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := parquet.NewGenericWriter[T](f,
		parquet.Compression(&compression),
		parquet.DefaultEncodingFor(parquet.Int64, &parquet.DeltaBinaryPacked), // tags cannot say it of pointers
		parquet.DataPageStatistics(false),
		parquet.PageBufferSize(page),
		parquet.ColumnPageBuffers(pageBuffers),
		parquet.MaxRowsPerRowGroup(group))
	return &parquetFile[T]{f: f, w: w, one: make([]T, 1)}, nil
}

func (p *parquetFile[T]) write(row *T) error {
	p.one[0] = *row
	_, err := p.w.Write(p.one)
	p.rows++
	return err
}

// close completes the file and brings it to the disk.
func (p *parquetFile[T]) close() error {
	return errors.Join(p.w.Close(), p.f.Sync(), p.f.Close())
}

// drop gives the file up.
func (p *parquetFile[T]) drop() error { return errors.Join(p.f.Close(), os.Remove(p.f.Name())) }

// A requestsWriter writes requests.parquet.
type requestsWriter struct {
	*parquetFile[requestRow]
	row      requestRow
	arrivals int64
	group    int // arrivals in this row group
	last     order
}

func createRequests(path string) (*requestsWriter, error) {
	p, err := createParquet[requestRow](path, groupRows, pageSize)
	if err != nil {
		return nil, err
	}
	return &requestsWriter{parquetFile: p}, nil
}

func (w *requestsWriter) add(t *Trace) error {
	at := order{t.Due, t.Index, t.Try}
	if w.rows > 0 && at.compare(w.last) < 0 {
		return fmt.Errorf("request %d, due at %d ns, comes after request %d, due at %d ns: traces are written in order of due time, index and try",
			t.Index, t.Due, w.last.index, w.last.due)
	}
	if w.group > 0 && w.group+t.Len() > groupArrivals {
		if err := w.w.Flush(); err != nil {
			return err
		}
		w.group = 0
	}
	w.row.set(t)
	w.last, w.group, w.arrivals = at, w.group+t.Len(), w.arrivals+int64(t.Len())
	return w.write(&w.row)
}

// finish writes what the recording says about itself, and the file's end.
func (w *requestsWriter) finish(m Meta) error {
	pairs, err := m.pairs()
	if err != nil {
		return err
	}
	pairs = append(pairs, [2]string{keyRows, strconv.FormatInt(w.rows, 10)}, [2]string{keyArrivals, strconv.FormatInt(w.arrivals, 10)})
	for _, p := range pairs {
		w.w.SetKeyValueMetadata(p[0], strings.ToValidUTF8(p[1], "\uFFFD"))
	}
	return w.close()
}

// The keys of the metadata of requests.parquet.
const (
	keySchema      = "fermata.schema"
	keyRun         = "fermata.run"
	keyTool        = "fermata.tool"
	keyZero        = "fermata.zero_wall_ns"
	keyScale       = "fermata.time_scale"
	keyLabels      = "fermata.labels"
	keyWindow      = "fermata.window"
	keyInterrupted = "fermata.interrupted"
	keyDataSet     = "fermata.dataset"
	keySimulation  = "fermata.simulation"
	keyRows        = "fermata.rows"
	keyArrivals    = "fermata.arrivals"
)

// A window is the JSON of fermata.window.
type window struct {
	Start *int64 `json:"start_ns,omitempty"`
	End   *int64 `json:"end_ns,omitempty"`
	Why   string `json:"why,omitempty"`
}

// pairs are the key-value metadata; what is absent has no key.
func (m Meta) pairs() ([][2]string, error) {
	pairs := [][2]string{{keySchema, cmp.Or(m.Schema, SchemaName)}}
	add := func(name, value string) {
		if value != "" {
			pairs = append(pairs, [2]string{name, value})
		}
	}
	add(keyRun, m.RunYAML)
	add(keyTool, m.Tool)
	if m.ZeroWallNs.OK {
		add(keyZero, strconv.FormatInt(m.ZeroWallNs.V, 10))
	}
	scale := m.TimeScale
	if !(scale > 0) {
		scale = 1
	}
	add(keyScale, strconv.FormatFloat(scale, 'g', -1, 64))
	if len(m.Labels) > 0 {
		b, err := json.Marshal(m.Labels)
		if err != nil {
			return nil, err
		}
		add(keyLabels, string(b))
	}
	if m.WindowStart.OK || m.WindowEnd.OK || m.WindowWhy != "" {
		b, err := json.Marshal(window{pointer(&m.WindowStart), pointer(&m.WindowEnd), m.WindowWhy})
		if err != nil {
			return nil, err
		}
		add(keyWindow, string(b))
	}
	add(keyInterrupted, m.Interrupted)
	add(keyDataSet, m.DataSet)
	add(keySimulation, m.Simulation)
	return pairs, nil
}

// WriteParquet writes a requests.parquet, for importers and tests. The traces
// come in order of due time, index and try, each with lists of one length. The
// file appears under its name once it is whole.
func WriteParquet(path string, meta Meta, traces iter.Seq[Trace]) error {
	return WriteTraces(path, traces, func() Meta { return meta })
}

// WriteTraces is WriteParquet for who knows what to say about the recording only
// once it is over: meta is asked after the last trace.
func WriteTraces(path string, traces iter.Seq[Trace], meta func() Meta) error {
	err := writeParquet(path, meta, traces)
	if err != nil {
		return fmt.Errorf("recording: writing %s: %w", path, err)
	}
	return nil
}

func writeParquet(path string, meta func() Meta, traces iter.Seq[Trace]) error {
	w, err := createRequests(path + ".tmp")
	if err != nil {
		return err
	}
	for t := range traces {
		if err = checkLists(&t); err != nil {
			break
		}
		makeValid(&t)
		if err = w.add(&t); err != nil {
			break
		}
	}
	if err == nil {
		err = w.finish(meta())
	}
	if err != nil {
		return errors.Join(err, ignoreClosed(w.drop()))
	}
	return os.Rename(path+".tmp", path)
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
