package rego

import (
	"context"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
)

// Coverage collects which rows of a policy evaluations have reached. It is safe for
// concurrent use.
type Coverage struct{ cover *cover.Cover }

// NewCoverage returns a Coverage without rows.
func NewCoverage() *Coverage { return &Coverage{cover.New()} }

// EvaluateCovered evaluates like Evaluate, and adds the rows that it reaches. It is several times slower.
func (p *Policy) EvaluateCovered(ctx context.Context, in *Input, coverage *Coverage) (Result, error) {
	found, err := p.run(ctx, in, coverage.cover)
	if err != nil {
		return Result{}, err
	}
	return p.result(p.values(found))
}

// Rows returns the rows of a policy's source that evaluations have reached, and those that they have not reached completely. Rows without anything to
// evaluate are in neither.
func (c *Coverage) Rows(p *Policy) (covered, missed []int) {
	module, problems := p.program.source.parse(sourceFile, nil)
	if len(problems) > 0 {
		return nil, nil
	}
	report := c.cover.Report(map[string]*ast.Module{sourceFile: module})
	file := report.Files[sourceFile]
	if file == nil {
		return nil, nil
	}
	missed = rowsOf(file.NotCovered)
	covered = slices.DeleteFunc(rowsOf(file.Covered), func(row int) bool { return slices.Contains(missed, row) })
	return covered, missed
}

func rowsOf(ranges []cover.Range) []int {
	var rows []int
	for _, r := range ranges {
		for row := r.Start.Row; row <= r.End.Row; row++ {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}
