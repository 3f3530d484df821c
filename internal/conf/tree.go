package conf

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

type kind int

const (
	empty   kind = iota // null, or nothing
	scalar              // one value
	list                // items
	mapping             // entries
)

// A node is a YAML value with anchors and merge keys resolved.
type node struct {
	kind      kind
	text      string // of a scalar, as it was written
	tag       string // of a scalar: !!str, !!int, !!float, !!bool, …
	quoted    bool
	line, col int
	from      string // the setting that it came from; empty for the file's own
	through   bool   // made on the way to a setting below it, which says nothing of what else belongs here
	items     []*node
	entries   []entry
}

type entry struct {
	key, value *node
	merged     bool // came through a merge key, so that the mapping's own key wins
}

func (n *node) get(key string) (int, bool) {
	for i, e := range n.entries {
		if e.key.text == key {
			return i, true
		}
	}
	return 0, false
}

// find follows a dotted path as far as it exists; whole says whether that is
// all of it. Keys may hold dots themselves: the longest key that fits is taken.
func (n *node) find(path string) (at entry, whole bool) {
	at = entry{value: n}
	for path != "" {
		best, rest := entry{}, ""
		switch n := at.value; n.kind {
		case mapping:
			for _, e := range n.entries {
				longer := best.value == nil || len(e.key.text) > len(best.key.text)
				if longer && e.key.text != "" && within(path, e.key.text) {
					best, rest = e, path[len(e.key.text):]
				}
			}
		case list:
			if i, r, ok := index(path); ok && i < len(n.items) {
				best, rest = entry{value: n.items[i]}, r
			}
		}
		if best.value == nil {
			return at, false
		}
		at, path = best, strings.TrimPrefix(rest, ".")
	}
	return at, true
}

// index splits "[3].a" into 3 and ".a".
func index(path string) (i int, rest string, ok bool) {
	inner, ok := strings.CutPrefix(path, "[")
	if !ok {
		return 0, "", false
	}
	digits, rest, ok := strings.Cut(inner, "]")
	if !ok {
		return 0, "", false
	}
	i, err := strconv.Atoi(digits)
	return i, rest, err == nil && i >= 0
}

// parse reads the one document of data into the tree.
func (d *Doc) parse(data []byte) {
	d.root = &node{line: 1, col: 1}
	if d.file == "" {
		d.root.line, d.root.col = 0, 0
	}
	var first, second yaml.Node
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err == nil {
		err = loader.Load(&first)
	}
	if errors.Is(err, io.EOF) {
		if d.file != "" {
			d.fail(Mistake{File: d.file, Text: "the file is empty"})
		}
		return
	}
	if err == nil {
		err = loader.Load(&second)
		if err == nil {
			d.fail(Mistake{File: d.file, Line: second.Line, Col: second.Column, Text: "a second YAML document starts here; a file holds one"})
			return
		}
	}
	if !errors.Is(err, io.EOF) {
		d.fail(explain(d.file, data, err))
		return
	}
	t := treeing{doc: d, budget: maxNodes}
	if root := t.node(&first, ""); !d.broken {
		d.root = root
	}
}

func (d *Doc) fail(m Mistake) {
	d.mistakes = append(d.mistakes, m)
	d.broken = true
}

// maxNodes bounds what a file can grow to through anchors that name anchors.
const maxNodes = 200_000

// maxDepth bounds recursion; no file that people write nests so deeply.
const maxDepth = 200

type treeing struct {
	doc    *Doc
	budget int
	depth  int
	open   []*yaml.Node // anchored nodes that enclose this one
}

func (t *treeing) node(y *yaml.Node, path string) *node {
	t.budget--
	t.depth++
	defer func() { t.depth-- }()
	n := &node{line: y.Line, col: y.Column}
	if t.doc.broken {
		return n
	}
	if t.budget < 0 || t.depth > maxDepth {
		t.doc.fail(Mistake{File: t.doc.file, Line: y.Line, Col: y.Column, Text: "the file nests too deeply, or grows too large through its anchors"})
		return n
	}
	if y.Style&yaml.TaggedStyle != 0 && !strings.HasPrefix(y.ShortTag(), "!!") {
		t.doc.mistake(n, path, "the tag %s means nothing here", y.ShortTag())
	}
	if y.Anchor != "" {
		t.open = append(t.open, y)
		defer func() { t.open = t.open[:len(t.open)-1] }()
	}
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) == 0 {
			return n
		}
		return t.node(y.Content[0], path)
	case yaml.AliasNode:
		return t.alias(y, path)
	case yaml.SequenceNode:
		n.kind = list
		for i, c := range y.Content {
			n.items = append(n.items, t.node(c, join(path, "["+strconv.Itoa(i)+"]")))
		}
	case yaml.MappingNode:
		n.kind = mapping
		t.mapping(n, y, path)
	case yaml.ScalarNode:
		n.kind, n.text, n.tag = scalar, y.Value, y.ShortTag()
		n.quoted = y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
		if n.tag == "!!null" {
			n.kind = empty
		}
	}
	return n
}

// alias is a copy of what an anchor names, standing where the alias stands;
// what is inside a collection keeps its place, where it was written.
func (t *treeing) alias(y *yaml.Node, path string) *node {
	for _, o := range t.open {
		if o == y.Alias {
			t.doc.fail(Mistake{File: t.doc.file, Line: y.Line, Col: y.Column, Path: path, Text: "the anchor *" + y.Value + " contains itself"})
			return &node{line: y.Line, col: y.Column}
		}
	}
	n := t.node(y.Alias, path)
	n.line, n.col = y.Line, y.Column
	return n
}

func (t *treeing) mapping(n *node, y *yaml.Node, path string) {
	for i := 0; i+1 < len(y.Content); i += 2 {
		ky := y.Content[i]
		if ky.ShortTag() == "!!merge" {
			t.merge(n, y.Content[i+1], path)
			continue
		}
		key := t.node(ky, path)
		if key.kind != scalar {
			t.doc.mistake(key, path, "a key must be plain text")
			continue
		}
		below := join(path, key.text)
		e := entry{key: key, value: t.node(y.Content[i+1], below)}
		switch j, dup := n.get(key.text); {
		case dup && !n.entries[j].merged:
			t.doc.mistake(key, below, "is given twice, first on line %d", n.entries[j].key.line)
		case dup:
			n.entries[j] = e
		default:
			n.entries = append(n.entries, e)
		}
	}
}

// merge adds the entries of `<<: *anchor` that n does not have itself.
func (t *treeing) merge(n *node, y *yaml.Node, path string) {
	from := t.node(y, path)
	sources := []*node{from}
	if from.kind == list {
		sources = from.items
	}
	for _, s := range sources {
		if s.kind != mapping {
			t.doc.mistake(s, path, "<< must name a mapping, or a list of mappings")
			continue
		}
		for _, e := range s.entries {
			if _, dup := n.get(e.key.text); !dup {
				n.entries = append(n.entries, entry{key: e.key, value: e.value, merged: true})
			}
		}
	}
}
