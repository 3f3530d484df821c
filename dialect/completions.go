package dialect

import (
	"errors"

	"fermata/workload"
)

// completions is OpenAI's older interface: plain text in, plain text out. It has
// no max_completion_tokens, so that Options.NewMaxField changes nothing.
type completions struct{ openAI }

// Path implements Dialect.
func (completions) Path() string { return "/v1/completions" }

// Body implements Dialect.
func (d completions) Body(q *workload.Request) ([]byte, error) {
	_, given := d.o.Body["prompt"]
	_, own := q.Params["prompt"]
	text, ok := q.Text()
	if !ok && !given && !own {
		return nil, errors.New("writing a completions request: it has messages but no prompt; messages need api: chat")
	}
	var room usual
	return d.body(d.fields(room[:0], q, "max_tokens", field{"prompt", text}), q)
}
