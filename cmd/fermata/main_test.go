package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"fermata/internal/calm"
)

// The test binary is also the command: tests start it as `fermata`, a process of
// its own that can be interrupted and killed.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fermata": main})
}

// Each script is one feature, told as a session at a shell.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			calm.Try(t, func(t testing.TB) { tell(t, file) })
		})
	}
}

// An attempt is one at a script.
type attempt struct{ testing.TB }

func (attempt) Parallel()                            {}
func (attempt) Verbose() bool                        { return testing.Verbose() }
func (a attempt) Run(_ string, f func(testscript.T)) { f(a) }

func tell(t testing.TB, file string) {
	testscript.RunT(attempt{t}, testscript.Params{
		Files: []string{file},
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
