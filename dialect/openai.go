package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"fermata/workload"
)

// New is the dialect that o asks for.
func New(o Options) (Dialect, error) {
	switch o.API {
	case "", "chat":
		return chat{openAI{o}}, nil
	case "completions":
		return completions{openAI{o}}, nil
	}
	return nil, fmt.Errorf("choosing the dialect: api %q is not known; known are chat and completions", o.API)
}

// openAI is what chat and completions have in common.
type openAI struct{ o Options }

// NewDecoder implements Dialect.
func (d openAI) NewDecoder() Decoder { return &decoder{} }

// A field is a member of a request's body.
type field struct {
	key   string
	value any
}

// withUsage are stream options; one of them for all bodies.
var withUsage any = json.RawMessage(`{"include_usage":true}`)

// usual is room for the fields of most bodies. A caller has it, so that it is no garbage.
type usual [8]field

// fields begins a body, in fs, with what to ask, and what follows for all.
func (d openAI) fields(fs []field, q *workload.Request, maxField string, ask field) []field {
	if d.o.Model != "" {
		fs = append(fs, field{"model", d.o.Model})
	}
	fs = append(fs, ask, field{"stream", true})
	if !d.o.NoUsage {
		fs = append(fs, field{"stream_options", withUsage})
	}
	if q.OutputTokens > 0 {
		fs = append(fs, field{maxField, q.OutputTokens})
	}
	if d.o.IgnoreEOS {
		fs = append(fs, field{"ignore_eos", true})
		if q.OutputTokens > 0 {
			fs = append(fs, field{"min_tokens", q.OutputTokens})
		}
	}
	return fs
}

// body writes the fields, then the options' and the request's own, which replace
// those of the same name. The same request gives the same bytes.
func (d openAI) body(fs []field, q *workload.Request) ([]byte, error) {
	for _, more := range []map[string]any{d.o.Body, q.Params} {
		if len(more) == 0 {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(more)) {
			if i := slices.IndexFunc(fs, func(f field) bool { return f.key == key }); i >= 0 {
				fs[i].value = more[key]
			} else {
				fs = append(fs, field{key, more[key]})
			}
		}
	}
	p := pens.Get().(*pen)
	defer pens.Put(p)
	p.buf.Reset()
	p.buf.WriteByte('{')
	for i, f := range fs {
		if i > 0 {
			p.buf.WriteByte(',')
		}
		if err := p.write(f.key); err != nil {
			return nil, fmt.Errorf("writing the name of the body field %q: %w", f.key, err)
		}
		p.buf.WriteByte(':')
		if err := p.write(f.value); err != nil {
			return nil, fmt.Errorf("writing the body field %q: %w", f.key, err)
		}
	}
	p.buf.WriteByte('}')
	return bytes.Clone(p.buf.Bytes()), nil // no longer than it must be: many stand ready at once
}

// A pen writes bodies, one after the other.
type pen struct {
	buf bytes.Buffer
	enc *json.Encoder
}

var pens = sync.Pool{New: func() any {
	p := &pen{}
	p.enc = json.NewEncoder(&p.buf)
	p.enc.SetEscapeHTML(false) // the prompt goes out as it is written
	return p
}}

// write writes a value as JSON.
func (p *pen) write(v any) error {
	err := p.enc.Encode(v)
	p.buf.Truncate(len(bytes.TrimRight(p.buf.Bytes(), "\n"))) // Encode ends each value with a line end
	return err
}

// Whole implements Dialect.
func (openAI) Whole(status int, body []byte) *Answer {
	var d decoder
	body = bytes.TrimSpace(body)
	good := status >= 200 && status < 300
	switch c, err := parse(body); {
	case len(body) == 0:
	case err == nil:
		d.take(&c)
		if !good && d.a.Error == "" {
			d.a.Error = shorten(string(body), 200)
		}
	case errorInList(body) != "":
		d.a.Error = errorInList(body)
	case good:
		d.a.Bad = bodyMessage(body)
	default:
		d.a.Error = bodyMessage(body)
	}
	return &d.a
}
