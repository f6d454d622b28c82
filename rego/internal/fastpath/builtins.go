package fastpath

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// fastBuiltin is a common function without the cost of a general call. It returns nil for what only the function itself decides, such as operands of
// a wrong type.
type fastBuiltin func(m *machine, args []operand, base int) *ast.Term

var fastBuiltins = map[string]fastBuiltin{
	"internal.member_2": member,
	"startswith":        texts(strings.HasPrefix),
	"endswith":          texts(strings.HasSuffix),
	"contains":          texts(strings.Contains),
	"count":             count,
	"object.get":        objectGet,
	"equal":             comparison(func(order int) bool { return order == 0 }),
	"neq":               comparison(func(order int) bool { return order != 0 }),
	"gt":                comparison(func(order int) bool { return order > 0 }),
	"gte":               comparison(func(order int) bool { return order >= 0 }),
	"lt":                comparison(func(order int) bool { return order < 0 }),
	"lte":               comparison(func(order int) bool { return order <= 0 }),
	"is_string":         isType(func(value ast.Value) bool { _, ok := value.(ast.String); return ok }),
	"is_number":         isType(func(value ast.Value) bool { _, ok := value.(ast.Number); return ok }),
}

func texts(test func(a, b string) bool) fastBuiltin {
	return func(m *machine, args []operand, base int) *ast.Term {
		a, isText := m.value(&args[0], base).Value.(ast.String)
		b, areTexts := m.value(&args[1], base).Value.(ast.String)
		if !isText || !areTexts {
			return nil
		}
		return ast.InternedTerm(test(string(a), string(b)))
	}
}

func comparison(test func(order int) bool) fastBuiltin {
	return func(m *machine, args []operand, base int) *ast.Term {
		return ast.InternedTerm(test(ast.Compare(m.value(&args[0], base).Value, m.value(&args[1], base).Value)))
	}
}

func isType(test func(ast.Value) bool) fastBuiltin {
	return func(m *machine, args []operand, base int) *ast.Term {
		if !test(m.value(&args[0], base).Value) {
			return nil
		}
		return ast.InternedTerm(true)
	}
}

func member(m *machine, args []operand, base int) *ast.Term {
	set, ok := m.value(&args[1], base).Value.(ast.Set)
	if !ok {
		return nil
	}
	return ast.InternedTerm(set.Contains(m.value(&args[0], base)))
}

func count(m *machine, args []operand, base int) *ast.Term {
	switch value := m.value(&args[0], base).Value.(type) {
	case *ast.Array:
		return ast.InternedTerm(value.Len())
	case ast.Object:
		return ast.InternedTerm(value.Len())
	case ast.Set:
		return ast.InternedTerm(value.Len())
	}
	return nil
}

// objectGet decides object.get with a single key. A path is an array.
func objectGet(m *machine, args []operand, base int) *ast.Term {
	object, ok := m.value(&args[0], base).Value.(ast.Object)
	key := m.value(&args[1], base)
	if _, isPath := key.Value.(*ast.Array); !ok || isPath {
		return nil
	}
	if value := object.Get(key); value != nil {
		return value
	}
	return m.value(&args[2], base)
}
