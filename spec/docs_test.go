package spec

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fermata/internal/conf"
)

var (
	row       = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.*\\| ([^|]+) \\|$")
	flagCell  = regexp.MustCompile("^`--([a-z0-9-]+)`$")
	documents = "../docs/spec.md"
)

func TestDocsHaveEveryKeyAndFlag(t *testing.T) {
	data, err := os.ReadFile(documents)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	byPath := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		told = append(told, m[1])
		if cell := flagCell.FindStringSubmatch(m[2]); cell != nil {
			byPath[m[1]] = cell[1]
		}
	}
	keys := conf.Keys(Run{})
	for _, key := range keys {
		if !slices.Contains(told, key) {
			t.Errorf("%s does not tell of %s", documents, key)
		}
	}
	for _, key := range told {
		if !slices.Contains(keys, key) {
			t.Errorf("%s tells of %s, which is no key", documents, key)
		}
	}
	for _, f := range Flags() {
		if byPath[f.Path] != f.Name {
			t.Errorf("%s says that %s is set by %q, not by --%s", documents, f.Path, byPath[f.Path], f.Name)
		}
		delete(byPath, f.Path)
	}
	for path, flag := range byPath {
		t.Errorf("%s says that %s is set by --%s, which is no flag", documents, path, flag)
	}
}

func TestDocsExampleIsRead(t *testing.T) {
	data, err := os.ReadFile(documents)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no example")
	}
	if _, err := Read("docs/spec.md", []byte(example), nil); err != nil {
		t.Error(err)
	}
}

func TestFlagsAreSound(t *testing.T) {
	keys := conf.Keys(Run{})
	names := map[string]bool{}
	for _, f := range Flags() {
		if names[f.Name] {
			t.Errorf("--%s is there twice", f.Name)
		}
		names[f.Name] = true
		if !slices.Contains(keys, f.Path) {
			t.Errorf("--%s sets %s, which is no key", f.Name, f.Path)
		}
		if f.Usage == "" || strings.Contains(f.Usage, "\n") {
			t.Errorf("--%s: usage must be one line", f.Name)
		}
		if s := f.Setting("x"); s.From != "--"+f.Name || s.Append != (f.Kind == Many) {
			t.Errorf("--%s: %+v", f.Name, s)
		}
	}
}
