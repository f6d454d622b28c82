package input

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// Redact leaves out of a decision what evaluations that failed say of the values that they
// failed at: a function that cannot read a password quotes it. Where it happened, and in
// which function, stays. What policies say in their own words is theirs.
//
// It is for whoever tells the decision to others than the person who asked.
func Redact(d *policyset.Decision) {
	brief := map[string]string{}
	for i := range d.Evaluations {
		e := &d.Evaluations[i]
		if text := briefly(e.Err); text != "" {
			brief[e.Policy] = "could not be evaluated: " + text
			e.Err = errors.New(text)
		}
	}
	if len(brief) == 0 {
		return
	}
	for _, list := range [][]policyset.Violation{d.Denials, d.Warnings, d.Audited} {
		for i := range list {
			if text, found := brief[list[i].Policy]; found && list[i].Failure {
				list[i].Message = text
			}
		}
	}
}

// RedactFor is Redact for the person who asked, who may know all of the object but not the
// values of sensitive parameters. Without such parameters nothing is left out.
func (c *Case) RedactFor(d *policyset.Decision) {
	if len(c.secrets()) > 0 {
		Redact(d)
	}
}

// function is what the message of an error of a built-in function begins with.
var function = regexp.MustCompile(`^[a-z0-9_.]+: `)

// briefly is what may be said of an error; empty when that is all of it.
func briefly(err error) string {
	var failed *rego.EvaluationError
	if !errors.As(err, &failed) || failed.Problem.Code == rego.CodeLimit {
		return ""
	}
	text := "an error"
	if name := function.FindString(failed.Problem.Message); name != "" {
		text = strings.TrimSuffix(name, ": ") + " failed"
	}
	if failed.Problem.Row > 0 {
		return fmt.Sprintf("%d:%d: %s", failed.Problem.Row, failed.Problem.Column, text)
	}
	return text
}
