package policy

import (
	"fmt"
	"io"
	"strings"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

// result is the result of all policies for one request. Its JSON form is output.
type result struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Operation string `json:"operation"`
	// Rendered is the template that the object was rendered from for the evaluation.
	Rendered string      `json:"renderedFrom,omitempty"`
	Allowed  bool        `json:"allowed"`
	Denials  []violation `json:"denials,omitempty"`
	// NewlyDenied are the denials that the policies in a cluster do not come to, NoLongerDenied those of theirs that these policies do not come to.
	NewlyDenied    []violation `json:"newlyDenied,omitempty"`
	NoLongerDenied []violation `json:"noLongerDenied,omitempty"`
	Warnings       []violation `json:"warnings,omitempty"`
	Audited        []violation `json:"audited,omitempty"`
	// Unknown are violations by policies that read the time or the user of a request, which a stored object does not have.
	Unknown []violation `json:"unknown,omitempty"`
	// Excepted are the violations that PolicyExceptions allow.
	Excepted []excepted        `json:"excepted,omitempty"`
	Policies []evaluatedPolicy `json:"policies,omitempty"`
	// NotAsked are the policies that do not match the request.
	NotAsked []string `json:"notAsked,omitempty"`
	Notes    []string `json:"notes,omitempty"`

	// compared is true if NewlyDenied and NoLongerDenied are known.
	compared bool
}

// failures returns the denials that a command fails for.
func (v *result) failures() []violation {
	if v.compared {
		return v.NewlyDenied
	}
	return v.Denials
}

// violation is one finding of a policy.
type violation struct {
	Policy   string         `json:"policy"`
	Title    string         `json:"title,omitempty"`
	Severity rego.Severity  `json:"severity,omitempty"`
	Rule     policyset.Rule `json:"rule"`
	rego.Finding
	Failure bool `json:"failure,omitempty"`
}

// excepted is a violation that an exception allows.
type excepted struct {
	violation
	Exception string `json:"exception"`
	// Expires is when the exception ends, in RFC 3339.
	Expires string `json:"expiresAt"`
}

// evaluatedPolicy is a policy that was evaluated.
type evaluatedPolicy struct {
	Name         string                `json:"name"`
	Digest       string                `json:"digest"`
	Enforcement  policyset.Enforcement `json:"enforcement"`
	Outcome      policyset.Result      `json:"outcome"`
	Microseconds int64                 `json:"microseconds"`
	Error        string                `json:"error,omitempty"`
}

func (v *result) take(d policyset.Decision) {
	v.Denials, v.Warnings, v.Audited = violations(d.Denials), violations(d.Warnings), violations(d.Audited)
	for _, e := range d.Excepted {
		v.Excepted = append(v.Excepted, excepted{violations([]policyset.Violation{e.Violation})[0], e.Exception.Name, e.Exception.End()})
	}
	v.Allowed = len(d.Denials) == 0
	for _, e := range d.Evaluations {
		one := evaluatedPolicy{Name: e.Policy, Digest: e.Digest, Enforcement: e.Enforcement, Outcome: e.Result, Microseconds: e.Duration.Microseconds()}
		if e.Err != nil {
			one.Error = e.Err.Error()
		}
		v.Policies = append(v.Policies, one)
	}
}

// setAside moves violations to Unknown, except for failures of policies.
func (v *result) setAside(unknown func(policy string) bool) {
	for _, list := range []*[]violation{&v.Denials, &v.Warnings, &v.Audited} {
		var known []violation
		for _, each := range *list {
			if each.Failure || !unknown(each.Policy) {
				known = append(known, each)
			} else {
				v.Unknown = append(v.Unknown, each)
			}
		}
		*list = known
	}
	v.Allowed = len(v.Denials) == 0
}

func violations(from []policyset.Violation) []violation {
	var all []violation
	for _, each := range from {
		all = append(all, violation{
			Policy: each.Policy, Title: each.Title, Severity: each.Severity, Rule: each.Rule, Finding: each.Finding, Failure: each.Failure,
		})
	}
	return all
}

// object identifies the evaluated object.
func (v *result) object() string {
	name := v.Name
	if name == "" {
		name = "(no name)"
	}
	if v.Namespace != "" {
		name = v.Namespace + "/" + name
	}
	return v.Kind + " " + name
}

// print writes a result as text.
func (v *result) print(w io.Writer, streams cli.Streams) {
	result := streams.Paint(cli.Green, "allowed")
	switch {
	case !v.Allowed:
		result = streams.Paint(cli.Red, "denied")
	case len(v.Warnings) > 0:
		result += ", with warnings"
	}
	rendered := ""
	if v.Rendered != "" {
		rendered = ", rendered from template " + v.Rendered
	}
	fmt.Fprintf(w, "%s (%s%s): %s\n", streams.Paint(cli.Bold, v.object()), v.Operation, rendered, result)
	if v.compared {
		printViolations(w, streams, cli.Red, "newly denied", v.NewlyDenied)
		printViolations(w, streams, cli.Green, "no longer denied", v.NoLongerDenied)
		return
	}
	printViolations(w, streams, cli.Red, "deny", v.Denials)
	printViolations(w, streams, cli.Yellow, "warn", v.Warnings)
	printViolations(w, streams, cli.Cyan, "audit", v.Audited)
	printViolations(w, streams, cli.Faint, "unknown", v.Unknown)
	for i := range v.Excepted {
		one := &v.Excepted[i]
		fmt.Fprintf(w, "  %s by PolicyException %s until %s: %s\n", streams.Paint(cli.Cyan, "excepted"), one.Exception, one.Expires, one.text())
	}
	for _, note := range v.Notes {
		fmt.Fprintf(w, "  %s %s\n", streams.Paint(cli.Faint, "note"), note)
	}
	fmt.Fprintf(w, "  %s\n", streams.Paint(cli.Faint, v.summary()))
}

func (v *result) summary() string {
	var parts []string
	for _, each := range v.Policies {
		parts = append(parts, fmt.Sprintf("%s: %s", each.Name, each.Outcome))
	}
	if len(v.NotAsked) > 0 {
		parts = append(parts, "not about this request: "+strings.Join(v.NotAsked, ", "))
	}
	return strings.Join(parts, "; ")
}

func printViolations(w io.Writer, streams cli.Streams, style cli.Style, word string, list []violation) {
	for _, each := range list {
		fmt.Fprintf(w, "  %s %s\n", streams.Paint(style, word), each.text())
	}
}

// text returns a violation as admission reports it.
func (v *violation) text() string {
	return fmt.Sprintf("%s (%s): %s", v.Policy, v.Severity, v.Text())
}
