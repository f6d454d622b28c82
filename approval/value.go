package approval

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// vacant reports whether a value counts as absent.
func vacant(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return v == nil
	default:
		return false
	}
}

// hollow reports whether a map has no content.
func hollow(m map[string]any) bool {
	for _, value := range m {
		if value != nil {
			return false
		}
	}
	return true
}

// names returns the position of each item by its name, or nil unless all items have a unique name. User-specified fields are merged with those of a
// template by the same rule.
func names(list []any) map[string]int {
	positions := make(map[string]int, len(list))
	for i, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		if _, again := positions[name]; name == "" || again {
			return nil
		}
		positions[name] = i
	}
	return positions
}

func nameOf(item any) string {
	m, _ := item.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// sameScalar reports whether two values that are neither maps nor lists are equal as JSON.
func sameScalar(a, b any) bool {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && x == y
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	default:
		x2, isNumber := number(a)
		y2, otherIsNumber := number(b)
		if isNumber && otherIsNumber {
			return x2 == y2
		}
		return reflect.DeepEqual(a, b)
	}
}

// number returns the text of a number in a form that is the same for equal numbers.
func number(value any) (string, bool) {
	switch n := value.(type) {
	case json.Number:
		return canonical(string(n)), true
	case int64:
		return strconv.FormatInt(n, 10), true
	case float64:
		return canonical(strconv.FormatFloat(n, 'g', -1, 64)), true
	case int:
		return strconv.Itoa(n), true
	default:
		return "", false
	}
}

// canonical converts numbers such as 1.0 and 1e3 to the form of integers, as far as they are exact. Integers of any size are not changed.
func canonical(text string) string {
	const exact = 1 << 53
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	if f == math.Trunc(f) && math.Abs(f) < exact {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
