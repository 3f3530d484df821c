package conf

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// textual says whether values of t are decoded by UnmarshalText.
func textual(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textType) }

func (d *Doc) decode(n *node, v reflect.Value, path string) {
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		if n.kind == empty {
			v.SetZero()
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
		}
		d.decode(n, v.Elem(), path)
		return
	}
	if n.kind == scalar && textual(t) {
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.text)); err != nil {
			d.mistake(n, path, "%s", oneLine(err.Error()))
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		d.decodeStruct(n, v, path)
	case reflect.Map:
		d.decodeMap(n, v, path)
	case reflect.Slice:
		d.decodeList(n, v, path)
	case reflect.Interface:
		if x := plain(n); x != nil {
			v.Set(reflect.ValueOf(x))
		}
	default:
		d.decodeScalar(n, v, path)
	}
}

func (d *Doc) decodeStruct(n *node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type())
	if n.kind == empty {
		return
	}
	if n.kind != mapping {
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.name
		}
		d.mistake(n, path, "must be a mapping with keys such as %s, not %s", few(names), n.describe())
		return
	}
	for _, e := range n.entries {
		below := join(path, e.key.text)
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == e.key.text })
		if i < 0 {
			d.mistake(e.key, below, "%s", d.unknown(e.key.text, fields))
			continue
		}
		d.decode(e.value, v.FieldByIndex(fields[i].index), below)
	}
}

func (d *Doc) decodeMap(n *node, v reflect.Value, path string) {
	t := v.Type()
	if t.Key().Kind() != reflect.String {
		panic(fmt.Sprintf("conf: %s: the keys of a map must be text", t))
	}
	if n.kind == empty {
		return
	}
	if n.kind != mapping {
		d.mistake(n, path, "must be a mapping such as {name: value}, not %s", n.describe())
		return
	}
	m := reflect.MakeMapWithSize(t, len(n.entries))
	for _, e := range n.entries {
		x := reflect.New(t.Elem()).Elem()
		d.decode(e.value, x, join(path, e.key.text))
		m.SetMapIndex(reflect.ValueOf(e.key.text).Convert(t.Key()), x)
	}
	v.Set(m)
}

func (d *Doc) decodeList(n *node, v reflect.Value, path string) {
	if n.kind == empty {
		return
	}
	if n.kind != list {
		d.mistake(n, path, "must be a list such as %s, not %s", sampleList(v.Type().Elem()), n.describe())
		return
	}
	s := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		d.decode(item, s.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(s)
}

// decodeScalar sets text, a bool, a number or a duration.
func (d *Doc) decodeScalar(n *node, v reflect.Value, path string) {
	if n.kind == empty {
		d.mistake(n, path, "has no value; give one, or leave the key out")
		return
	}
	want, hint := "", ""
	switch k := v.Kind(); {
	case k == reflect.String:
		want = "text"
		if n.kind == scalar {
			v.SetString(n.text)
			return
		}
	case v.Type() == durationType:
		want, hint = "a duration such as 300ms or 10m", unitHint(n)
		if x, ok := n.duration(); ok {
			v.SetInt(int64(x))
			return
		}
	case k == reflect.Bool:
		want = "true or false"
		if n.kind == scalar && n.tag == "!!bool" {
			v.SetBool(strings.EqualFold(n.text, "true"))
			return
		}
	case v.CanInt():
		want = wholeRange(v.Type())
		if x, err := strconv.ParseInt(n.whole(), 0, v.Type().Bits()); err == nil {
			v.SetInt(x)
			return
		}
	case v.CanUint():
		want = wholeRange(v.Type())
		if x, err := strconv.ParseUint(n.whole(), 0, v.Type().Bits()); err == nil {
			v.SetUint(x)
			return
		}
	case v.CanFloat():
		want = "a number"
		if x, ok := n.number(); ok {
			v.SetFloat(x)
			return
		}
	default:
		panic(fmt.Sprintf("conf: %s cannot be decoded", v.Type()))
	}
	if n.quoted && hint == "" && want != "text" {
		hint = "; without quotes"
	}
	d.mistake(n, path, "must be %s, not %s%s", want, n.describe(), hint)
}

// duration is the scalar as a duration; a bare 0 needs no unit.
func (n *node) duration() (time.Duration, bool) {
	if n.kind != scalar {
		return 0, false
	}
	x, err := time.ParseDuration(n.text)
	return x, err == nil
}

func unitHint(n *node) string {
	if n.kind != scalar || (n.tag != "!!int" && n.tag != "!!float") {
		return ""
	}
	return fmt.Sprintf("; add a unit, such as %sms or %ss", n.text, n.text)
}

// whole is the scalar as the text of a whole number, for strconv with base 0;
// empty if it is none. 1e6 is a whole number too.
func (n *node) whole() string {
	if n.kind != scalar || n.quoted {
		return ""
	}
	switch n.tag {
	case "!!int":
		text := strings.ReplaceAll(n.text, "_", "")
		sign, digits := "", text
		if text != "" && (text[0] == '-' || text[0] == '+') {
			sign, digits = text[:1], text[1:]
		}
		// A leading 0 is a decimal to people and octal to strconv.
		if trimmed := strings.TrimLeft(digits, "0123456789"); trimmed == "" {
			digits = strings.TrimLeft(digits, "0")
			if digits == "" {
				digits = "0"
			}
		}
		return sign + digits
	case "!!float":
		if x, ok := n.number(); ok && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return strconv.FormatInt(int64(x), 10)
		}
	}
	return ""
}

// number is the scalar as a finite number.
func (n *node) number() (float64, bool) {
	if n.kind != scalar || n.quoted {
		return 0, false
	}
	switch n.tag {
	case "!!int":
		if x, err := strconv.ParseInt(n.whole(), 0, 64); err == nil {
			return float64(x), true
		}
		x, err := strconv.ParseFloat(n.whole(), 64)
		return x, err == nil
	case "!!float":
		x, err := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64)
		return x, err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
	}
	return 0, false
}

// plain is a value for any: map[string]any, []any, string, bool, int64,
// uint64, float64 or nil.
func plain(n *node) any {
	switch n.kind {
	case mapping:
		m := make(map[string]any, len(n.entries))
		for _, e := range n.entries {
			m[e.key.text] = plain(e.value)
		}
		return m
	case list:
		s := make([]any, len(n.items))
		for i, item := range n.items {
			s[i] = plain(item)
		}
		return s
	case scalar:
		switch n.tag {
		case "!!bool":
			return strings.EqualFold(n.text, "true")
		case "!!int":
			if x, err := strconv.ParseInt(n.whole(), 0, 64); err == nil {
				return x
			}
			if x, err := strconv.ParseUint(n.whole(), 0, 64); err == nil {
				return x
			}
		}
		if x, ok := n.number(); ok {
			return x
		}
		return n.text
	}
	return nil
}

// A field is a key of a struct.
type field struct {
	name  string
	index []int
	zero  bool // Write keeps it where it is zero
}

// fieldsOf are the keys of a struct in order, those of inlined structs among
// them. Fields without a yaml tag have no key.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("yaml")
		if !ok || !f.IsExported() || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if options == "inline" {
			for _, in := range fieldsOf(f.Type) {
				in.index = append([]int{i}, in.index...)
				fields = append(fields, in)
			}
			continue
		}
		fields = append(fields, field{name: name, index: []int{i}, zero: options == "zero"})
	}
	return fields
}

// Keys are the dotted paths of all keys that a struct can be read from, in
// order; what lies inside maps and lists is not among them.
func Keys(v any) []string {
	var keys []string
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		for _, f := range fieldsOf(t) {
			ft := t.FieldByIndex(f.index).Type
			if ft.Kind() == reflect.Struct && !textual(ft) {
				walk(ft, join(path, f.name))
				continue
			}
			keys = append(keys, join(path, f.name))
		}
	}
	walk(reflect.TypeOf(v), "")
	return keys
}
