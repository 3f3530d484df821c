package conf

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"
)

// set puts one setting over the tree.
func (d *Doc) set(s Setting) {
	if d.root.kind == empty {
		d.root.kind = mapping
	}
	segments, ok := split(s.Path, d.dst)
	if !ok {
		d.mistakes = append(d.mistakes, Mistake{File: s.From, Text: fmt.Sprintf("%q is not the path of a key, such as schedule.rate", s.Path)})
		return
	}
	at, path := d.root, ""
	t := d.dst
	for i, seg := range segments {
		last := i == len(segments)-1
		t = below(t, seg)
		slot := at.slot(seg, s.From)
		if slot == nil {
			d.mistakes = append(d.mistakes, Mistake{File: s.From, Path: s.Path, Text: fmt.Sprintf("cannot be set: %s is %s", orFile(path), at.describe())})
			return
		}
		path = join(path, seg)
		if !last {
			if (*slot).kind == empty {
				*slot = &node{kind: mapping, from: s.From, through: true}
				if segments[i+1][0] == '[' {
					(*slot).kind = list
				}
			}
			at = *slot
			continue
		}
		if s.Append {
			d.add(slot, t, s)
		} else {
			*slot = d.value(s.Value, t, s)
		}
	}
}

func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

// slot is where the value of a key or "[index]" stands; nil if n cannot have it.
func (n *node) slot(seg, from string) **node {
	if i, _, ok := index(seg); ok {
		if n.kind != list || i > len(n.items) {
			return nil
		}
		if i == len(n.items) {
			n.items = append(n.items, &node{from: from})
		}
		return &n.items[i]
	}
	if n.kind != mapping {
		return nil
	}
	i, ok := n.get(seg)
	if !ok {
		i = len(n.entries)
		n.entries = append(n.entries, entry{key: &node{kind: scalar, text: seg, tag: "!!str", from: from}, value: &node{from: from}})
	}
	return &n.entries[i].value
}

// add appends to the list or map at slot.
func (d *Doc) add(slot **node, t reflect.Type, s Setting) {
	if t != nil && t.Kind() == reflect.Map {
		name, value, ok := pair(s.Value)
		if !ok {
			d.mistakes = append(d.mistakes, Mistake{File: s.From, Path: s.Path, Text: fmt.Sprintf("must be name=value or \"name: value\", not %q", oneLine(s.Value))})
			return
		}
		if (*slot).kind == empty {
			*slot = &node{kind: mapping, from: s.From}
		}
		if at := (*slot).slot(name, s.From); at != nil {
			*at = d.value(value, t.Elem(), s)
		}
		return
	}
	item := t
	if t != nil && t.Kind() == reflect.Slice {
		item = t.Elem()
	}
	if (*slot).kind == empty {
		*slot = &node{kind: list, from: s.From}
	}
	if (*slot).kind == list {
		(*slot).items = append((*slot).items, d.value(s.Value, item, s))
	}
}

// pair splits name=value or "name: value" at whichever separator comes first.
func pair(text string) (name, value string, ok bool) {
	i := strings.IndexAny(text, ":=")
	if i < 1 {
		return "", "", false
	}
	name = strings.TrimSpace(text[:i])
	return name, strings.TrimSpace(text[i+1:]), name != ""
}

// value is the text of a setting as a value for t; nil where t is not known.
func (d *Doc) value(text string, t reflect.Type, s Setting) *node {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	trimmed := strings.TrimSpace(text)
	flow := strings.HasPrefix(trimmed, "[") || strings.HasPrefix(trimmed, "{")
	switch {
	case t == nil:
	case t.Kind() == reflect.String, t == durationType, textual(t) && !flow:
		return &node{kind: scalar, text: text, tag: tagOf(trimmed), from: s.From}
	case t.Kind() == reflect.Slice && !flow:
		n := &node{kind: list, from: s.From}
		for part := range strings.SplitSeq(text, ",") {
			n.items = append(n.items, d.value(strings.TrimSpace(part), t.Elem(), s))
		}
		return n
	}
	var y yaml.Node
	if err := yaml.Load([]byte(text), &y); err != nil {
		if trimmed != "" {
			m := explain(s.From, []byte(text), err)
			m.Line, m.Col, m.Path = 0, 0, s.Path
			d.mistakes = append(d.mistakes, m)
		}
		return &node{from: s.From}
	}
	n := (&treeing{doc: d, budget: maxNodes}).node(&y, s.Path)
	n.claim(s.From)
	return n
}

// tagOf is the type that YAML sees in a plain scalar.
func tagOf(text string) string {
	var y yaml.Node
	if yaml.Load([]byte(text), &y) != nil || len(y.Content) != 1 || y.Content[0].Kind != yaml.ScalarNode {
		return "!!str"
	}
	return y.Content[0].ShortTag()
}

// claim makes a tree a setting's own.
func (n *node) claim(from string) {
	n.from = from
	for _, item := range n.items {
		item.claim(from)
	}
	for _, e := range n.entries {
		e.key.claim(from)
		e.value.claim(from)
	}
}

// below is the type at a segment of a path, nil where it cannot be known.
func below(t reflect.Type, seg string) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return nil
	}
	_, _, isIndex := index(seg)
	switch {
	case t.Kind() == reflect.Slice && isIndex, t.Kind() == reflect.Map:
		return t.Elem()
	case t.Kind() == reflect.Struct:
		for _, f := range fieldsOf(t) {
			if f.name == seg {
				return t.FieldByIndex(f.index).Type
			}
		}
	}
	return nil
}

// split cuts a path into keys and "[index]" segments. The rest of a path below
// a map of scalars is one key, so that labels may have dots in their names.
func split(path string, t reflect.Type) ([]string, bool) {
	var segments []string
	for path != "" {
		if t != nil && t.Kind() == reflect.Map && leaf(t.Elem()) {
			return append(segments, path), true
		}
		seg, rest := path, ""
		if _, r, ok := index(path); ok {
			seg, rest = path[:len(path)-len(r)], strings.TrimPrefix(r, ".")
		} else if i := strings.IndexAny(path, ".["); i >= 0 {
			seg, rest = path[:i], strings.TrimPrefix(path[i:], ".")
			if path[i] == '.' && rest == "" {
				return nil, false
			}
		}
		if seg == "" || strings.ContainsAny(seg, " \t\n") {
			return nil, false
		}
		segments, path = append(segments, seg), rest
		t = below(t, seg)
	}
	return segments, len(segments) > 0
}

func leaf(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Interface, reflect.Pointer:
		return false
	}
	return true
}
