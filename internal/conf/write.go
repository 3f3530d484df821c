package conf

import (
	"encoding"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Write is v as YAML that Read takes: keys in the order of the fields, those of
// maps sorted, durations as 300ms. Fields that are zero are left out, since a
// zero option means its documented default, unless their tag has the option
// zero (`yaml:"seed,zero"`).
func Write(v any) ([]byte, error) {
	y, err := encode(reflect.ValueOf(v))
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	data, err := yaml.Dump(y, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return data, nil
}

// Duration is d as people write it: 10m, not 10m0s.
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func scalarNode(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

func encode(v reflect.Value) (*yaml.Node, error) {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		if v.IsNil() {
			return scalarNode("!!null", "null"), nil
		}
		if m, ok := v.Interface().(encoding.TextMarshaler); ok {
			if y, err := encodeText(m); y != nil || err != nil {
				return y, err
			}
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return scalarNode("!!null", "null"), nil
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		if y, err := encodeText(m); y != nil || err != nil {
			return y, err
		}
	}
	switch k := v.Kind(); {
	case v.Type() == durationType:
		return scalarNode("!!str", Duration(time.Duration(v.Int()))), nil
	case k == reflect.String:
		return scalarNode("!!str", v.String()), nil
	case k == reflect.Bool:
		return scalarNode("!!bool", strconv.FormatBool(v.Bool())), nil
	case v.CanInt():
		return scalarNode("!!int", strconv.FormatInt(v.Int(), 10)), nil
	case v.CanUint():
		return scalarNode("!!int", strconv.FormatUint(v.Uint(), 10)), nil
	case v.CanFloat():
		return encodeFloat(v.Float())
	case k == reflect.Struct:
		return encodeStruct(v)
	case k == reflect.Map && v.Type().Key().Kind() == reflect.String:
		return encodeMap(v)
	case k == reflect.Slice:
		return encodeList(v)
	}
	return nil, fmt.Errorf("a value of type %s has no YAML", v.Type())
}

// encodeText is nil for a value that has no text.
func encodeText(m encoding.TextMarshaler) (*yaml.Node, error) {
	text, err := m.MarshalText()
	if err != nil || text == nil {
		return nil, err
	}
	if _, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return scalarNode("!!int", string(text)), nil // its reader takes the scalar as written, so quotes would only puzzle
	}
	if x, err := strconv.ParseFloat(string(text), 64); err == nil && !math.IsInf(x, 0) && !math.IsNaN(x) {
		if y, err := encodeFloat(x); err == nil && y.Value == string(text) {
			return y, nil
		}
	}
	return scalarNode("!!str", string(text)), nil
}

func encodeFloat(x float64) (*yaml.Node, error) {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil, fmt.Errorf("%g is not a finite number", x)
	}
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if strings.ContainsAny(text, ".e") {
		return scalarNode("!!float", text), nil
	}
	return scalarNode("!!int", text), nil
}

func encodeStruct(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsOf(v.Type()) {
		x := v.FieldByIndex(f.index)
		if void(x) && !f.zero {
			continue
		}
		y, err := encode(x)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		n.Content = append(n.Content, scalarNode("!!str", f.name), y)
	}
	return n, nil
}

// void says whether a field has nothing to write: zero, or a struct, map or
// list without content.
func void(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	case reflect.Struct:
		if _, ok := v.Interface().(encoding.TextMarshaler); ok {
			return v.IsZero()
		}
		return !slices.ContainsFunc(fieldsOf(v.Type()), func(f field) bool { return f.zero || !void(v.FieldByIndex(f.index)) })
	}
	return v.IsZero()
}

func encodeMap(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	values := map[string]reflect.Value{}
	for it := v.MapRange(); it.Next(); {
		values[it.Key().String()] = it.Value()
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		y, err := encode(values[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		n.Content = append(n.Content, scalarNode("!!str", key), y)
	}
	return n, nil
}

func encodeList(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if e := v.Type().Elem(); e == durationType || (leaf(e) && e.Kind() != reflect.String) {
		n.Style = yaml.FlowStyle
	}
	for i := range v.Len() {
		y, err := encode(v.Index(i))
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		n.Content = append(n.Content, y)
	}
	return n, nil
}
