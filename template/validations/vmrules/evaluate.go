package vmrules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	sizing "github.com/vmstencil/stencil/template/instancetype"
	"github.com/vmstencil/stencil/template/validations"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Case is a VirtualMachine to evaluate.
type Case struct {
	// Object is the VirtualMachine, as decoded JSON.
	Object map[string]any
	// Namespace is its namespace, or the one to create it in.
	Namespace string
	// Template is NAMESPACE/NAME of the template, and Rules the text of that template's annotation; both may be empty.
	Template, Rules string
	// Secret is true if some values of the VM must not be shown, because the template has sensitive parameters. Findings
	// then contain the field, but not its value.
	Secret bool
	// Sizes finds instance types and preferences; nil if there is no resolver.
	Sizes sizing.Resolver
}

// Finding is a rule that the VM violates.
type Finding struct {
	// Source is the origin of the rule: "template NAMESPACE/NAME", or "annotation KEY".
	Source string
	// Rule is the name of the rule; empty if the rules cannot be read.
	Rule string
	// Field is the place in the VirtualMachine.
	Field string
	// Message is the message of the rule's author, and the found value.
	Message string
}

// String returns the finding on one line, without the field.
func (f Finding) String() string {
	if f.Rule == "" {
		return fmt.Sprintf("the rules of %s: %s", f.Source, f.Message)
	}
	return fmt.Sprintf("rule %s of %s: %s", f.Rule, f.Source, f.Message)
}

// Decision is the result of the evaluation of a VM.
type Decision struct {
	// Denials are the reasons to deny the VM, Warnings are shown to the user.
	Denials, Warnings []Finding
	// Unevaluated are rules about a size that cannot be determined.
	Unevaluated []Finding
}

// Has reports whether a VM has rules at all. If not, it can be allowed without decoding it further.
func (c Case) Has() bool { return c.Rules != "" || c.own() != "" }

func (c Case) annotations() map[string]any {
	read, _ := machine.Read(c.Object)
	return read.Annotations
}

func (c Case) own() string { return machine.StringAt(c.annotations(), validations.Annotation) }

// Evaluate evaluates the VM.
func (c Case) Evaluate(ctx context.Context) Decision {
	var v Decision
	if !c.Has() || validations.Skipped(c.annotations()) {
		return v
	}
	spec, _ := c.Object["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	sized, unknown := c.sized(ctx, template)
	for _, each := range []struct{ source, field, text string }{
		{c.source(), machine.AnnotationsPath.Key(validations.AnnotationTemplate).String(), c.Rules},
		{"annotation " + validations.Annotation, machine.AnnotationsPath.Key(validations.Annotation).String(), c.own()},
	} {
		rules, err := validations.Parse(each.text)
		if err != nil {
			v.Denials = append(v.Denials, Finding{Source: each.source, Field: each.field, Message: err.Error()})
			continue
		}
		for _, violation := range validations.Evaluate(rules, sized) {
			found := Finding{Source: each.source, Rule: violation.Rule, Field: violation.Field, Message: c.message(violation)}
			switch {
			case violation.Missing && unknown != "" && isSize(violation.Field):
				found.Message = "it cannot be evaluated: " + unknown
				v.Unevaluated = append(v.Unevaluated, found)
			case violation.Warning:
				v.Warnings = append(v.Warnings, found)
			default:
				v.Denials = append(v.Denials, found)
			}
		}
	}
	return v
}

// isSize reports whether an instance type sets a field.
func isSize(field string) bool {
	return slices.ContainsFunc([]string{"cpu", "memory", "resources"}, func(key string) bool {
		return strings.HasPrefix(field+".", "spec.template.spec.domain."+key+".")
	})
}

// message returns the message of the rule's author, with the found value unless that may be a secret.
func (c Case) message(violation validations.Violation) string {
	if c.Secret && !violation.Missing {
		return violation.Message
	}
	return fmt.Sprintf("%s (%s)", violation.Message, violation.Detail)
}

// sized returns the VM's template with the size of its instance type; unknown is the reason if the size cannot be
// determined.
func (c Case) sized(ctx context.Context, template map[string]any) (sized map[string]any, unknown string) {
	reference, problem := sizing.Instancetype(c.Object, c.Namespace)
	switch {
	case problem != nil:
		return template, problem.Error()
	case reference == nil:
		return template, ""
	case c.Sizes == nil:
		return template, "an instance type sets the size of the VM"
	}
	instancetype, err := c.Sizes.Resolve(ctx, *reference)
	if err != nil {
		return template, unresolved(reference, err)
	}
	var preference map[string]any
	switch named, problem := sizing.Preference(c.Object, c.Namespace); {
	case problem != nil:
		return template, problem.Error()
	case named != nil:
		if preference, err = c.Sizes.Resolve(ctx, *named); err != nil {
			return template, unresolved(named, err)
		}
	}
	if sized, err = sizing.Apply(template, instancetype, preference); err != nil {
		return template, err.Error()
	}
	return sized, ""
}

func unresolved(reference *sizing.Reference, err error) string {
	return (&field.Error{Type: field.ErrorTypeNotFound, Field: reference.Path.String(), BadValue: reference.String(), Detail: err.Error()}).Error()
}

// Since removes from a decision the rules that an earlier state of the VM violated, too: they must not prevent other
// changes.
func (d Decision) Since(before Decision) Decision {
	earlier := slices.Concat(before.Denials, before.Warnings, before.Unevaluated)
	added := func(findings []Finding) []Finding {
		return slices.DeleteFunc(findings, func(f Finding) bool {
			return slices.ContainsFunc(earlier, func(k Finding) bool { return k.Source == f.Source && k.Rule == f.Rule })
		})
	}
	return Decision{Denials: added(d.Denials), Warnings: added(d.Warnings), Unevaluated: added(d.Unevaluated)}
}

// Of reports whether a decision has findings by rules of the template.
func (d Decision) Of(c Case) bool {
	return slices.ContainsFunc(slices.Concat(d.Denials, d.Warnings, d.Unevaluated), c.wrote)
}

// wrote reports whether a finding is by a rule of the template.
func (c Case) wrote(f Finding) bool { return f.Source == c.source() }

// source is the origin of the rules of the template.
func (c Case) source() string { return "template " + c.Template }

// Without returns the decision for a user who must not see the rules of the template: one denial without rule, field, message and value replaces theirs.
func (d Decision) Without(c Case) Decision {
	denied := slices.ContainsFunc(d.Denials, c.wrote)
	d.Denials, d.Warnings, d.Unevaluated = slices.DeleteFunc(d.Denials, c.wrote), slices.DeleteFunc(d.Warnings, c.wrote), slices.DeleteFunc(d.Unevaluated, c.wrote)
	if denied {
		d.Denials = append(d.Denials, Finding{
			Source: c.source(), Field: "spec", Message: "the VirtualMachine violates one; which one is shown to users of the template only",
		})
	}
	return d
}
