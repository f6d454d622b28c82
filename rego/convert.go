package rego

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/vmstencil/stencil/rego/internal/sandbox"
	"github.com/vmstencil/stencil/rego/schema"
)

// converter converts JSON values to values of Rego. OPA's own conversion is not used because it goes through reflection and JSON text.
type converter struct {
	weight int // of the values converted so far, as in weigh
	// terms are unused terms, made many at a time: an input has hundreds.
	terms []ast.Term
	// items is used again for each object; values of objects that are not complete are before the end.
	items [][2]*ast.Term
}

// termsAtATime is the number of terms for which memory is allocated together.
const termsAtATime = 64

func (c *converter) term(value ast.Value) *ast.Term {
	if len(c.terms) == 0 {
		c.terms = make([]ast.Term, termsAtATime)
	}
	term := &c.terms[0]
	c.terms = c.terms[1:]
	term.Value = value
	return term
}

// objectOf makes an object of the items from a position on, and removes them.
func (c *converter) objectOf(from int) *ast.Term {
	object := c.term(ast.NewObject(c.items[from:]...))
	c.items = c.items[:from]
	return object
}

// knownKeys are terms for the names of the fields of inputs. Terms are immutable, so that all inputs share them.
var knownKeys = sync.OnceValue(func() map[string]*ast.Term {
	keys := map[string]*ast.Term{}
	for _, name := range schema.FieldNames() {
		keys[name] = ast.StringTerm(name)
	}
	return keys
})

func keyTerm(name string) *ast.Term {
	if term, known := knownKeys()[name]; known {
		return term
	}
	return ast.StringTerm(name)
}

// object converts what is read of a Kubernetes object, without its managedFields; null for nil.
func (c *converter) object(object map[string]any, read *fields) (*ast.Term, error) {
	if object == nil {
		return ast.InternedNullTerm, nil
	}
	metadata, _ := object["metadata"].(map[string]any)
	if _, managed := metadata["managedFields"]; !managed {
		return c.value(object, 0, read)
	}
	without := make(map[string]any, len(metadata))
	for name, value := range metadata {
		if name != "managedFields" {
			without[name] = value
		}
	}
	copied := make(map[string]any, len(object))
	for name, value := range object {
		copied[name] = value
	}
	copied["metadata"] = without
	return c.value(copied, 0, read)
}

// value converts what is read of a value; null if nothing is. All of it is checked and has its weight, so that the limits of an evaluation do not depend on
// what else is evaluated with it.
func (c *converter) value(value any, depth int, read *fields) (*ast.Term, error) {
	if read == nil {
		return ast.InternedNullTerm, c.skip(value, depth)
	}
	if depth > sandbox.MaxDepth {
		return nil, sandbox.ErrDeep
	}
	c.weight++
	switch v := value.(type) {
	case nil:
		return ast.InternedNullTerm, nil
	case bool:
		return ast.InternedTerm(v), nil
	case string:
		c.weight += len(v) / 64
		return c.term(ast.String(v)), nil
	case int64:
		if v == int64(int(v)) {
			return ast.InternedTerm(int(v)), nil
		}
		return ast.NumberTerm(json.Number(strconv.FormatInt(v, 10))), nil
	case int:
		return ast.InternedTerm(v), nil
	case int32:
		return ast.InternedTerm(int(v)), nil
	case float64:
		return floatTerm(v)
	case json.Number:
		if err := sandbox.CheckNumber(string(v)); err != nil {
			return nil, err
		}
		return ast.NumberTerm(v), nil
	case map[string]any:
		from := len(c.items)
		for name, field := range v {
			c.weight += 1 + len(name)/64
			below := read.of(name)
			term, err := c.value(field, depth+1, below)
			if err != nil {
				return nil, err
			}
			if below == nil {
				continue
			}
			c.items = append(c.items, [2]*ast.Term{keyTerm(name), term})
		}
		return c.objectOf(from), nil
	case []any:
		item := read.item()
		terms := make([]*ast.Term, len(v))
		for i, element := range v {
			term, err := c.value(element, depth+1, item)
			if err != nil {
				return nil, err
			}
			terms[i] = term
		}
		return c.term(ast.NewArray(terms...)), nil
	case map[string]string:
		return c.texts(v, read), nil
	case []string:
		return c.list(v, read), nil
	default:
		return nil, errNotJSON(value)
	}
}

// skip checks and weighs a value like value does, and converts nothing.
func (c *converter) skip(value any, depth int) error {
	if depth > sandbox.MaxDepth {
		return sandbox.ErrDeep
	}
	c.weight++
	switch v := value.(type) {
	case nil, bool, int64, int, int32:
	case string:
		c.weight += len(v) / 64
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errNotFinite(v)
		}
	case json.Number:
		return sandbox.CheckNumber(string(v))
	case map[string]any:
		for name, field := range v {
			c.weight += 1 + len(name)/64
			if err := c.skip(field, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range v {
			if err := c.skip(element, depth+1); err != nil {
				return err
			}
		}
	case map[string]string:
		c.texts(v, nil)
	case []string:
		c.list(v, nil)
	default:
		return errNotJSON(value)
	}
	return nil
}

func errNotJSON(value any) error       { return fmt.Errorf("a value of type %T is not JSON", value) }
func errNotFinite(value float64) error { return fmt.Errorf("%v is not JSON", value) }

// floatTerm converts a number that JSON has decoded as float64, which is the type of all numbers that encoding/json decodes.
func floatTerm(v float64) (*ast.Term, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, errNotFinite(v)
	}
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return ast.InternedTerm(int(v)), nil
	}
	return ast.NumberTerm(json.Number(strconv.FormatFloat(v, 'g', -1, 64))), nil
}

func (c *converter) texts(texts map[string]string, read *fields) *ast.Term {
	from := len(c.items)
	for name, text := range texts {
		c.weight += 2 + (len(name)+len(text))/64
		if read.of(name) != nil {
			c.items = append(c.items, [2]*ast.Term{keyTerm(name), c.term(ast.String(text))})
		}
	}
	if read == nil {
		return ast.InternedNullTerm
	}
	return c.objectOf(from)
}

func (c *converter) list(texts []string, read *fields) *ast.Term {
	if read == nil {
		for _, text := range texts {
			c.weight += 1 + len(text)/64
		}
		return ast.InternedNullTerm
	}
	terms := make([]*ast.Term, len(texts))
	for i, text := range texts {
		c.weight += 1 + len(text)/64
		terms[i] = c.term(ast.String(text))
	}
	return c.term(ast.NewArray(terms...))
}

func (c *converter) lists(lists map[string][]string, read *fields) *ast.Term {
	from := len(c.items)
	for name, texts := range lists {
		term := c.list(texts, read.of(name))
		if read.of(name) != nil {
			c.items = append(c.items, [2]*ast.Term{keyTerm(name), term})
		}
	}
	if read == nil {
		return ast.InternedNullTerm
	}
	return c.objectOf(from)
}
