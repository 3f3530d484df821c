package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rogpeppe/go-internal/testscript"

	"fermata/internal/term"
	"fermata/report"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// boundOnly is an address that is taken and refuses connections.
func boundOnly() (addr string, release func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return "", nil, err
	}
	unix.CloseOnExec(fd)
	release = func() { unix.Close(fd) }
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		release()
		return "", nil, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		release()
		return "", nil, err
	}
	return "127.0.0.1:" + strconv.Itoa(name.(*unix.SockaddrInet4).Port), release, nil
}

// measures COMMAND…: runs the command, which must end well, or say that this machine
// was too busy for what it claims (exit 4).
func measures(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: measures COMMAND…")
	}
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == exitUnclear) {
		ts.Fatalf("%v", err)
	}
}

// exits CODE COMMAND…: runs the command, which must end with the code. Where a
// run says itself that the machine stood still (client-bound, exit 4), it is
// repeated: what it would have said otherwise is what a script is about.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	code := 0
	for try := 0; ; try++ {
		err := ts.Exec(args[1], args[2:]...)
		code = 0
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
		} else {
			ts.Check(err)
		}
		if strconv.Itoa(code) == args[0] {
			return
		}
		dir := cmp.Or(value(args, "--out"), "runs")
		if code != exitUnclear || try == 4 || !clientBound(ts.MkAbs(dir)) {
			break
		}
		ts.Check(os.RemoveAll(ts.MkAbs(dir)))
	}
	ts.Fatalf("exit code %d, not %s", code, args[0])
}

// value is what follows a flag.
func value(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// clientBound looks at a run, or at those that a folder of repeats holds.
func clientBound(dir string) bool {
	for _, below := range []string{"", "*", "*/*"} {
		files, _ := filepath.Glob(filepath.Join(dir, below, "result.json"))
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(`"client_bound": true`)) {
				return true
			}
		}
	}
	return false
}

// lines stdout|stderr N: that many lines were written.
func countLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines stdout|stderr N")
	}
	n := len(strings.Split(strings.TrimRight(ts.ReadFile(args[0]), "\n"), "\n"))
	if strconv.Itoa(n) != args[1] {
		ts.Fatalf("%d lines on %s, not %s", n, args[0], args[1])
	}
}

// fits N: no line of standard output is wider than so many columns.
func fits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fits N")
	}
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	text := ts.ReadFile("stdout")
	if strings.TrimSpace(text) == "" {
		ts.Fatalf("nothing was written")
	}
	for line := range strings.Lines(text) {
		if n := term.Cells(strings.TrimRight(line, "\n")); n > most {
			ts.Fatalf("%d columns, not %d at most: %s", n, most, line)
		}
	}
}

// valid FILE: the document follows the published schema.
func valid(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: valid FILE")
	}
	ts.Check(report.ResultDocument.Validate([]byte(ts.ReadFile(args[0]))))
}

// is FILE PATH VALUE: the JSON document has the value at the path, such as
// metrics.ttft_due.n; numbers of a path are places in lists, and len is a length.
// VALUE may begin with <= or >=; - is absence, and ? any value.
func is(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: is FILE PATH VALUE")
	}
	got, ok := at(decode(ts, args[0]), strings.Split(args[1], "."))
	want := args[2]
	number, _ := got.(float64)
	bound, err := strconv.ParseFloat(strings.TrimLeft(want, "<>="), 64)
	switch {
	case want == "-":
		ok = !ok
	case !ok, want == "?":
	case strings.HasPrefix(want, "<=") && err == nil:
		ok = number <= bound
	case strings.HasPrefix(want, ">=") && err == nil:
		ok = number >= bound
	default:
		b, _ := json.Marshal(got)
		s, text := got.(string)
		ok = string(b) == want || text && s == want
	}
	if !ok {
		b, _ := json.Marshal(got)
		ts.Fatalf("%s is %s, not %s", args[1], b, want)
	}
}

func decode(ts *testscript.TestScript, file string) (v any) {
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &v))
	return v
}

func at(v any, path []string) (any, bool) {
	for i, p := range path {
		switch x := v.(type) {
		case map[string]any:
			if v = x[p]; v == nil {
				return nil, false
			}
		case []any:
			if p == "len" {
				return float64(len(x)), i == len(path)-1
			}
			n, err := strconv.Atoi(p)
			if err != nil || n < 0 || n >= len(x) {
				return nil, false
			}
			v = x[n]
		default:
			return nil, false
		}
	}
	return v, true
}

// only FILE FILE PATH…: the two JSON documents are equal but for what stands at
// the paths, and each of those differs.
func only(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: only FILE FILE PATH…")
	}
	a, b := decode(ts, args[0]), decode(ts, args[1])
	for _, path := range args[2:] {
		keys := strings.Split(path, ".")
		x, inA := at(a, keys)
		y, inB := at(b, keys)
		if inA == inB && reflect.DeepEqual(x, y) {
			ts.Fatalf("%s is the same in both", path)
		}
		for _, doc := range []any{a, b} {
			if in, ok := at(doc, keys[:len(keys)-1]); ok {
				delete(in.(map[string]any), keys[len(keys)-1])
			}
		}
	}
	if where := differ(a, b); where != "" {
		ts.Fatalf("they differ at %s", where)
	}
}

// differ is the path of a difference, or empty.
func differ(a, b any) string {
	x, okX := a.(map[string]any)
	y, okY := b.(map[string]any)
	if !okX || !okY {
		if reflect.DeepEqual(a, b) {
			return ""
		}
		return "here"
	}
	for k := range y {
		if _, ok := x[k]; !ok {
			return k
		}
	}
	for k := range x {
		if where := differ(x[k], y[k]); where != "" {
			return k + "." + where
		}
	}
	return ""
}

// absent TEXT FILE…: no file, or file in a folder, holds the text, plain or as
// URLs and JSON write it. stdout and stderr are those of the last command.
func absent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: absent TEXT FILE…")
	}
	for _, name := range args[1:] {
		if name == "stdout" || name == "stderr" {
			if strings.Contains(ts.ReadFile(name), args[0]) {
				ts.Fatalf("%s holds %q", name, args[0])
			}
			continue
		}
		files := 0
		ts.Check(filepath.WalkDir(ts.MkAbs(name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files++
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte(args[0])) {
				ts.Fatalf("%s holds %q", path, args[0])
			}
			return err
		}))
		if files == 0 {
			ts.Fatalf("%s holds no files", name)
		}
	}
}

// accounted FILE N: each distribution that has one value a request, and the
// fluidity index, cover and miss N requests together: no denominator drops any.
func accounted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: accounted FILE N")
	}
	doc := decode(ts, args[0])
	seen := 0
	check := func(name string, dist any) {
		d := dist.(map[string]any)
		if got := d["n_requests"].(float64) + d["missing"].(float64); strconv.Itoa(int(got)) != args[1] {
			ts.Fatalf("%s covers %v requests and misses %v, not %s together", name, d["n_requests"], d["missing"], args[1])
		}
		seen++
	}
	all, _ := at(doc, []string{"metrics"})
	for name, dist := range all.(map[string]any) {
		check(name, dist)
	}
	list, _ := at(doc, []string{"fluidity"})
	for i, f := range list.([]any) {
		check("fluidity "+strconv.Itoa(i), f.(map[string]any)["index"])
	}
	if seen == 0 {
		ts.Fatalf("%s has no distributions", args[0])
	}
}
