package rego

import "github.com/open-policy-agent/opa/v1/ast"

// ReadsTime reports whether the source reads input.request.time. It counts as read where input or input.request is used as a whole.
func (p *Policy) ReadsTime() bool { return p.readsTime }

// readsTime reports whether a module reads input.request.time, or a document that has it.
func readsTime(module *ast.Module) bool {
	found := false
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		found = found || ref.HasPrefix(ast.InputRootRef) && mayBeTime(ref[1:])
		return found
	})
	return found
}

// mayBeTime reports whether a path in input leads to request.time, or to a document that has it.
func mayBeTime(path ast.Ref) bool {
	for i, name := range []ast.Value{ast.String("request"), ast.String("time")} {
		if i == len(path) {
			return true
		}
		if _, constant := path[i].Value.(ast.String); constant && path[i].Value.Compare(name) != 0 {
			return false
		}
	}
	return true
}
