package load

import (
	"testing"

	"fermata/dialect"
	"fermata/workload"
)

// A later turn of a conversation repeats what the server said, secrets that it
// repeated included: the server gets them back, the recording does not.
func TestKeptPromptHidesSecrets(t *testing.T) {
	d, err := dialect.New(dialect.Options{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	var kept kept
	r := &run{Job: Job{KeepText: true, Record: &kept}, hide: hider([]string{"sk-12345"})}
	r.keep = keeper{r}
	to := &Target{Dialect: d}
	r.furnish(to)
	f := r.enter(prepared{to: to, asked: &workload.Request{Prompt: "you said sk-12345, I said no"}})
	f.unsent()
	r.recordEnd(f)
	if want := "you said [secret], I said no"; kept.prompt != want {
		t.Errorf("kept %q, want %q", kept.prompt, want)
	}
}

// kept is a recorder of the last prompt.
type kept struct {
	unrecorded
	prompt string
}

func (k *kept) Text(_ int64, _ int32, prompt, _, _ string) error {
	k.prompt = prompt
	return nil
}
