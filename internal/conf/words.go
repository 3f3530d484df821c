package conf

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// describe names what was found, in the words of whoever wrote it.
func (n *node) describe() string {
	switch n.kind {
	case mapping:
		return "a mapping"
	case list:
		return "a list"
	case empty:
		return "nothing"
	}
	text := oneLine(n.text)
	if n.tag == "!!str" || n.quoted {
		return strconv.Quote(text)
	}
	return text
}

// oneLine shortens text to a line of a message.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return s
}

func few(names []string) string {
	if len(names) > 4 {
		return strings.Join(names[:4], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

func sampleList(t reflect.Type) string {
	switch {
	case t == durationType:
		return "[25ms, 50ms]"
	case t.Kind() == reflect.String:
		return `["one", "two"]`
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return "[{…}, {…}]"
	}
	return "[1, 2]"
}

// wholeRange says which whole numbers fit into t, as far as people could
// exceed it.
func wholeRange(t reflect.Type) string {
	switch bits := t.Bits(); {
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr:
		if bits < 64 {
			return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<bits-1)
		}
		return "a whole number of 0 or more"
	case bits < 64:
		return fmt.Sprintf("a whole number from %d to %d", -int64(1)<<(bits-1), int64(math.MaxInt64)>>(64-bits))
	}
	return "a whole number"
}

// unknown says what a key that nobody knows may have meant.
func (d *Doc) unknown(key string, fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	text := fmt.Sprintf("unknown key %q", oneLine(key))
	if parent, rest, ok := strings.Cut(key, "."); ok && slices.Contains(names, parent) {
		return fmt.Sprintf("%s; keys nest: write %s below %s", text, oneLine(rest), parent)
	}
	if near := nearest(key, names); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", text, near)
	}
	switch path := elsewhere(d.dst, key, 0); {
	case path == key:
		return fmt.Sprintf("%s here; it stands at the top of the file, not below another key", text)
	case path != "":
		return fmt.Sprintf("%s here; did you mean %s?", text, path)
	}
	return fmt.Sprintf("%s; keys here are %s", text, strings.Join(names, ", "))
}

// elsewhere is the path of a key of that name in another place of t.
func elsewhere(t reflect.Type, key string, depth int) string {
	if t.Kind() != reflect.Struct || depth > 4 {
		return ""
	}
	fields := fieldsOf(t)
	for _, f := range fields {
		if f.name == strings.ReplaceAll(key, "-", "_") {
			return f.name
		}
	}
	for _, f := range fields {
		ft := t.FieldByIndex(f.index).Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if below := elsewhere(ft, key, depth+1); below != "" {
			return join(f.name, below)
		}
	}
	return ""
}

// nearest is the name closest to a mistyped key or begun by it, or empty if none
// is close enough to be what was meant.
func nearest(key string, names []string) string {
	best, least := "", 1+max(1, len(key)/3)
	for _, name := range names {
		if d := distance(strings.ToLower(strings.ReplaceAll(key, "-", "_")), name, least); d < least {
			best, least = name, d
		}
	}
	if i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, key) }); best == "" && i >= 0 && len(key) > 2 {
		return names[i]
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b (optimal string alignment); it may stop at
// limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
