package input

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// Redact removes the values at which evaluations failed from the errors in a decision: a
// function that cannot read a password quotes it. The position and the function of the
// failure are retained. The messages of policies are not changed.
//
// It is for decisions that are shown to users other than the sender of the request.
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

// RedactFor is Redact for the sender of the request, who may read all of the object but
// not the values of sensitive parameters. Without such parameters nothing is removed.
func (c *Case) RedactFor(d *policyset.Decision) {
	if len(c.secrets()) > 0 {
		Redact(d)
	}
}

// function matches the beginning of the message of an error of a built-in function.
var function = regexp.MustCompile(`^[a-z0-9_.]+: `)

// briefly returns the text of an error without values; empty if the error may be shown
// as it is.
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
