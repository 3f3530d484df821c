package report

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"fermata/metrics"
)

const (
	resultDoc  = "../docs/result.md"
	schemaFile = "../docs/schema/result.schema.json"
	keysBegin  = "<!-- keys: written by go test ./report -update -->\n"
	keysEnd    = "<!-- end of keys -->\n"
)

func TestPublishedSchema(t *testing.T) {
	text, err := ResultDocument.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, schemaFile, text)
}

// fields calls visit for every JSON key that t reaches.
func fields(t reflect.Type, seen map[reflect.Type]bool, visit func(reflect.Type, reflect.StructField)) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	for i := range t.NumField() {
		visit(t, t.Field(i))
	}
	for i := range t.NumField() {
		fields(t.Field(i).Type, seen, visit)
	}
}

// TestEveryKeyIsDescribed: every key has a meaning, and says when it is absent if
// and only if it can be.
func TestEveryKeyIsDescribed(t *testing.T) {
	byName := map[string]key{}
	for _, k := range keys {
		if _, twice := byName[k.name]; twice {
			t.Errorf("%s is described twice", k.name)
		}
		byName[k.name] = k
	}
	doc, err := os.ReadFile(resultDoc)
	if err != nil {
		t.Fatal(err)
	}
	fields(reflect.TypeFor[metrics.Result](), map[reflect.Type]bool{}, func(typ reflect.Type, f reflect.StructField) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		k, ok := byName[typ.Name()+"."+name]
		optional := strings.Contains(options, "omitempty")
		if !ok || k.meaning == "" || (k.absent != "") != optional {
			t.Errorf("%s.%s: described %v, optional %v, absent where %q", typ.Name(), name, ok, optional, k.absent)
		}
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/result.md does not name %s", name)
		}
	})
}

// TestDocKeys keeps the tables of docs/result.md equal to the types and their
// descriptions.
func TestDocKeys(t *testing.T) {
	doc, err := os.ReadFile(resultDoc)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(doc), keysBegin)
	_, tail, ok2 := strings.Cut(rest, keysEnd)
	if !ok || !ok2 {
		t.Fatalf("docs/result.md lacks the lines %q and %q", keysBegin, keysEnd)
	}
	golden(t, resultDoc, []byte(head+keysBegin+keyTables()+keysEnd+tail))
}

func keyTables() string {
	byName := map[string]key{}
	for _, k := range keys {
		byName[k.name] = k
	}
	var b strings.Builder
	last := ""
	rows := map[string]string{}
	fields(reflect.TypeFor[metrics.Result](), map[reflect.Type]bool{}, func(typ reflect.Type, f reflect.StructField) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		k := byName[typ.Name()+"."+name]
		unit, absent := k.unit, k.absent
		if unit == "" {
			unit = " "
		}
		if absent == "" {
			absent = "never"
		}
		if values := enums()[k.name]; len(values) > 1 && !strings.Contains(k.meaning, values[0]) {
			k.meaning += " One of " + strings.Join(values, ", ") + "."
		}
		rows[typ.Name()] += fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", name, kind(f.Type), unit, k.meaning, absent)
	})
	for _, m := range typeMeanings {
		if last != m.name {
			title := m.name
			if title == "Result" {
				title = "Result: the document"
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| key | type | unit | meaning | absent where |\n| --- | --- | --- | --- | --- |\n%s",
				title, m.meaning, rows[m.name])
			last = m.name
		}
	}
	return b.String() + "\n"
}

// kind is the JSON type of a Go type, as people name it.
func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kind(t.Elem())
	case reflect.Slice:
		return "list of " + kind(t.Elem())
	case reflect.Map:
		return "object of " + kind(t.Elem())
	case reflect.Struct:
		return t.Name()
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "number"
	default:
		return "integer"
	}
}
