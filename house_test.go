package fermata_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ranks says who may import whom: a package imports only packages of a lower
// rank. The table of ARCHITECTURE.md is checked against it.
var ranks = map[string]int{
	"cmd/fermata": 7, "bench": 7,
	"experiment": 5,
	"spec":       4, "serve": 4, "report": 4,
	"load": 3, "compare": 3, "capacity": 3,
	"wire": 2, "dialect": 2, "metrics": 2, "sim": 2,
	"workload": 1, "schedule": 1, "recording": 1, "deadline": 1, "check": 1, "cost": 1, "beacon": 1,
}

// doors says which packages may import a third-party library, and why it has
// one door: so that it can be replaced, and so that its types do not spread.
var doors = map[string][]string{
	"github.com/parquet-go/parquet-go": {"recording", "workload"},
	"go.yaml.in/yaml/v4":               {"internal/conf"},
	"github.com/google/jsonschema-go":  {"internal/schema"},
	"github.com/spf13/cobra":           {"cmd/fermata"},
	"github.com/spf13/pflag":           {"cmd/fermata"},
	"charm.land/bubbletea/v2":          {"internal/term"},
	"golang.org/x/sys":                 {""}, // anywhere
	"github.com/rogpeppe/go-internal":  {"test"},
	"pgregory.net/rapid":               {"test"},
	"github.com/google/go-cmp":         {"test"},
	"github.com/chromedp/chromedp":     {"test"}, // drives a real browser
	"github.com/chromedp/cdproto":      {"test"}, // … by its protocol
}

type listed struct {
	ImportPath   string
	Standard     bool
	Imports      []string
	TestImports  []string
	XTestImports []string
}

const module = "fermata"

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json", "./...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatal(err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func rank(t *testing.T, path string) int {
	room := strings.TrimPrefix(path, module+"/")
	if strings.HasPrefix(room, "internal/") {
		return 0
	}
	r, ok := ranks[room]
	if !ok {
		t.Errorf("%s has no rank: a new room needs a line in house_test.go and in ARCHITECTURE.md", path)
	}
	return r
}

func ours(path string) bool { return strings.HasPrefix(path, module+"/") }

// Data flows one way, so imports do too.
func TestImportsGoDown(t *testing.T) {
	for _, p := range packages(t) {
		if !ours(p.ImportPath) || strings.HasSuffix(p.ImportPath, "/e2e") {
			continue // the root and the end-to-end tests only hold tests
		}
		from := rank(t, p.ImportPath)
		for _, imp := range p.Imports {
			if !ours(imp) {
				continue
			}
			if to := rank(t, imp); to >= from && !(from == 0 && to == 0) {
				t.Errorf("%s (rank %d) imports %s (rank %d): a package imports only lower ranks, so that data flows one way", p.ImportPath, from, imp, to)
			}
		}
	}
}

func TestRecordingIsTheContract(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != module+"/recording" {
			continue
		}
		for _, imp := range p.Imports {
			if ours(imp) {
				t.Errorf("recording imports %s: it is the contract between measuring and judging and depends on neither", imp)
			}
		}
	}
}

func TestLibrariesHaveOneDoor(t *testing.T) {
	seen := map[string]bool{}
	check := func(p listed, imports []string, test bool) {
		for _, imp := range imports {
			first, _, _ := strings.Cut(imp, "/")
			if !strings.Contains(first, ".") {
				continue // the standard library, or ours
			}
			lib, rooms := door(imp)
			if lib == "" {
				t.Errorf("%s imports %s, which has no door in house_test.go: say which room may use it and why it is worth its size", p.ImportPath, imp)
				continue
			}
			seen[lib] = true
			room := strings.TrimPrefix(p.ImportPath, module+"/")
			for _, r := range rooms {
				if r == "" || r == room || r == "test" && test {
					room = ""
				}
			}
			if room != "" && !test {
				t.Errorf("%s imports %s, whose only door is %v", p.ImportPath, imp, rooms)
			}
		}
	}
	for _, p := range packages(t) {
		check(p, p.Imports, false)
		check(p, p.TestImports, true)
		check(p, p.XTestImports, true)
	}
	for lib := range doors {
		if !seen[lib] {
			t.Errorf("door for %s, which nobody imports: remove it from house_test.go", lib)
		}
	}
}

func door(imp string) (string, []string) {
	for lib, rooms := range doors {
		if imp == lib || strings.HasPrefix(imp, lib+"/") {
			return lib, rooms
		}
	}
	return "", nil
}

var tableRow = regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| (\\d) \\|")

// ARCHITECTURE.md cannot lie about the ranks.
func TestArchitectureTable(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, m := range tableRow.FindAllStringSubmatch(string(page), -1) {
		told[m[1]] = m[2]
	}
	for _, p := range packages(t) {
		room := strings.TrimPrefix(p.ImportPath, module+"/")
		if !ours(p.ImportPath) || room == "e2e" {
			continue
		}
		want := "0"
		if r, ok := ranks[room]; ok {
			want = string(rune('0' + r))
		}
		if told[room] != want {
			t.Errorf("ARCHITECTURE.md gives %s the rank %q, the imports need %s", room, told[room], want)
		}
		delete(told, room)
	}
	for room := range told {
		t.Errorf("ARCHITECTURE.md tells of %s, which does not exist", room)
	}
}

func goFiles(t *testing.T, each func(path string, f *ast.File)) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		each(path, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Exported names are documented, so that the code reads as its own manual.
func TestExportedNamesAreDocumented(t *testing.T) {
	goFiles(t, func(path string, f *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					t.Errorf("%s: %s has no comment that says what it is for", path, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
						t.Errorf("%s: type %s has no comment that says what it is for", path, ts.Name.Name)
					}
				}
			}
		}
	})
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

// Results go to standard output in one place only; everything else is returned.
func TestNobodyPrints(t *testing.T) {
	goFiles(t, func(path string, f *ast.File) {
		if strings.HasPrefix(path, "cmd/") || strings.HasSuffix(path, "_test.go") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == "fmt" && strings.HasPrefix(sel.Sel.Name, "Print") {
				t.Errorf("%s prints with fmt.%s: only cmd speaks to the user, rooms return", path, sel.Sel.Name)
			}
			return true
		})
	})
}
