package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is also the command: tests start it as `fermata`, a process of
// its own that can be interrupted and killed.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fermata": main})
}

// Each script is one feature, told as a session at a shell.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server":    startServer,
			"page":      startPage,
			"tls":       startTLS,
			"nobody":    reserveNobody,
			"exits":     exits,
			"measures":  measures,
			"valid":     valid,
			"is":        is,
			"only":      only,
			"absent":    absent,
			"accounted": accounted,
			"lines":     countLines,
			"fits":      fits,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			// Nothing of the machine's own: no colour, no key.
			e.Setenv("NO_COLOR", "1")
			e.Setenv("GOCOVERDIR", os.Getenv("GOCOVERDIR"))
			data, err := filepath.Abs("../../workload/testdata") // rows of published traces
			e.Setenv("DATA", data)
			return err
		},
	})
}
