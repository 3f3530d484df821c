package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

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

// fields begins a body with what to ask, and what follows for all.
func (d openAI) fields(q *workload.Request, maxField string, ask field) []field {
	var fs []field
	if d.o.Model != "" {
		fs = append(fs, field{"model", d.o.Model})
	}
	fs = append(fs, ask, field{"stream", true})
	if !d.o.NoUsage {
		fs = append(fs, field{"stream_options", map[string]any{"include_usage": true}})
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
		for _, key := range slices.Sorted(maps.Keys(more)) {
			if i := slices.IndexFunc(fs, func(f field) bool { return f.key == key }); i >= 0 {
				fs[i].value = more[key]
			} else {
				fs = append(fs, field{key, more[key]})
			}
		}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // the prompt goes out as it is written
	write := func(v any) error {
		err := enc.Encode(v)
		buf.Truncate(len(bytes.TrimRight(buf.Bytes(), "\n"))) // Encode ends each value with a line end
		return err
	}
	buf.WriteByte('{')
	for i, f := range fs {
		if i > 0 {
			buf.WriteByte(',')
		}
		if err := write(f.key); err != nil {
			return nil, fmt.Errorf("writing the name of the body field %q: %w", f.key, err)
		}
		buf.WriteByte(':')
		if err := write(f.value); err != nil {
			return nil, fmt.Errorf("writing the body field %q: %w", f.key, err)
		}
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
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
