package fastpath

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Program is the compiled form of a policy's rules. It is immutable and safe for concurrent use.
type Program struct {
	entries   []*document
	documents int // how many have an index
}

// document is a rule without arguments, with all its definitions.
type document struct {
	index  int
	name   ast.String
	inLib  bool // it is in data.lib
	helper bool // its value is shared by the policies of a request
	set    bool // its elements are defined one by one
	// unknown is true if the form of its rules is not supported.
	unknown bool
	clauses []*clause
	fields  []field   // of a rule that is defined by keys, or nil
	initial *ast.Term // the value of the default rule, or nil
}

// field is the definitions of one key.
type field struct {
	key     *ast.Term
	clauses []*clause
}

// function is a rule with arguments, with all its definitions.
type function struct {
	unknown bool
	clauses []*clause
}

// clause is one definition, and what its else is.
type clause struct {
	args      []pattern
	body      *body
	slots     int
	otherwise *clause
}

// body is a list of expressions with what happens when all hold.
type body struct {
	steps []step
	end   endKind
	// out is the value of the head, or the term of the comprehension; key is the key of an object.
	out, key operand
}

type endKind int

const (
	endFound  endKind = iota // the body holds
	endValue                 // out is the value of a rule
	endArray                 // out is an element
	endSet                   // out is an element
	endObject                // out is a value
)

// step is one expression.
type step struct {
	kind     stepKind
	ref      *reference
	operand  operand
	args     []operand
	target   pattern
	function *function
	inner    *body
	builtin  topdown.BuiltinFunc
	fast     fastBuiltin
	many     bool      // the built-in function can return several values
	output   *ast.Term // the term that the result of a built-in function is unified with, or nil
	// key and value are the variables of an every; key is -1 without one.
	key, value int
}

type stepKind int

const (
	stepUnknown stepKind = iota
	stepValue
	stepReference
	stepNot
	stepFunction
	stepBuiltin
	stepComprehension
	stepEvery
)

// operand is a term all variables of which are bound.
type operand struct {
	kind  operandKind
	term  *ast.Term
	slot  int
	parts []operand // of an object: keys and values in turn
}

type operandKind int

const (
	operandConstant operandKind = iota
	operandVariable
	operandArray
	operandSet
	operandObject
)

// pattern is what a value is unified with.
type pattern struct {
	kind    patternKind
	slot    int
	operand operand
	parts   []pattern
}

type patternKind int

const (
	patternTrue patternKind = iota // every value except false
	patternBind
	patternEqual
	patternArray
)

// reference is a path into a value.
type reference struct {
	base     baseKind
	slot     int
	document *document
	path     []pathStep
}

type baseKind int

const (
	baseInput baseKind = iota
	baseParameters
	baseCluster
	baseDocument
	baseVariable
)

// pathStep is one key of a path. A free key is bound to each key of the value in turn.
type pathStep struct {
	kind pathKind
	term *ast.Term
	slot int
}

type pathKind int

const (
	pathConstant pathKind = iota
	pathBound
	pathFree
)
