// Package schema is the door to JSON schemas: it derives the published schema of
// a Go type from the type itself, so that the two cannot differ, and checks
// documents against a schema.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Draft is the version of JSON Schema that is written.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Options say what a Go type does not: names, descriptions, permitted values.
// The zero value adds nothing.
type Options struct {
	ID    string // address by which others refer to the schema
	Title string

	// Types describes types by their Go name, such as "Dist"; Keys describes
	// keys by type and JSON name, such as "Dist.level".
	Types, Keys map[string]string

	// Enum lists the only values of a string key: "Verdict.verdict".
	Enum map[string][]string

	// OrArray also admits an array of such documents.
	OrArray bool
}

// A Schema checks documents. Of and Parse make one.
type Schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// Of derives the schema of T, a struct. Each struct type that T reaches is a
// definition under its name in lower case; keys without omitempty are required
// and no others than T's are admitted; nothing may be null.
func Of[T any](o Options) (*Schema, error) {
	d := deriver{options: o, defs: map[string]*jsonschema.Schema{}, used: map[string]bool{}}
	root := reflect.TypeFor[T]()
	ref, err := d.of(root)
	if err != nil {
		return nil, fmt.Errorf("deriving the schema of %v: %w", root, err)
	}
	if err := d.unused(); err != nil {
		return nil, fmt.Errorf("deriving the schema of %v: %w", root, err)
	}
	s := &jsonschema.Schema{ID: o.ID, Schema: Draft, Title: o.Title, Defs: d.defs}
	if o.OrArray {
		// if, not oneOf: a wrong document is then told what is wrong in it.
		s.If = &jsonschema.Schema{Type: "array"}
		s.Then = &jsonschema.Schema{Items: ref}
		s.Else = ref.CloneSchemas()
	} else {
		s.Ref = ref.Ref
	}
	return resolve(s)
}

// Parse reads a schema from JSON.
func Parse(text []byte) (*Schema, error) {
	var raw any
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("reading a JSON schema: it is no JSON: %w", err)
	}
	if err := understood(raw); err != nil {
		return nil, fmt.Errorf("reading a JSON schema: %w", err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("reading a JSON schema: one of its keywords has a value of the wrong kind: %w", err)
	}
	return resolve(&s)
}

// understood refuses what the library would take without honouring it: other
// drafts, and types that there are not.
func understood(raw any) error {
	switch v := raw.(type) {
	case bool:
		return nil
	case map[string]any:
		if d, ok := v["$schema"].(string); ok && !strings.Contains(d, "2020-12") && !strings.Contains(d, "draft-07") {
			return fmt.Errorf("its $schema is %s; draft-07 and 2020-12 are known", d)
		}
		return knownTypes(v)
	}
	return errors.New("it must be an object")
}

func knownTypes(raw any) error {
	switch v := raw.(type) {
	case map[string]any:
		for key, x := range v {
			if slices.Contains([]string{"enum", "const", "default", "examples"}, key) {
				continue // values, not schemas
			}
			if name, ok := x.(string); ok && key == "type" && !slices.Contains(types, name) {
				return fmt.Errorf("there is no type %q; the types are %s", name, strings.Join(types, ", "))
			}
			if err := knownTypes(x); err != nil {
				return err
			}
		}
	case []any:
		for _, x := range v {
			if err := knownTypes(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// types are those of JSON schema.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

func resolve(root *jsonschema.Schema) (*Schema, error) {
	r, err := root.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolving a JSON schema: %w", err)
	}
	return &Schema{root, r}, nil
}

// JSON is the schema as published: indented, the same bytes every time.
func (s *Schema) JSON() ([]byte, error) {
	// Not MarshalIndent, which would write < and > as escapes.
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s.root); err != nil {
		return nil, fmt.Errorf("writing a JSON schema: %w", err)
	}
	return b.Bytes(), nil
}

// Validate checks a JSON document. The error says where and why it does not
// conform.
func (s *Schema) Validate(document []byte) error {
	d := json.NewDecoder(bytes.NewReader(document))
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("reading the document: more follows its end")
	}
	if err := s.resolved.Validate(v); err != nil {
		return fmt.Errorf("the document does not conform to the schema: %w", err)
	}
	return nil
}

// Broken says which rule of the schema a JSON document breaks, in the schema's
// words alone: a document may be nobody's business. Empty means that it conforms.
func (s *Schema) Broken(document []byte) string {
	d := json.NewDecoder(bytes.NewReader(document))
	var v any
	if err := d.Decode(&v); err != nil {
		return "is no JSON, from byte " + strconv.FormatInt(d.InputOffset()+1, 10) + " on"
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "more follows the end of the JSON"
	}
	err := s.resolved.Validate(v)
	if err == nil {
		return ""
	}
	// The library tells the way down the schema, then the keyword, then what the
	// document has there.
	place, rest := "", err.Error()
	for {
		below, ok := strings.CutPrefix(rest, "validating ")
		at, after, more := strings.Cut(below, ": ")
		if !ok || !more {
			break
		}
		place, rest = at, after
	}
	keyword, words, _ := strings.Cut(rest, ":")
	switch {
	case strings.HasPrefix(rest, "unexpected additional properties"):
		keyword = "additionalProperties"
	case strings.HasPrefix(rest, "required:"):
		keyword += ":" + words // names that the schema gives
	case strings.ContainsAny(keyword, " \"\n"):
		keyword = "the schema"
	}
	if place == "" || place == "root" {
		return "breaks " + keyword
	}
	return "breaks " + keyword + " of the schema at " + place
}

// A deriver collects one definition a struct type.
type deriver struct {
	options Options
	defs    map[string]*jsonschema.Schema
	used    map[string]bool // the keys of options that were met
}

// of is a reference to the definition of the struct type t, made if need be.
func (d *deriver) of(t reflect.Type) (*jsonschema.Schema, error) {
	name := strings.ToLower(t.Name())
	ref := &jsonschema.Schema{Ref: "#/$defs/" + name}
	if d.defs[name] != nil {
		return ref, nil
	}
	if t.Kind() != reflect.Struct || name == "" {
		return nil, fmt.Errorf("%v is no named struct", t)
	}
	d.defs[name] = &jsonschema.Schema{} // ends the recursion of types that hold themselves

	known := map[reflect.Type]*jsonschema.Schema{}
	for i := range t.NumField() {
		inner := element(t.Field(i).Type)
		if inner.Kind() != reflect.Struct || !t.Field(i).IsExported() {
			continue
		}
		r, err := d.of(inner)
		if err != nil {
			return nil, err
		}
		known[inner] = r
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, err
	}
	s.Description = d.take(d.options.Types, t.Name())
	for key, property := range s.Properties {
		withoutNull(property)
		at := t.Name() + "." + key
		property.Description = d.take(d.options.Keys, at)
		if values := d.options.Enum[at]; values != nil {
			d.used["Enum "+at] = true
			for _, v := range values {
				property.Enum = append(property.Enum, v)
			}
		}
	}
	d.defs[name] = s
	return ref, nil
}

func (d *deriver) take(from map[string]string, key string) string {
	d.used[key] = true
	return from[key]
}

// unused reports what the options say about keys that do not exist.
func (d *deriver) unused() error {
	var errs []error
	complain := func(key, what string) {
		if !d.used[key] {
			errs = append(errs, fmt.Errorf("%s that the types do not have: %s", what, strings.TrimPrefix(key, "Enum ")))
		}
	}
	for k := range d.options.Types {
		complain(k, "a description for a type")
	}
	for k := range d.options.Keys {
		complain(k, "a description for a key")
	}
	for k := range d.options.Enum {
		complain("Enum "+k, "values for a key")
	}
	return errors.Join(errs...)
}

// element is what pointers, lists and maps of t hold in the end.
func element(t reflect.Type) reflect.Type {
	for {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		default:
			return t
		}
	}
}

// withoutNull takes back the null that jsonschema-go admits for pointers and
// slices: absent values are missing keys, and lists are empty, not null.
func withoutNull(s *jsonschema.Schema) {
	if len(s.Types) > 0 {
		var kept []string
		for _, t := range s.Types {
			if t != "null" {
				kept = append(kept, t)
			}
		}
		s.Type, s.Types = "", nil
		if len(kept) == 1 {
			s.Type = kept[0]
		} else {
			s.Types = kept
		}
	}
	if s.Items != nil {
		withoutNull(s.Items)
	}
	if s.AdditionalProperties != nil {
		withoutNull(s.AdditionalProperties)
	}
}
