package dialect

import "fermata/workload"

// chat is OpenAI's Chat Completions, as nearly all servers speak it.
type chat struct{ openAI }

// Path implements Dialect.
func (chat) Path() string { return "/v1/chat/completions" }

// Body implements Dialect.
func (d chat) Body(q *workload.Request) ([]byte, error) {
	ask := field{"messages", q.Chat()}
	maxField := "max_tokens"
	if d.o.NewMaxField {
		maxField = "max_completion_tokens"
	}
	var room usual
	return d.body(d.fields(room[:0], q, maxField, ask), q)
}
