package rego

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a policy.
type Problem struct {
	// Code is a short word for the kind of problem; see the Code constants.
	Code string
	// Row and Column are where in the source it is, counted from 1; 0 when it is
	// not about the source.
	Row, Column int
	// Line is the text of that row.
	Line string
	// Field is the path of the problem when it is about the parameters or their
	// schema, such as parameters.networks[0].
	Field string
	// Message is what is wrong and, where that is not obvious, what to do.
	Message string
}

// The values of Problem.Code.
const (
	// CodeLimit: the source or the work that it requires is larger than allowed.
	CodeLimit = "limit"
	// CodeParse: the source is not Rego v1.
	CodeParse = "parse"
	// CodeEntry: an entry rule is missing or has the wrong shape.
	CodeEntry = "entry"
	// CodeReference: a reference to data that policies cannot read.
	CodeReference = "reference"
	// CodeBuiltin: a call of a built-in function that is not available.
	CodeBuiltin = "builtin"
	// CodeType: a value is used with a wrong type, or a field does not exist.
	CodeType = "type"
	// CodeCompile: any other error of Rego's compiler.
	CodeCompile = "compile"
	// CodeMetadata: an invalid METADATA annotation.
	CodeMetadata = "metadata"
	// CodeSchema: parametersSchema is not a structural schema.
	CodeSchema = "schema"
	// CodeParameters: the parameters do not satisfy parametersSchema.
	CodeParameters = "parameters"
	// CodeEvaluation: a built-in function failed on this input.
	CodeEvaluation = "evaluation"
	// CodeResult: an entry rule returned something that is not a finding.
	CodeResult = "result"
)

// String is "row:column: message", "field: message" or the message alone.
func (p Problem) String() string {
	switch {
	case p.Row > 0:
		return fmt.Sprintf("%d:%d: %s", p.Row, p.Column, p.Message)
	case p.Field != "":
		return p.Field + ": " + p.Message
	default:
		return p.Message
	}
}

// CompileError is why a policy was not compiled: all problems, in the order of the source.
type CompileError struct {
	Problems []Problem
}

// Error lists the problems, one on each line.
func (e *CompileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// EvaluationError is why a policy has no result for an input.
type EvaluationError struct {
	Policy  string
	Problem Problem
}

func (e *EvaluationError) Error() string { return e.Problem.String() }
