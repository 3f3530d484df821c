package schedule

import (
	"cmp"
	"slices"

	"fermata/internal/packed"
)

// A table keeps given times and what stands beside them in a few bytes a row: a
// week of a large service has tens of millions.
type table struct {
	due, prompt, output packed.Column
	sessions            packed.Texts // from the first row that has one; none where no row has
	sized               bool         // some row has a length
	order               []int32      // of rows by time; nil where they stand in that order
}

func (t *table) rows() int { return t.due.Len() }

func (t *table) add(a Arrival) {
	if a.Session != "" {
		for t.sessions.Len() < t.rows() {
			t.sessions.Add("")
		}
	}
	if a.Session != "" || t.sessions.Len() > 0 {
		t.sessions.Add(a.Session)
	}
	t.sized = t.sized || a.PromptTokens > 0 || a.OutputTokens > 0
	t.due.Add(a.Due)
	t.prompt.Add(int64(a.PromptTokens))
	t.output.Add(int64(a.OutputTokens))
}

// sort puts rows in the order of their times, equal times as they came.
func (t *table) sort() {
	reader := t.due.Reader()
	sorted := true
	for i := 1; i < t.rows() && sorted; i++ {
		sorted = reader.At(i-1) <= reader.At(i)
	}
	if sorted {
		return
	}
	due := make([]int64, t.rows()) // looked at often
	t.order = make([]int32, t.rows())
	for i := range t.order {
		due[i], t.order[i] = reader.At(i), int32(i)
	}
	slices.SortStableFunc(t.order, func(a, b int32) int { return cmp.Compare(due[a], due[b]) })
}

// given are the rows in the order of their times.
func (t *table) given() Rows {
	due, prompt, output := t.due.Reader(), t.prompt.Reader(), t.output.Reader()
	return Rows{N: t.rows(), Sized: t.sized, At: func(i int) Arrival {
		if t.order != nil {
			i = int(t.order[i])
		}
		a := Arrival{Due: due.At(i), PromptTokens: int32(prompt.At(i)), OutputTokens: int32(output.At(i))}
		if t.sessions.Len() > 0 {
			a.Session = t.sessions.At(i)
		}
		return a
	}}
}
