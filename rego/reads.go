package rego

import (
	"crypto/sha256"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// anyKey stands for a key or an index that is not a constant string. No key of a document has it.
const anyKey = "\xff"

// Reads reports whether the policy may read the place at a path in input, something below it, or a document that has it. A document that is passed
// to a function or assigned to a variable counts as read as a whole.
func (p *Policy) Reads(at ...string) bool {
	return slices.ContainsFunc(p.program.reads, func(read []string) bool { return overlaps(read, at) })
}

// overlaps reports whether one of two paths may be the beginning of the other.
func overlaps(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && a[i] != anyKey && b[i] != anyKey {
			return false
		}
	}
	return true
}

// ReadsTime reports whether the policy may read input.request.time.
func (p *Policy) ReadsTime() bool { return p.Reads("request", "time") }

// ReadsUser reports whether the policy may read input.request.userInfo.
func (p *Policy) ReadsUser() bool { return p.Reads("request", "userInfo") }

// readsOf returns the paths in input that modules refer to, without those below others.
func readsOf(modules ...*ast.Module) [][]string {
	var all [][]string
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(node any) bool {
		var operands []*ast.Term
		switch node := node.(type) {
		case ast.Ref:
			if node.HasPrefix(ast.InputRootRef) {
				all = append(all, pathOf(node[1:]))
			}
			return false
		case ast.Call:
			operands = operandsOfGet(node)
		case *ast.Expr:
			if terms, isCall := node.Terms.([]*ast.Term); isCall && len(node.With) == 0 {
				operands = operandsOfGet(terms)
			}
		}
		if operands == nil {
			return false
		}
		from := operands[0].Value.(ast.Ref)
		path := pathOf(from[1:])
		switch keys := operands[1].Value.(type) {
		case *ast.Array:
			keys.Foreach(func(key *ast.Term) { path = append(path, pathOf([]*ast.Term{key})...) })
		default:
			path = append(path, pathOf(operands[1:2])...)
		}
		all = append(all, path)
		for _, term := range slices.Concat([]*ast.Term(from[1:]), operands[1:]) {
			visitor.Walk(term)
		}
		return true
	})
	for _, module := range modules {
		visitor.Walk(module)
	}
	slices.SortFunc(all, slices.Compare)
	var reads [][]string
	for _, read := range all {
		below := func(other []string) bool { return len(other) <= len(read) && slices.Equal(other, read[:len(other)]) }
		if !slices.ContainsFunc(reads, below) {
			reads = append(reads, read)
		}
	}
	return reads
}

// pathOf returns the path of keys.
func pathOf(keys []*ast.Term) []string {
	path := make([]string, 0, len(keys))
	for _, term := range keys {
		key, constant := term.Value.(ast.String)
		if !constant {
			key = anyKey
		}
		path = append(path, string(key))
	}
	return path
}

// operandsOfGet returns the operands of a call of object.get for a document in input and a key or path that is written there, or nil: a path in a
// variable can have any length.
func operandsOfGet(call []*ast.Term) []*ast.Term {
	if len(call) < 4 {
		return nil
	}
	function, isRef := call[0].Value.(ast.Ref)
	if !isRef || !function.Equal(objectGet) {
		return nil
	}
	if from, isRef := call[1].Value.(ast.Ref); !isRef || !from.HasPrefix(ast.InputRootRef) {
		return nil
	}
	switch call[2].Value.(type) {
	case ast.String, *ast.Array:
		return call[1:]
	}
	return nil
}

var objectGet = ast.ObjectGet.Ref()

// Reads are paths in input that policies may read.
type Reads struct{ paths [][]string }

// AddOf adds what a policy may read.
func (r *Reads) AddOf(p *Policy) {
	for _, read := range p.program.reads {
		r.Add(read...)
	}
}

// AddWithin adds what a policy may read of the document at a path.
func (r *Reads) AddWithin(p *Policy, document ...string) {
	for _, read := range p.program.reads {
		if !overlaps(read, document) {
			continue
		}
		if len(read) < len(document) {
			read = document
		}
		r.Add(read...)
	}
}

// Empty reports whether nothing is read.
func (r *Reads) Empty() bool { return len(r.paths) == 0 }

// Add adds a path in input, with everything below it.
func (r *Reads) Add(at ...string) {
	// What is below a computed key, or an item of a list, may be anything.
	if i := slices.Index(at, anyKey); i >= 0 {
		at = at[:i]
	}
	if !slices.ContainsFunc(r.paths, func(other []string) bool { return len(other) <= len(at) && slices.Equal(other, at[:len(other)]) }) {
		r.paths = append(r.paths, at)
	}
}

// Digest returns a digest of what is read of an input. For two inputs with the same digest, policies that read nothing else have the same findings.
func (r *Reads) Digest(in *Input) [sha256.Size]byte {
	sum := sha256.New()
	for _, at := range r.paths {
		ref := make(ast.Ref, len(at))
		for i, key := range at {
			ref[i] = ast.StringTerm(key)
		}
		text := "\x00"
		if value, err := in.term.Value.Find(ref); err == nil {
			// The text of an AST has its keys sorted.
			text = value.String()
		}
		sum.Write([]byte(text))
		sum.Write([]byte{'\n'})
	}
	return [sha256.Size]byte(sum.Sum(nil))
}
