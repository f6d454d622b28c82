package policies

import (
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	"github.com/vmstencil/stencil/internal/excerpt"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

const (
	// maximumCauses is the number of problems that a rejection lists.
	maximumCauses = 20
	// maximumLine is the number of bytes of a module line that a message contains.
	maximumLine = 200
	// maximumWarnings is the number of failing tests that are reported. maximumWarning is the maximum size of each
	// warning, in bytes. An API server passes on 4 KiB of warnings.
	maximumWarnings = 5
	maximumWarning  = 512
	// maximumNames is the number of VirtualMachines that a warning names.
	maximumNames = 10

	fieldRego        = "spec.rego"
	fieldTests       = "spec.tests"
	fieldAnnotations = "metadata.annotations"
)

// invalid returns a rejection with all problems: in the message for users, and as causes for programs.
func invalid(name string, problems []rego.Problem) metav1.Status {
	more := len(problems) - maximumCauses
	problems = problems[:min(len(problems), maximumCauses)]
	causes := make([]metav1.StatusCause, len(problems))
	lines := make([]string, len(problems))
	for i, problem := range problems {
		causes[i] = causeOf(problem)
		lines[i] = causes[i].Field + ": " + causes[i].Message
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more problems", more))
	}
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("VirtualMachinePolicy %q does not compile:\n%s", name, strings.Join(lines, "\n")),
		Details: &metav1.StatusDetails{
			Group: v1alpha1.GroupName, Kind: "VirtualMachinePolicy", Name: name, Causes: causes,
		},
	}
}

// causeOf returns the position and the message of a problem. For a problem in the module it adds the line.
func causeOf(problem rego.Problem) metav1.StatusCause {
	cause := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: fieldRego, Message: problem.Message}
	switch {
	case problem.Row > 0:
		cause.Message = fmt.Sprintf("%d:%d: %s", problem.Row, problem.Column, problem.Message)
		if line := strings.TrimSpace(problem.Line); line != "" {
			cause.Message += ", in: " + excerpt.Of(line, maximumLine)
		}
	case problem.Field != "":
		cause.Field = specField(problem.Field)
	}
	return cause
}

// specField returns the path of a field from the root of the object.
func specField(path string) string {
	if path == "spec" || strings.HasPrefix(path, "spec.") {
		return path
	}
	return "spec." + path
}

// failing returns a rejection of a policy that compiles, for failures of a field. A client such as kubectl shows either the message or the causes.
func failing(name, field string, failures []string) metav1.Status {
	const force = "to store it all the same, set " + v1alpha1.AnnotationStoreFailing + " to \"true\""
	var causes []metav1.StatusCause
	for _, text := range failures {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: text})
	}
	causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: fieldAnnotations, Message: force})
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("VirtualMachinePolicy %q fails:\n%s: %s\n%s: %s", name, field, strings.Join(failures, "\n"+field+": "), fieldAnnotations, force),
		Details: &metav1.StatusDetails{Group: v1alpha1.GroupName, Kind: "VirtualMachinePolicy", Name: name, Causes: causes},
	}
}

// failedTests returns a summary with a consequence, and a text for each test that fails, up to maximumWarnings.
func failedTests(trial *policycache.Trial, consequence string) []string {
	failed := trial.Failed
	list := []string{fmt.Sprintf("%d of %d tests fail, %s", len(failed), trial.Tests, consequence)}
	for _, each := range failed[:min(len(failed), maximumWarnings)] {
		list = append(list, warningOf(each))
	}
	return list
}

// text returns a warning about the VirtualMachines on which the policy has a new effect. It has their names if the user may list VirtualMachines.
func (s *sample) text(named bool) string {
	of := fmt.Sprintf("a sample of %d stored VirtualMachines that the policy selects", s.evaluated)
	if s.all {
		of = fmt.Sprintf("all %d stored VirtualMachines that the policy selects", s.evaluated)
	}
	verb := map[effect]string{denied: "newly denies", warned: "newly warns about", recorded: "newly records violations of"}[s.effect]
	how := "created"
	if s.operation == operationUpdate {
		how = "updated"
	}
	if len(s.found) == 0 {
		return fmt.Sprintf("whether this version denies, warns about or records %d of %s is unknown: it reads the time or the user of the request", s.unknown, of)
	}
	text := fmt.Sprintf("this version %s %d of %s, if they were %s now", verb, len(s.found), of, how)
	if named {
		text += ": " + excerpt.List(s.found, maximumNames, "VirtualMachines")
	}
	return excerpt.Of(text, maximumWarning)
}

// unreached returns a warning for each rule and test about requests that the policy does not evaluate, up to maximumWarnings.
func unreached(object *v1alpha1.VirtualMachinePolicy, entry *policyset.Entry) []string {
	if entry == nil {
		return nil
	}
	compared, is := entry.Policy.(policyspec.Compared)
	read, problems := policyspec.Read(object)
	if !is || len(problems) > 0 {
		return nil
	}
	var warnings []string
	for _, each := range read.Unreached(compared) {
		cause := causeOf(each)
		warnings = append(warnings, excerpt.Of(cause.Field+": "+cause.Message, maximumWarning))
	}
	return warnings[:min(len(warnings), maximumWarnings)]
}

func warningOf(failed suite.Result) string {
	return excerpt.Of(fmt.Sprintf("test %q: %s", failed.Name, strings.Join(strings.Fields(failed.Failure), " ")), maximumWarning)
}
