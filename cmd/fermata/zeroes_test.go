package main

import (
	"strings"
	"testing"
)

// What would be ignored in silence is refused with what to do.
func TestFlagsThatWouldBeIgnored(t *testing.T) {
	const url = "http://127.0.0.1:1"
	for want, args := range map[string][]string{
		"--rounds 0: it must be above 0":         {"profile", url, "--rounds", "0"},
		"--over 0: it must be above 0":           {"profile", url, "--plan", "hosted", "--over", "0s", "--yes"},
		"there is no deadlines file nofile.yaml": {"profile", "reference", "nofile.yaml", "other.yaml"},
	} {
		code, _, stderr := fermata(t, t.TempDir(), args...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: %d, %s", args, code, stderr)
		}
	}
}
