package rego

import (
	"github.com/open-policy-agent/opa/v1/types"
)

// typeName returns a type in the form of messages. OPA lists all fields of objects, which for a VirtualMachine are thousands.
func typeName(t types.Type) string {
	switch t := t.(type) {
	case nil:
		return "value of unknown type"
	case *types.NamedType:
		return typeName(t.Type)
	case *types.Recursive:
		return typeName(t.Unwrap())
	case *types.Array:
		return "array"
	case *types.Object:
		return "object"
	case *types.Set:
		return "set"
	case types.Any:
		if len(t) == 0 {
			return "any value"
		}
		text := ""
		for i, part := range t {
			if i > 0 {
				text += " or "
			}
			if i == 3 {
				return text + "…"
			}
			text += typeName(part)
		}
		return text
	case *types.Function:
		return "function"
	default:
		return types.Sprint(t)
	}
}
