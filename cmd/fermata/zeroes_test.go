package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What would be ignored in silence is refused with what to do.
func TestFlagsThatWouldBeIgnored(t *testing.T) {
	const url = "http://127.0.0.1:1"
	dir := t.TempDir()
	study := filepath.Join(dir, "study.yaml")
	if err := os.WriteFile(study, []byte("title: t\nendpoints:\n  - {name: a, url: \""+url+"\", model: m, api_key_env: FERMATA_NO_KEY}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"--rounds 0: it must be above 0":                                          {"profile", url, "--rounds", "0"},
		"--over 0: it must be above 0":                                            {"profile", url, "--plan", "hosted", "--over", "0s", "--yes"},
		"there is no deadlines file nofile.yaml":                                  {"profile", "reference", "nofile.yaml", "other.yaml"},
		"--parallel is for a study of simulated systems: endpoints are asked one": {"study", study, "--parallel", "2"},
		"sign in with: a: target.api_key_env: the environment variable":           {"study", study},
	} {
		code, _, stderr := fermata(t, dir, args...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: %d, %s", args, code, stderr)
		}
	}
}

// A recording that is not there, or is none, is a command written wrong, whichever
// command it is.
func TestNoSuchRecording(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "plain", "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("no recording"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"there is no folder or file nodir", []string{"report", "nodir"}},
		{"there is no folder or file nodir", []string{"report", "nodir", "--why", "3"}},
		{"there is no folder or file nodir", []string{"report", "nodir", "--html", "page.html"}},
		{"there is no folder or file nodir", []string{"compare", "nodir", "nodir"}},
		{"there is no folder or file nodir", []string{"recover", "nodir"}},
		{"plain holds no recording", []string{"report", "plain"}},
		{"plain holds no recording", []string{"compare", "plain", "plain"}},
		{"there is no deadlines file a.yaml", []string{"profile", "reference", "a.yaml", "b.yaml"}},
		{"there is no study nofile.yaml", []string{"study", "nofile.yaml"}},
		{"there is no simulator spec nofile.yaml", []string{"sim", "nofile.yaml"}},
		{"there is no file times.csv", []string{"run", "http://127.0.0.1:1", "--trace", "times.csv"}},
		{"plain is not empty", []string{"profile", "http://127.0.0.1:1", "--out", "plain"}},
		{"plain is not empty", []string{"profile", "http://127.0.0.1:1", "--plan", "hosted", "--yes", "--out", "plain"}},
	} {
		code, stdout, stderr := fermata(t, dir, c.args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: %d, %s%s", c.args, code, stdout, stderr)
		}
	}
}
