package spec

import (
	"os"
	"slices"
	"strings"
	"testing"
)

const two = "targets:\n- {name: a, url: 'http://h:1'}\n- {name: b, url: 'http://h:2/v1/completions', weight: 3}\nschedule: {rate: 1}\n"

func TestTargets(t *testing.T) {
	r := read(t, two)
	if len(r.Targets) != 2 || r.Among != Random || r.Targets[0].Weight != 1 || r.Targets[1].Weight != 3 || r.Targets[0].API != "chat" || r.Targets[1].API != "completions" || r.Target.API != "" {
		t.Errorf("%+v", r)
	}
	all := r.Each()
	if len(all) != 2 || all[0].PublicURL() != "http://h:1" || all[1].PublicURL() != "http://h:2/v1/completions" || all[1].Target.API != "completions" || all[1].Seed != r.Seed {
		t.Errorf("%+v", all)
	}
	if one := read(t, base).Each(); len(one) != 1 || one[0].Target.URL == "" {
		t.Errorf("%+v", one)
	}
}

func TestWrongTargets(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"name: b", "name: a", `f:3:10: targets[1].name: is "a", as that of another target`},
		{"name: a, ", "", "f:2:3: targets[0].name: must be given"},
		{"name: a", "name: ' a'", "targets[0].name: must be at most 64 bytes"},
		{"weight: 3", "weight: 0", "targets[1].weight: must be more than 0, not 0"},
		{"weight: 3", "weight: -2", "targets[1].weight: must be more than 0, not -2"},
		{"weight: 3", "weight: .inf", "targets[1].weight: must be a number"},
		{"schedule:", "target: {model: m}\nschedule:", "f:4:1: target: cannot be given together with targets"},
		{"schedule:", "interleave: turns\nschedule:", `interleave: must be random or block, not "turns"`},
		{"weight: 3}", "weight: 0.5}\ninterleave: block", "targets[1].weight: must be a whole number with interleave: block, not 0.5"},
		{"weight: 3}", "weight: 5000}\ninterleave: block", "interleave: makes blocks of 5001 requests"},
		{"url: 'http://h:1'", "url: 'h:1'", "f:2:18: targets[0].url: must begin with http:// or https://"},
		{"url: 'http://h:1'", "url: 'http://h:1', api_key_env: sk-1", "targets[0].api_key_env: must be the name of an environment variable"},
	} {
		_, err := Read("f", []byte(strings.Replace(two, c.from, c.to, 1)), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s for %s: %v; want %s", c.to, c.from, err, c.want)
		}
	}
	for file, want := range map[string]string{
		"targets: []\nschedule: {rate: 1}\n": "targets: must have at least one target",
		base + "interleave: block\n":         "interleave: is for several targets",
	} {
		if _, err := Read("f", []byte(file), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", file, err, want)
		}
	}
}

// Of every target nothing secret is saved, and each asks for its own again.
func TestNothingSecretOfTargetsIsSaved(t *testing.T) {
	r := read(t, `targets:
- {name: a, url: "https://user:hunter2@h:1/v1?api_key=hunter3", headers: {X-Api-Key: hunter5}}
- {name: b, url: "http://h:2", body: {api_key: hunter7}, headers: {Accept: hunter6}}
schedule: {rate: 1}
`)
	saved := string(r.YAML())
	if strings.Contains(saved, "hunter") || strings.Contains(saved, "user") {
		t.Errorf("saved:\n%s", saved)
	}
	if r.Targets[0].Headers["X-Api-Key"] != "hunter5" || r.Targets[1].Body["api_key"] != "hunter7" {
		t.Error("saving changed the run")
	}
	_, err := Read("run.yaml", []byte(saved), nil)
	for _, want := range []string{"targets[0].url: its password or key was removed", "targets[0].headers.X-Api-Key: its value was removed", "targets[1].headers.Accept: its value", "targets[1].body: a secret in it was removed"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if back, err := Again("run.yaml", []byte(saved), nil); err != nil || string(back.YAML()) != saved {
		t.Errorf("a saved file cannot be read again: %v", err)
	}
}

func TestDocsTargetsAreRead(t *testing.T) {
	data, err := os.ReadFile(documents)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(data), "```yaml\ntargets:")
	example, _, _ := strings.Cut(rest, "```")
	r, err := Read("docs/spec.md", []byte("targets:"+example), nil)
	if !ok || err != nil || len(r.Targets) != 2 {
		t.Errorf("%v: %v", ok, err)
	}
}

// What surrounds a placeholder is secret by itself: no message holds the value as it
// was written.
func TestSecretsAroundPlaceholders(t *testing.T) {
	r := read(t, base)
	got := r.Secrets("", map[string]string{"X-Session": "Bearer hunter2-{index}/{session}-hunter3{seed}", "X-Plain": "{seed}", "X-Whole": "hunter4"})
	for _, want := range []string{"Bearer hunter2-", "-hunter3", "hunter4"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
	if slices.Contains(got, "/") {
		t.Errorf("too short to hide: %q", got)
	}
}
