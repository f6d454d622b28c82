package template

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// same reports whether a scalar of the template and a value of the VirtualMachine are equal under the schema s. Numbers are
// compared by value, and so are types for which KubeVirt may use another spelling than the template: quantities, times, and
// integers that may be strings.
func (s *schema) same(k kind, text string, v any) bool {
	switch v := v.(type) {
	case string:
		switch k {
		case kindString:
			return text == v || s.equivalent(text, v)
		case kindNumber:
			return s.equivalent(text, v)
		default:
			return false
		}
	case bool:
		return k == kindBool && (text == "true") == v
	case int64, float64, json.Number:
		switch k {
		case kindNumber:
			return sameNumber(text, v) || s.shape == shapeQuantity && s.equivalent(text, numberText(v))
		case kindString:
			return s.equivalent(text, numberText(v))
		default:
			return false
		}
	default:
		return k == kindNull && isEmpty(v)
	}
}

// equivalent reports whether two texts are spellings of the same value under the schema s.
func (s *schema) equivalent(a, b string) bool {
	switch s.shape {
	case shapeIntOrString:
		return a == b
	case shapeQuantity:
		if a == b {
			return true
		}
		p, pok := quantity(a)
		q, qok := quantity(b)
		return pok && qok && p.Cmp(q) == 0
	case shapeTime:
		// Kubernetes stores times with a resolution of seconds.
		p, perr := time.Parse(time.RFC3339, a)
		q, qerr := time.Parse(time.RFC3339, b)
		return perr == nil && qerr == nil && p.Truncate(time.Second).Equal(q.Truncate(time.Second))
	default:
		return false
	}
}

// sameNumber compares numbers by value: exactly if an int64 can hold them, others as float64, as an API server stores them.
func sameNumber(text string, v any) bool {
	if other, ok := v.(json.Number); ok && text == string(other) {
		return true
	}
	a, aInt := integer(text)
	b, bInt := int64(0), false
	switch v := v.(type) {
	case int64:
		b, bInt = v, true
	case json.Number:
		b, bInt = integer(string(v))
	}
	if aInt && bInt {
		return a == b
	}
	x, xok := float(text)
	y, yok := float(numberText(v))
	return xok && yok && x == y && (!aInt && !bInt || math.Abs(x) <= 1<<53)
}

func integer(text string) (int64, bool) {
	if !isInteger(text) {
		return 0, false
	}
	i, err := strconv.ParseInt(text, 10, 64)
	return i, err == nil
}

func float(text string) (float64, bool) {
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

// numberText returns the text of a number; integers retain every digit.
func numberText(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return strconv.FormatInt(int64(v), 10)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return string(v.(json.Number))
	}
}

// isEmpty reports whether a value is equivalent to none.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// zero reports whether a scalar is the zero value of its Go type.
func (n *node) zero() bool {
	switch n.kind {
	case kindString:
		return n.text == ""
	case kindNumber:
		f, ok := float(n.text)
		return ok && f == 0
	case kindBool:
		return n.text == "false"
	default:
		return n.kind == kindNull
	}
}

// accept ends the comparison if v does not have a Go type that JSON is decoded to.
func (m *matcher) accept(v any) {
	switch v.(type) {
	case nil, string, bool, int64, float64, json.Number, []any, map[string]any:
	default:
		if m.err == nil {
			m.err = fmt.Errorf("a value of Go type %T is not decoded JSON", v)
		}
	}
}

// units are the suffixes of a quantity, with their values.
var units = []struct {
	suffix string
	base   int64
	power  int32
}{
	{"", 10, 0},
	{"Ki", 2, 10}, {"Mi", 2, 20}, {"Gi", 2, 30}, {"Ti", 2, 40}, {"Pi", 2, 50}, {"Ei", 2, 60},
	{"m", 10, -3}, {"k", 10, 3}, {"M", 10, 6}, {"G", 10, 9}, {"T", 10, 12}, {"P", 10, 15}, {"E", 10, 18},
	{"u", 10, -6}, {"n", 10, -9},
}

// spellings returns the ways to write a quantity as a plain number and a unit. KubeVirt changes the unit, 1024Mi to 1Gi for
// example, so that it may differ from the unit in a template with ${N}Mi.
func spellings(text string) []string {
	const longest = 40
	q, ok := quantity(text)
	if !ok {
		return nil
	}
	amount := q.AsDec()
	var all []string
	for _, unit := range units {
		// unscaled × 10^-scale, divided by the unit. Dividing by 2 is multiplying by 5 and dividing by 10.
		unscaled, scale := new(big.Int).Set(amount.UnscaledBig()), int32(amount.Scale())+unit.power
		if unit.base == 2 {
			unscaled.Mul(unscaled, new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(unit.power)), nil))
		}
		if spelt := decimal(unscaled, scale); len(spelt) <= longest {
			all = append(all, spelt+unit.suffix)
		}
	}
	return all
}

// decimal returns unscaled × 10^-scale without an exponent.
func decimal(unscaled *big.Int, scale int32) string {
	const most = 1 << 11 // longer texts would be useless
	if unscaled.Sign() == 0 {
		return "0"
	}
	if scale < -most || scale > most {
		return strings.Repeat(" ", most)
	}
	digits, sign := unscaled.String(), ""
	if digits[0] == '-' {
		digits, sign = digits[1:], "-"
	}
	if scale <= 0 {
		return sign + digits + strings.Repeat("0", int(-scale))
	}
	if missing := int(scale) - len(digits) + 1; missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - int(scale)
	fraction := strings.TrimRight(digits[point:], "0")
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + digits[:point] + fraction
}
