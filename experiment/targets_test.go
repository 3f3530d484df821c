package experiment

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/recording"
	"fermata/serve"
	"fermata/spec"
)

// guarded serves a script that asks for a key, which it repeats where it fails.
func guarded(t testing.TB, key, model string) string {
	t.Helper()
	engine, err := serve.NewScript("test.yaml", []byte(fmt.Sprintf("{api_key: %s, models: {m: %s}}", key, model)))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(serve.New(engine, serve.Options{}).Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// asking runs a run file in a folder of its own.
func asking(t testing.TB, file string, env map[string]string) (*Done, []string, error) {
	t.Helper()
	s, err := spec.Read("run.yaml", []byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	done, err := Run(t.Context(), s, Options{
		Out: filepath.Join(t.TempDir(), "run"), Version: "test", Getenv: func(name string) string { return env[name] },
		Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) },
	})
	return done, said, err
}

// Two servers with keys of their own share one load by blocks. Each counts tokens
// in its own way, so each is sent prompts of other lengths; and each is judged by
// itself.
func TestTwoTargets(t *testing.T) {
	t.Parallel()
	const keyA, keyB = "sk-aaa-zqxvwk-secret", "sk-bbb-jgyzqh-secret"
	a := guarded(t, keyA, "{ttft: 2ms, gap: 1ms, tokens: max}")
	b := guarded(t, keyB, "{ttft: 80ms, gap: 1ms, tokens: max, overhead: 40, fail: {every: 5, message: "+keyB+"}}")
	done, said, err := asking(t, fmt.Sprintf(`
targets:
- {name: quick, url: %q, api_key_env: KEY_A}
- {name: slow, url: %q, model: m, api_key_env: KEY_B, weight: 3}
interleave: block
workload: {input: 100, output: 4}
schedule: {concurrency: 4, requests: 40, warmup: "0", drain: quiet}
slo: ["ttft<=60ms @50%%"]
seed: 4
`, a, b), map[string]string{"KEY_A": keyA, "KEY_B": keyB})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(strings.Join(said, "\n"), "what the servers say of themselves is not recorded") != 1 {
		t.Errorf("that no server is asked for its figures must be said once: %q", said)
	}
	r := done.Result
	quick, slow := r.Targets["quick"], r.Targets["slow"]
	if len(r.Targets) != 2 || quick.Outcomes["ok"] != 10 || slow.Outcomes["ok"] != 24 || slow.Outcomes["http_error"] != 6 || r.Outcomes["ok"] != 34 {
		t.Errorf("%v: quick %v, slow %v", r.Outcomes, quick.Outcomes, slow.Outcomes)
	}
	if int64(*slow.Metrics.TTFTDue.Min) < 80e6 || quick.Metrics.TTFTDue.N != 10 || slow.SLO[0].Verdict == "met" {
		t.Errorf("quick %+v, slow %+v, %v", quick.Metrics.TTFTDue, slow.Metrics.TTFTDue, slow.SLO)
	}
	for name, target := range r.Targets { // all prompts have the length that was asked for, by each server's own count
		if p := target.Metrics.PromptTokens; int64(*p.Min) != 100 || int64(*p.Max) != 100 {
			t.Errorf("%s: prompts of %v to %v tokens", name, *p.Min, *p.Max)
		}
	}
	if r.Run.Model != "m" || r.Run.Target != "quick "+a+", slow "+b || r.Run.Labels["quick.server.owner"] == "" {
		t.Errorf("%+v", r.Run)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "quick: prompts of 100 tokens have 100 words") || !strings.Contains(text, "slow: prompts of 100 tokens have 60 words") {
		t.Errorf("it said:\n%s", text)
	}
	rows := map[string]int{}
	rec, err := recording.Open(done.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	hid := false
	for tr := range rec.Traces(0) {
		rows[tr.Target]++
		hid = hid || strings.Contains(tr.Error, "[secret]")
	}
	if rows["quick"] != 10 || rows["slow"] != 30 || len(rows) != 2 || !hid {
		t.Errorf("rows %v; a secret was hidden: %v", rows, hid)
	}
	again, err := Judge(done.Dir, nil, "test")
	if err != nil || again.Targets["slow"].Outcomes["ok"] != 24 {
		t.Errorf("judged again: %+v (%v)", again.Targets, err)
	}
	err = fs.WalkDir(os.DirFS(done.Dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(done.Dir, path))
		for _, part := range []string{"zqxvwk", "jgyzqh"} {
			if bytes.Contains(data, []byte(part)) {
				t.Errorf("%s holds a key", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// What is wrong with one of several is said of that one, before anything is sent
// to be measured.
func TestOneOfTwoTargetsFails(t *testing.T) {
	t.Parallel()
	a := guarded(t, "sk-aaa", "{}")
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"A": "sk-aaa", "B": "sk-other"}, "target second: " + a},
		{map[string]string{"A": "sk-aaa"}, "target second: target.api_key_env: the environment variable B is not set"},
	} {
		_, _, err := asking(t, fmt.Sprintf(`
targets:
- {name: first, url: %q, model: m, api_key_env: A}
- {name: second, url: %[1]q, model: m, api_key_env: B}
schedule: {rate: 10, requests: 2}
`, a), c.env)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "sk-") {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
}

// One target of a list is a run of one.
func TestOneTarget(t *testing.T) {
	t.Parallel()
	at := guarded(t, "sk-aaa", "{ttft: 2ms, tokens: max}")
	done, _, err := asking(t, fmt.Sprintf("targets: [{name: one, url: %q, api_key_env: A}]\nworkload: {input: 8, output: 2}\nschedule: {kind: all, requests: 3}\n", at), map[string]string{"A": "sk-aaa"})
	if err != nil {
		t.Fatal(err)
	}
	r := done.Result
	if len(r.Targets) != 1 || r.Outcomes["ok"] != 3 || r.Targets["one"].Outcomes["ok"] != 3 || r.Run.Target != "one "+at {
		t.Errorf("%v, %+v, %+v", r.Outcomes, r.Targets, r.Run)
	}
}
