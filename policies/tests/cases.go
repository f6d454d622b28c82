package tests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vmstencil/stencil/rego"
)

// check runs one case.
func check(policy *rego.Policy, c Case, evaluate func(*rego.Policy, *rego.Input) (rego.Result, error)) Result {
	begin := time.Now()
	result := Result{Name: c.Name}
	if c.Parameters != nil {
		other, err := policy.WithParameters(c.Parameters)
		if err != nil {
			result.Failure = err.Error()
			return result
		}
		policy = other
	}
	policy, failure := withData(policy, c.Data)
	if failure != "" {
		result.Failure = failure
		return result
	}
	in, err := rego.NewInput(c.Document)
	if err != nil {
		result.Failure = err.Error()
		return result
	}
	found, err := evaluate(policy, in)
	result.Duration = time.Since(begin)
	if err != nil {
		result.Failure = err.Error()
		return result
	}
	var failures []string
	for _, list := range []struct {
		entry string
		want  []string
		got   []rego.Finding
	}{{"deny", c.Deny, found.Deny}, {"warn", c.Warn, found.Warn}} {
		if failure := difference(list.entry, list.want, list.got); failure != "" {
			failures = append(failures, failure)
		}
	}
	result.Failure = strings.Join(failures, "; ")
	return result
}

// withData returns the policy with the values of a case, or why it cannot have them.
func withData(policy *rego.Policy, values map[string]any) (*rego.Policy, string) {
	var bound []rego.Binding
	for _, reference := range policy.References() {
		one := rego.Binding{Name: reference.Name, Missing: "the test does not set it; add it to data of the test"}
		if value, given := values[reference.Name]; given {
			converted, err := rego.NewValue(value)
			if err != nil {
				return policy, fmt.Sprintf("data.%s: %v", reference.Name, err)
			}
			one.Value, one.Missing = converted, ""
		}
		bound = append(bound, one)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(bound, func(b rego.Binding) bool { return b.Name == name }) {
			return policy, fmt.Sprintf("data.%s: the policy declares no data of this name", name)
		}
	}
	return policy.WithData(bound), ""
}

// difference describes which messages are missing and which are unexpected.
func difference(entry string, want []string, findings []rego.Finding) string {
	got := make([]string, len(findings))
	for i, finding := range findings {
		got[i] = finding.Message
	}
	missing, unexpected := without(want, got), without(got, want)
	var parts []string
	if len(missing) > 0 {
		parts = append(parts, fmt.Sprintf("%s does not return %s", entry, quoted(missing)))
	}
	if len(unexpected) > 0 {
		parts = append(parts, fmt.Sprintf("%s returns %s, which was not expected", entry, quoted(unexpected)))
	}
	return strings.Join(parts, "; ")
}

// without returns the elements of a that are not in b. Repeated elements are removed as
// often as they are in b.
func without(a, b []string) []string {
	left := slices.Clone(b)
	var result []string
	for _, text := range a {
		if i := slices.Index(left, text); i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		result = append(result, text)
	}
	return result
}

func quoted(texts []string) string {
	parts := make([]string, len(texts))
	for i, text := range texts {
		parts[i] = fmt.Sprintf("%q", text)
	}
	return strings.Join(parts, ", ")
}
