package spec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/internal/conf"
)

func TestEndpoint(t *testing.T) {
	const chat, completions, models, about = "/v1/chat/completions", "/v1/completions", "/v1/models", "/version"
	for _, c := range []struct{ url, path, want string }{
		{"http://h:1", chat, "http://h:1/v1/chat/completions"},
		{"http://h:1/", completions, "http://h:1/v1/completions"},
		{"HTTP://h:1/v1", chat, "http://h:1/v1/chat/completions"},
		{"http://h:1/v1/", models, "http://h:1/v1/models"},
		{"http://h:1/v1", about, "http://h:1/version"},
		{"https://h/openai/v1/chat/completions", chat, "https://h/openai/v1/chat/completions"},
		{"https://h/openai/v1/chat/completions", models, "https://h/openai/v1/models"},
		{"https://h/openai/v1/chat/completions", about, "https://h/openai/version"},
		{"https://h/v1/completions/", completions, "https://h/v1/completions"},
		{"https://h/proxy", chat, "https://h/proxy/v1/chat/completions"},
		{"https://h/api/v3", chat, "https://h/api/v3/chat/completions"},
		{"https://h/v1beta/openai/chat/completions", models, "https://h/v1beta/openai/models"},
		{"https://h/d/m/chat/completions?api-version=2", chat, "https://h/d/m/chat/completions?api-version=2"},
		{"http://[::1]:8000/v1", chat, "http://[::1]:8000/v1/chat/completions"},
	} {
		r := &Run{Target: Target{URL: c.url}}
		if got, err := r.Endpoint(c.path); err != nil || got != c.want {
			t.Errorf("%s of %s is %s (%v), not %s", c.path, c.url, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "h:1", "127.0.0.1:8000", "ftp://h", "http://", "http://h#x", "http://h:99999999x"} {
		r := &Run{Target: Target{URL: bad}}
		if got, err := r.Endpoint(chat); err == nil || !strings.HasPrefix(err.Error(), "target.url: ") {
			t.Errorf("%q is %q (%v)", bad, got, err)
		}
	}
}

const secretive = `
target:
  url: https://user:hunter2@h:1/v1?api_key=hunter3&version=7&access_token=hunter4
  headers: {X-Api-Key: hunter5, Accept: hunter6}
  headers_env: {X-Team: TEAM}
  api_key_env: KEY
  body: {api_key: hunter7, deep: [{password: hunter8}], max_tokens: 5, prompt_cache_key: kept}
schedule: {rate: 1}
connect: {proxy: "http://user:hunter9@proxy:3128"}
record: {scrape: "https://user:hunter10@h:9/metrics?token=hunter11"}
`

func TestNothingSecretIsSaved(t *testing.T) {
	r := read(t, secretive)
	saved := string(r.YAML())
	for _, text := range []string{"hunter", "user"} {
		if strings.Contains(saved, text) {
			t.Errorf("%s is in\n%s", text, saved)
		}
	}
	for _, text := range []string{"https://REMOVED@h:1/v1?", "version=7", "Accept: REMOVED", "api_key_env: KEY", "X-Team: TEAM", "max_tokens: 5", "prompt_cache_key: kept", "http://REMOVED@proxy:3128", "https://REMOVED@h:9/metrics?"} {
		if !strings.Contains(saved, text) {
			t.Errorf("%s is not in\n%s", text, saved)
		}
	}
	if r.Target.Headers["Accept"] != "hunter6" {
		t.Error("saving changed the run")
	}
	_, err := Read("run.yaml", []byte(saved), nil)
	for _, text := range []string{"target.url: its password or key was removed", "target.headers.Accept: its value was removed", "target.body: a secret in it was removed", "connect.proxy: its password was removed", "record.scrape: its password or key was removed", `--header "X-Api-Key: …"`} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in %v", text, err)
		}
	}
	back, err := Again("run.yaml", []byte(saved), nil)
	if err != nil || string(back.YAML()) != saved {
		t.Errorf("a saved file cannot be read again: %v", err)
	}
}

func TestCredentials(t *testing.T) {
	r := read(t, secretive)
	env := map[string]string{"KEY": "sk-1\n", "TEAM": "blue"}
	getenv := func(name string) string { return env[name] }
	key, headers, err := r.Credentials(getenv)
	if err != nil || key != "sk-1" {
		t.Fatalf("%q, %v", key, err)
	}
	if diff := cmp.Diff(map[string]string{"X-Api-Key": "hunter5", "Accept": "hunter6", "X-Team": "blue"}, headers); diff != "" {
		t.Error(diff)
	}
	secrets := r.Secrets(key, headers)
	for _, s := range []string{"sk-1", "hunter2", "hunter3", "hunter4", "hunter5", "hunter6", "hunter9", "hunter10", "hunter11", "blue"} {
		if !slices.Contains(secrets, s) {
			t.Errorf("%s is no secret", s)
		}
	}
	if slices.Contains(secrets, "7") {
		t.Error("too much is secret")
	}

	for _, c := range []struct{ name, value, want string }{
		{"KEY", "", "target.api_key_env: the environment variable KEY is not set"},
		{"TEAM", " ", "target.headers_env.X-Team: the environment variable TEAM is not set"},
		{"TEAM", "a\nb", "the environment variable TEAM holds a line break"},
		{"KEY", "a\nb", "the API key holds a line break"},
	} {
		was := env[c.name]
		env[c.name] = c.value
		if _, _, err := r.Credentials(getenv); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
		env[c.name] = was
	}
}

func TestKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	r := &Run{Target: Target{URL: "http://h", APIKeyFile: file}}
	none := func(string) string { return "" }
	if _, _, err := r.Credentials(none); err == nil || !strings.Contains(err.Error(), "target.api_key_file: reading the API key: ") {
		t.Error(err)
	}
	for content, want := range map[string]string{"\n": "", " sk-2\r\n": "sk-2"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		key, _, err := r.Credentials(none)
		if key != want || (want == "") != (err != nil) {
			t.Errorf("%q gives %q, %v", content, key, err)
		}
	}
}

// What the workload and the instrument decide is not for the body to override.
func TestBodyIsOurs(t *testing.T) {
	for _, name := range []string{"model", "messages", "prompt", "stream"} {
		sets := []conf.Setting{
			{Path: "target.url", Value: "http://h:1"},
			{Path: "schedule.rate", Value: "1"},
			{Path: "target.body", Value: "{" + name + ": x}", From: "--set target.body"},
		}
		if _, err := Read("", nil, sets); err == nil || !strings.Contains(err.Error(), "target.body."+name+": cannot be given") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
