package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fermata/internal/calm"
)

// Requests for which this machine has no file descriptor are not the server's
// failures: they were not sent, the limit is named, and the run is no claim.
func TestNoFilesLeft(t *testing.T) {
	for _, transport := range []string{"fast", "compatible"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			calm.Try(t, func(t testing.TB) {
				server := newScripted(t, "models: {a: {ttft: 1500ms, gap: 20ms, tokens: 4}}")
				dir := t.TempDir()
				const files, users = 64, 100
				run := exec.Command("sh", "-c", `ulimit -n "$0" && exec fermata "$@"`, strconv.Itoa(files),
					"run", server.URL, "--model", "a", "--transport", transport, "--concurrency", strconv.Itoa(users), "--requests", strconv.Itoa(users),
					"--warmup", "0", "--input", "16", "--output", "4", "--out", "run", "--quiet")
				run.Dir = dir
				said, _ := run.CombinedOutput()
				if code := run.ProcessState.ExitCode(); code != exitUnclear {
					t.Fatalf("exit code %d, not 4\n%s", code, said)
				}
				r := resultOf(t, filepath.Join(dir, "run"))
				sent, not := r.Outcomes["ok"], r.Outcomes["not_sent"]
				if sent == 0 || not == 0 || sent+not != r.Load.Measured || r.Load.Sent != sent {
					t.Errorf("outcomes %v of %d requests, %d sent", r.Outcomes, r.Load.Measured, r.Load.Sent)
				}
				if sent >= files {
					t.Errorf("%d streams at once with %d files", sent, files)
				}
				if !r.Health.ClientBound || !strings.Contains(strings.Join(r.Health.Reasons, "; "), strconv.FormatInt(not, 10)+" of 100 requests were not sent") {
					t.Errorf("client-bound %v because of %q", r.Health.ClientBound, r.Health.Reasons)
				}
				told := false
				for _, w := range r.Warnings {
					told = told || w.Code == "no_room" && strings.Contains(w.Text, "too many open files") && strings.Contains(w.Text, "may open 64 files: raise the limit (ulimit -n)")
				}
				if !told {
					t.Errorf("the limit is not named: %+v", r.Warnings)
				}
			})
		})
	}
}
