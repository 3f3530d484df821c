package workload

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// turnsMax is the most turns of a conversation: a slip of the pen above.
const turnsMax = 1000

// An Exchange is a turn of a conversation that has been answered.
type Exchange struct {
	Prompt   string // either this or Messages is set, as in the Request
	Messages []json.RawMessage
	Answer   string // as it was streamed
}

// Chat is q as a chat: the turns before it with their answers, then its own
// messages. Those that were given go through as they are.
func (q *Request) Chat() []json.RawMessage {
	var all []json.RawMessage
	say := func(prompt string, messages []json.RawMessage) {
		if len(messages) > 0 {
			all = append(all, messages...)
		} else {
			all = append(all, spoken("user", prompt))
		}
	}
	for _, e := range q.Before {
		say(e.Prompt, e.Messages)
		all = append(all, spoken("assistant", e.Answer))
	}
	say(q.Prompt, q.Messages)
	return all
}

// Text is q as one text, as a model that only goes on with one takes it: what
// was asked and answered before, each answer right behind its prompt as the
// model wrote it, then its own prompt. ok is false where messages were given,
// which are no plain text.
func (q *Request) Text() (text string, ok bool) {
	var b strings.Builder
	for _, e := range q.Before {
		if len(e.Messages) > 0 {
			return "", false
		}
		b.WriteString(e.Prompt)
		b.WriteString(e.Answer)
		b.WriteString("\n\n")
	}
	b.WriteString(q.Prompt)
	return b.String(), q.Prompt != "" || len(q.Messages) == 0
}

// spoken is a message of a chat, its text as it is written.
func spoken(role, content string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{role, content})
	if err != nil {
		panic(err) // text always has JSON
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Conversing says that there are conversations: requests that follow the answers
// of others.
func (w *Workload) Conversing() bool {
	return w.data == nil && w.options.Turns > 1 || w.data != nil && w.data.starts != nil
}

// Conversation is where conversation number i, from 0, stands among the
// requests: its turns are first, first+1 and so on, so that a request's index is
// the number of turns in all conversations before its own, and its turn. Where
// nobody converses, each request is a conversation of one turn. False says that
// there are no more, as At does.
func (w *Workload) Conversation(i int64) (first int64, turns int, ok bool) {
	switch {
	case w.mixture != nil:
		first, n := w.mixture.arrival(i)
		return first, int(n), true
	case w.data == nil:
		turns = max(1, w.options.Turns)
		return i * int64(turns), turns, true
	case w.data.starts == nil:
		return i, 1, !w.options.Once || i < w.Rows()
	}
	n := int64(len(w.data.starts))
	k, round := int(i%n), i/n
	begin, end := w.data.span(k)
	return round*w.Rows() + int64(begin), end - begin, !w.options.Once || round == 0
}

// MeanTurns is how many turns a conversation has in the mean, a request that stands alone being one of one turn; ok is false where
// nobody converses.
func (w *Workload) MeanTurns() (turns float64, ok bool) {
	switch {
	case !w.Conversing():
		return 0, false
	case w.mixture != nil:
		return 1 + w.mixture.p*float64(w.mixture.turns-1), true
	case w.data == nil:
		return float64(w.options.Turns), true
	}
	return float64(w.data.rows()) / float64(len(w.data.starts)), true
}

// place says to which conversation a request belongs, and which turn it is.
func (w *Workload) place(q *Request) {
	if w.mixture != nil {
		arrival, turn, turns := w.mixture.place(q.ID)
		if q.Turn = int32(turn); turns > 1 {
			q.Session = strconv.FormatInt(arrival, 10)
		}
		return
	}
	if w.data == nil {
		n := int64(w.options.Turns)
		q.Session, q.Turn = strconv.FormatInt(q.ID/n, 10), int32(q.ID%n)
		return
	}
	row, round := int(q.ID%w.Rows()), q.ID/w.Rows()
	k := w.data.conversationOf(row)
	begin, _ := w.data.span(k)
	if q.Turn = int32(row - begin); w.data.parts.Len() > 0 {
		q.Session = strconv.Itoa(k)
	}
	if round > 0 && q.Session != "" { // each time through, conversations are new
		q.Session += "#" + strconv.FormatInt(round, 10)
	}
}
