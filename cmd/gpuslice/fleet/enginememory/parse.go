package enginememory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Bounds of the input. The largest config.json that is published has some 300 KiB.
const (
	MaxConfig  = 4 << 20 // bytes of a file
	maxNesting = 32
	maxLayers  = 1024
	maxNames   = 4 * maxLayers // of a list
	maxText    = 8 * maxLayers // bytes of a string that is read: a letter or a number for each layer
	// maxDimension bounds each dimension and count, so that a product of three of them leaves room in an int.
	maxDimension = 1 << 20
)

// object is a JSON object of a configuration. All reads go through its methods, which record each unreadable value.
type object struct {
	values   map[string]any
	problems *[]error
	read     map[string]bool // names that a rule looked up, whether they are there or not; nil: not recorded
}

// value is a field as it stands.
func (o object) value(name string) any {
	if o.read != nil {
		o.read[name] = true
	}
	return o.values[name]
}

// parse reads a JSON object. Python writes Infinity and NaN, which no other JSON has; nothing that is read here is either.
func parse(text []byte) (object, error) {
	if len(text) > MaxConfig {
		return object{}, fmt.Errorf("it has %d bytes, at most %d are read", len(text), MaxConfig)
	}
	plain, err := withoutPythonNumbers(text)
	if err != nil {
		return object{}, err
	}
	o := object{problems: new([]error)}
	if err := json.Unmarshal(plain, &o.values); err != nil {
		return object{}, fmt.Errorf("it is no JSON object: %w", err)
	}
	if o.values == nil {
		return object{}, errors.New("it is no JSON object")
	}
	return o, nil
}

// withoutPythonNumbers writes null for Infinity, -Infinity and NaN outside of strings, and checks the nesting.
func withoutPythonNumbers(text []byte) ([]byte, error) {
	var out []byte
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
			c = text[i]
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > maxNesting {
				return nil, fmt.Errorf("it is nested more than %d deep", maxNesting)
			}
		case c == ']' || c == '}':
			depth--
		default:
			if n := pythonNumber(text[i:]); n > 0 {
				out = append(out, "null"...)
				i += n - 1
				continue
			}
		}
		out = append(out, c)
	}
	return out, nil
}

func pythonNumber(text []byte) int {
	for _, word := range []string{"Infinity", "-Infinity", "NaN"} {
		if bytes.HasPrefix(text, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// in returns the object under the first of the names that has one.
func (o object) in(names ...string) (object, bool) {
	for _, name := range names {
		if values, ok := o.value(name).(map[string]any); ok {
			return object{values: values, problems: o.problems}, true
		}
	}
	return object{values: map[string]any{}, problems: o.problems}, false
}

// int is the first of the names that has a number: a dimension or a count. 0: none has. A list stands for its largest number.
func (o object) int(names ...string) int {
	for _, name := range names {
		if n, ok := o.number(name, o.value(name)); ok {
			return n
		}
	}
	return 0
}

// intAt is int for one layer of models that list a number for each.
func (o object) intAt(layer int, names ...string) int {
	for _, name := range names {
		value := o.value(name)
		if list, ok := value.([]any); ok && layer < len(list) {
			value = list[layer]
		}
		if n, ok := o.number(name, value); ok {
			return n
		}
	}
	return 0
}

func (o object) number(name string, value any) (int, bool) {
	switch v := value.(type) {
	case string, bool:
		if v != false && v != "auto" && v != "" {
			*o.problems = append(*o.problems, fmt.Errorf("%s is %.40q: accepted: a whole number up to %d", name, fmt.Sprint(v), maxDimension))
		}
	case float64:
		if v > maxDimension || v < -1 || v != math.Trunc(v) {
			*o.problems = append(*o.problems, fmt.Errorf("%s is %v: accepted: a whole number up to %d", name, v, maxDimension))
			return 0, false
		}
		return int(max(v, 0)), v >= 0 // -1 stands for none
	case []any:
		largest, found := 0, false
		for _, e := range v {
			if n, ok := e.(float64); ok && n >= 0 && n <= maxDimension {
				largest, found = max(largest, int(n)), true
			}
		}
		return largest, found
	}
	return 0, false
}

// ratio is a number that need not be whole, up to 64; 0: there is none.
func (o object) ratio(name string) float64 {
	r, _ := o.value(name).(float64)
	return min(max(r, 0), 64)
}

func (o object) bool(name string) bool {
	b, _ := o.value(name).(bool)
	return b
}

func (o object) string(names ...string) string {
	for _, name := range names {
		if s, ok := o.value(name).(string); ok && s != "" {
			if len(s) > maxText {
				*o.problems = append(*o.problems, fmt.Errorf("%s has %d bytes, at most %d are read", name, len(s), maxText))
				return ""
			}
			return s
		}
	}
	return ""
}

// strings are those of a list, as far as it is read.
func (o object) strings(names ...string) (out []string) {
	for _, name := range names {
		list, _ := o.value(name).([]any)
		for _, e := range list[:min(len(list), maxNames+1)] {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// ints are the numbers of a list.
func (o object) ints(name string) (out []int) {
	list, _ := o.value(name).([]any)
	for _, e := range list[:min(len(list), maxLayers)] {
		if n, ok := e.(float64); ok && math.Abs(n) <= maxDimension {
			out = append(out, int(n))
		}
	}
	return out
}

// has reports whether a field has a value that switches something on.
func (o object) has(name string) bool { return switchesOn(o.value(name)) }

func switchesOn(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
