package proof

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template"
)

// parameter is a parameter with the values that are decided.
type parameter struct {
	name      string
	sensitive bool
	// values are the values to give. The first one is the base.
	values []string
	// size is the number of values, also if there are too many to list them.
	size uint64
	// omitted means that the base is not given: it is the default.
	omitted bool
	// why is the reason why the parameter is held at its base; empty if its values are finite.
	why string
	// given means that it is held at a value of the question.
	given bool
	// fields are the fields of the VirtualMachine that depend on the parameter, places all paths in input that do.
	fields, places [][]string
}

// parametersOf returns the parameters of a template with their values.
func parametersOf(q *Question, compiled *template.Compiled) []parameter {
	var parameters []parameter
	for _, p := range approval.Values(q.Approval, compiled) {
		parameters = append(parameters, parameterOf(p, compiled, q))
	}
	groups := together(parameters)
	for i := range parameters {
		for j := range parameters {
			if groups[i] == groups[j] {
				parameters[i].places = append(parameters[i].places, []string{"parameters", parameters[j].name})
			}
		}
	}
	return parameters
}

// together returns a number for each parameter, which those have in common that occur in the same fields. input.parameters has the values that the
// VirtualMachine shows, and in a text such as ${A}${B} the value of one may decide what is taken for that of the other.
func together(parameters []parameter) []int {
	groups := make([]int, len(parameters))
	for i := range parameters {
		groups[i] = i
		for j := range i {
			if groups[i] == groups[j] || !slices.ContainsFunc(parameters[i].fields, func(a []string) bool {
				return slices.ContainsFunc(parameters[j].fields, func(b []string) bool { return covers(a, b) })
			}) {
				continue
			}
			joined := groups[j]
			for k := range i + 1 {
				if groups[k] == joined {
					groups[k] = groups[i]
				}
			}
		}
	}
	return groups
}

// parameterOf returns a parameter with its values. Values that the template rejects are left out.
func parameterOf(p approval.AllowedValues, compiled *template.Compiled, q *Question) parameter {
	found := parameter{name: p.Name, sensitive: p.Sensitive}
	found.fields, found.places = placesOf(p.Name, compiled)
	usual, cause := compiled.Value(p.Name, "", false)
	listed, why := listedValues(p, q.Limit)
	if value, given := q.Values[p.Name]; given {
		found = found.base(value)
		found.omitted, found.why, found.given = false, "a value was given", true
		return found
	}
	switch {
	case p.None || p.Fixed && !p.Generated:
		return found.base(usual)
	case why != "":
		found = found.base(usual)
		found.why = why
		if bound := cmp.Or(p.Minimum, p.Maximum); p.Required && bound != nil {
			found.omitted, found.values = false, []string{strconv.FormatInt(*bound, 10)}
		}
		if p.Type == v1beta1.ParameterTypeInt && p.Minimum != nil && p.Maximum != nil {
			found.why, found.size = "", sizeOf(*p.Minimum, *p.Maximum)
		}
		return found
	}
	omittable := cause == nil && !p.Generated && !p.Required
	if omittable {
		found = found.base(usual)
	}
	known := map[string]bool{}
	for _, value := range found.values {
		known[value] = true
	}
	for _, value := range append(slices.Clone(listed), "") {
		_, rejected := compiled.Value(p.Name, value, true)
		// An empty value is the default, or what the template generates, if that is a value of the list.
		empty := value == "" && (p.Generated || usual == "")
		if rejected == nil && !empty && !known[value] && p.Accepts(value) {
			known[value] = true
			found.values = append(found.values, value)
		}
	}
	if len(found.values) == 0 {
		return found.base(usual)
	}
	found.size = uint64(len(found.values))
	return found
}

// listedValues returns the values that a template and an approval list, or why they list none.
func listedValues(p approval.AllowedValues, limit int) (values []string, why string) {
	bounded := p.Type == v1beta1.ParameterTypeInt && p.Minimum != nil && p.Maximum != nil
	switch {
	case p.Fixed && p.Generated:
		return nil, "the template generates its value"
	case len(p.Enum) > 0:
		return p.Enum, ""
	case p.Type == v1beta1.ParameterTypeBool:
		return []string{"true", "false"}, ""
	case bounded && sizeOf(*p.Minimum, *p.Maximum) <= uint64(limit): //nolint:gosec // a limit is positive
		for i := *p.Minimum; ; i++ {
			if values = append(values, strconv.FormatInt(i, 10)); i == *p.Maximum {
				break
			}
		}
		if *p.Minimum <= 0 && *p.Maximum >= 0 {
			values = append(values, "-0") // an integer of JSON as well
		}
		return values, ""
	case bounded:
		return nil, fmt.Sprintf("it has more than %d values", limit)
	case p.Type == v1beta1.ParameterTypeInt:
		return nil, "it has no minimum or no maximum"
	case p.Generated:
		return nil, "the template generates its value, or users choose any"
	case len(p.Patterns) > 0:
		return nil, "a pattern does not list its values"
	default:
		return nil, "its values are not listed"
	}
}

// sizeOf returns the number of integers between two bounds, or one less for all of them.
func sizeOf(minimum, maximum int64) uint64 {
	more := uint64(maximum) - uint64(minimum) //nolint:gosec // the difference is right modulo 2^64
	return more + min(1, math.MaxUint64-more)
}

// base returns the parameter with its default as the only value, which is not given.
func (p parameter) base(usual string) parameter {
	p.size, p.omitted, p.values = 1, true, []string{usual}
	return p
}

// placesOf returns the fields of the VirtualMachine that depend on the value of a parameter, and the paths in input that do, without input.parameters.
func placesOf(name string, compiled *template.Compiled) (fields, places [][]string) {
	for _, annotation := range []string{contract.AnnotationParameterPrefix + name, contract.AnnotationRendered} {
		places = append(places, []string{"object", "metadata", "annotations", annotation})
	}
	occurs := compiled.Places(name)
	for _, at := range occurs.VM {
		places = append(places, append([]string{"object"}, at...))
		for _, document := range []string{"instancetype", "preference"} {
			if covers(at, []string{"spec", document}) {
				places = append(places, []string{document})
			}
		}
		if covers(at, []string{"metadata", "name"}) {
			places = append(places, []string{"request", "name"})
		}
	}
	if occurs.Objects {
		places = append(places, []string{"objects"})
	}
	return occurs.VM, places
}

// covers reports whether one of two paths is the beginning of the other.
func covers(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// reader is a policy whose reads are known; *rego.Policy implements it.
type reader interface{ Reads(at ...string) bool }

// reads reports whether a policy, or its match, may read a path in input.
func reads(entry *policyset.Entry, at []string) bool {
	policy, known := entry.Policy.(reader)
	return !known || policy.Reads(at...) || entry.Match.Objects != nil && covers(at, objectLabels)
}

// readsSizes reports whether a policy may read the instance type or the preference.
func readsSizes(entry *policyset.Entry) bool {
	return reads(entry, []string{"instancetype"}) || reads(entry, []string{"preference"})
}

var objectLabels = []string{"object", "metadata", "labels"}

// dependsOn reports whether the findings of a policy may depend on the value of a parameter.
func dependsOn(entry *policyset.Entry, p *parameter) bool {
	return slices.ContainsFunc(p.places, func(at []string) bool { return reads(entry, at) })
}

// readsOf returns what policies may read, with their matches.
func readsOf(entries []policyset.Entry) *rego.Reads {
	reads := &rego.Reads{}
	for i := range entries {
		policy, known := entries[i].Policy.(*rego.Policy)
		if !known {
			reads.Add()
			continue
		}
		reads.AddOf(policy)
		if entries[i].Match.Objects != nil {
			reads.Add(objectLabels...)
		}
	}
	return reads
}
