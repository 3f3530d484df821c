package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

type leaf struct {
	Value float64 `json:"value"`
	Note  string  `json:"note,omitempty"`
}

type tree struct {
	Kind   string           `json:"kind"`
	One    *leaf            `json:"one,omitempty"`
	Many   []leaf           `json:"many"`
	ByName map[string]*leaf `json:"by_name,omitempty"`
	Count  *int64           `json:"count,omitempty"`
}

var options = Options{
	ID: "https://example.org/tree.json", Title: "A tree",
	Types:   map[string]string{"leaf": "What hangs on it."},
	Keys:    map[string]string{"tree.kind": "What grows.", "leaf.value": "In grams."},
	Enum:    map[string][]string{"tree.kind": {"oak", "elm"}},
	OrArray: true,
}

func TestValidate(t *testing.T) {
	s, err := Of[tree](options)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		document, fault string // fault is part of the error; empty where it conforms
	}{
		{`{"kind":"oak","many":[]}`, ""},
		{`{"kind":"elm","many":[{"value":1.5}],"one":{"value":2},"by_name":{"x":{"value":3}},"count":7}`, ""},
		{`[{"kind":"oak","many":[]},{"kind":"elm","many":[]}]`, ""},
		{`[{"kind":"oak","many":[]},{"kind":"elm"}]`, "many"},
		{`{"kind":"oak"}`, "many"},
		{`{"kind":"ash","many":[]}`, "ash"},
		{`{"kind":"oak","many":null}`, "array"},
		{`{"kind":"oak","many":[],"one":null}`, "null"},
		{`{"kind":"oak","many":[],"count":1.5}`, "integer"},
		{`{"kind":"oak","many":[],"extra":1}`, "extra"},
		{`{"kind":"oak","many":[{"note":"n"}]}`, "value"},
		{`{"kind":"oak","many":[]} 1`, "follows"},
		{`{"kind":`, "reading"},
		{`7`, "object"},
	} {
		err := s.Validate([]byte(c.document))
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%s: %v", c.document, err)
		case c.fault != "" && err == nil:
			t.Errorf("%s: admitted", c.document)
		case c.fault != "" && !strings.Contains(err.Error(), c.fault):
			t.Errorf("%s: error %q does not name %q", c.document, err, c.fault)
		}
	}
}

// TestPublishedText reads the schema back: it must say the same as the one that
// was derived.
func TestPublishedText(t *testing.T) {
	s, err := Of[tree](options)
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.JSON()
	if err != nil || string(again) != string(text) {
		t.Error("two writings of one schema differ")
	}
	var doc struct {
		ID   string `json:"$id"`
		Defs map[string]struct {
			Description string
			Required    []string
			Properties  map[string]struct {
				Description string
				Enum        []string
				Ref         string `json:"$ref"`
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	tr := doc.Defs["tree"]
	if doc.ID != options.ID || doc.Defs["leaf"].Description != "What hangs on it." ||
		tr.Properties["kind"].Description != "What grows." || len(tr.Properties["kind"].Enum) != 2 ||
		tr.Properties["one"].Ref != "#/$defs/leaf" || strings.Join(tr.Required, " ") != "kind many" {
		t.Errorf("the text lacks what the options say:\n%s", text)
	}
	parsed, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Validate([]byte(`{"kind":"oak","many":[]}`)) != nil || parsed.Validate([]byte(`{}`)) == nil {
		t.Error("the published text judges otherwise than the derived schema")
	}
}

func TestOptionsMustFit(t *testing.T) {
	_, err := Of[tree](Options{
		Types: map[string]string{"branch": "x"},
		Keys:  map[string]string{"tree.height": "x"},
		Enum:  map[string][]string{"leaf.colour": {"x"}},
	})
	if err == nil {
		t.Fatal("options about keys that do not exist were taken")
	}
	for _, name := range []string{"branch", "tree.height", "leaf.colour"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	if _, err := Of[int](Options{}); err == nil {
		t.Error("a schema of int was derived")
	}
	if _, err := Parse([]byte(`{"type": 7}`)); err == nil {
		t.Error("a schema whose type is a number was read")
	}
}

// What the library would take without honouring it is refused.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`: "draft-07 and 2020-12 are known",
		`{"type":"objekt"}`:                             `there is no type "objekt"`,
		`{"properties":{"a":{"items":{"type":"int"}}}}`: `there is no type "int"`,
		`[]`:               "it must be an object",
		`{"required":"a"}`: "one of its keywords has a value of the wrong kind",
		`{"type"`:          "it is no JSON",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{`true`, `{"enum":[{"type":"x"}]}`, `{"properties":{"type":{"type":"string"}}}`, `{"$schema":"http://json-schema.org/draft-07/schema#"}`} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
