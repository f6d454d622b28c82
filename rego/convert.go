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

// object converts a Kubernetes object, without its managedFields; null for nil.
func (c *converter) object(object map[string]any) (*ast.Term, error) {
	if object == nil {
		return ast.NullTerm(), nil
	}
	metadata, _ := object["metadata"].(map[string]any)
	if _, managed := metadata["managedFields"]; !managed {
		return c.value(object, 0)
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
	return c.value(copied, 0)
}

func (c *converter) value(value any, depth int) (*ast.Term, error) {
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
			term, err := c.value(field, depth+1)
			if err != nil {
				return nil, err
			}
			c.weight += 1 + len(name)/64
			c.items = append(c.items, [2]*ast.Term{keyTerm(name), term})
		}
		return c.objectOf(from), nil
	case []any:
		terms := make([]*ast.Term, len(v))
		for i, element := range v {
			term, err := c.value(element, depth+1)
			if err != nil {
				return nil, err
			}
			terms[i] = term
		}
		return c.term(ast.NewArray(terms...)), nil
	case map[string]string:
		return c.texts(v), nil
	case []string:
		return c.list(v), nil
	default:
		return nil, fmt.Errorf("a value of type %T is not JSON", value)
	}
}

// floatTerm converts a number that JSON has decoded as float64, which is the type of all numbers that encoding/json decodes.
func floatTerm(v float64) (*ast.Term, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, fmt.Errorf("%v is not JSON", v)
	}
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return ast.InternedTerm(int(v)), nil
	}
	return ast.NumberTerm(json.Number(strconv.FormatFloat(v, 'g', -1, 64))), nil
}

func (c *converter) texts(texts map[string]string) *ast.Term {
	from := len(c.items)
	for name, text := range texts {
		c.weight += 2 + (len(name)+len(text))/64
		c.items = append(c.items, [2]*ast.Term{keyTerm(name), c.term(ast.String(text))})
	}
	return c.objectOf(from)
}

func (c *converter) list(texts []string) *ast.Term {
	terms := make([]*ast.Term, len(texts))
	for i, text := range texts {
		c.weight += 1 + len(text)/64
		terms[i] = c.term(ast.String(text))
	}
	return c.term(ast.NewArray(terms...))
}

func (c *converter) lists(lists map[string][]string) *ast.Term {
	items := make([][2]*ast.Term, 0, len(lists))
	for name, texts := range lists {
		items = append(items, [2]*ast.Term{keyTerm(name), c.list(texts)})
	}
	return ast.ObjectTerm(items...)
}
