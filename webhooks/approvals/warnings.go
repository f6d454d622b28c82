package approvals

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/rego/schema/definition"
)

// input is the state of the cluster that the warnings about an approval depend on.
type input struct {
	spec     *v1alpha1.TemplateApprovalSpec
	approval *approval.Approval
	excluded []string

	namespacesSynced bool
	selected         []string // names of the namespaces that the approval selects

	machine definition.Schema // of VirtualMachines

	templatesSynced bool
	templates       []candidate
}

// candidate is a template that an approval may list.
type candidate struct {
	approval.Template
	declared   approval.Declarations
	parameters []v1beta1.Parameter
	broken     bool
}

func candidateOf(t *templatecache.Template) candidate {
	c := candidate{Template: approval.Template{Namespace: t.Namespace, Name: t.Name, Labels: t.Labels()}}
	compiled, err := t.Compiled()
	if err != nil {
		c.broken = true
		return c
	}
	c.Digest, c.declared, c.parameters = compiled.Digest(), compiled, compiled.Parameters()
	return c
}

// warnings describes the fields of the approval that have no effect now, or a wider effect than intended.
func (s input) warnings() []string {
	var all []string
	if s.namespacesSynced {
		all = append(all, s.aboutNamespaces()...)
	}
	if s.templatesSynced {
		var approved []candidate
		for i := range s.spec.Templates {
			listed, warning := s.aboutTemplate(i)
			approved = append(approved, listed...)
			if warning != "" {
				all = append(all, fmt.Sprintf("spec.templates[%d]: %s", i, warning))
			}
		}
		all = append(all, s.aboutParameters(approved)...)
		valueless, closed := s.aboutClosedParameters(approved)
		return slices.Concat(all, valueless, s.aboutOverrides(), closed)
	}
	return append(all, s.aboutOverrides()...)
}

func (s input) aboutNamespaces() []string {
	var all []string
	for i, namespace := range s.spec.Namespaces {
		switch {
		case slices.Contains(s.excluded, namespace):
			all = append(all, fmt.Sprintf("spec.namespaces[%d]: %s is Stencil's own namespace, which approvals never select", i, namespace))
		case !slices.Contains(s.selected, namespace):
			all = append(all, fmt.Sprintf("spec.namespaces[%d]: there is no namespace %s now", i, namespace))
		}
	}
	if len(s.selected) == 0 {
		all = append(all, "spec: this approval selects no namespace that exists now")
	}
	return all
}

// aboutTemplate returns the templates that an entry lists now. If there are none, it returns a warning with the
// reason.
func (s input) aboutTemplate(i int) (listed []candidate, warning string) {
	entry := s.spec.Templates[i]
	broken, otherwise := "", ""
	for _, t := range s.templates {
		switch {
		case !approval.Lists(&entry, t.Template):
		case t.broken:
			broken = t.Name
		case entry.Digest != "" && entry.Digest != t.Digest:
			otherwise = fmt.Sprintf("the content of %s/%s is another one than the digest pins: its digest is %s", t.Namespace, t.Name, t.Digest)
		default:
			listed = append(listed, t)
		}
	}
	switch {
	case len(listed) > 0:
		return listed, ""
	case otherwise != "":
		return nil, otherwise
	case broken != "":
		return nil, fmt.Sprintf("template %s/%s cannot be used: it does not compile", entry.Namespace, broken)
	case entry.Name != "":
		return nil, fmt.Sprintf("there is no template %s/%s now", entry.Namespace, entry.Name)
	default:
		return nil, fmt.Sprintf("there is no template with these labels in namespace %s now", entry.Namespace)
	}
}

func (s input) aboutParameters(approved []candidate) []string {
	if len(approved) == 0 {
		return nil // aboutTemplate warns about it
	}
	var all []string
	for i, constraint := range s.spec.Parameters {
		declared, sensitive := false, false
		for _, t := range approved {
			for _, p := range t.parameters {
				declared = declared || p.Name == constraint.Name
				sensitive = sensitive || p.Name == constraint.Name && p.Sensitive
			}
		}
		at := fmt.Sprintf("spec.parameters[%d]", i)
		if !declared {
			all = append(all, fmt.Sprintf("%s: no approved template has a parameter %s now", at, constraint.Name))
		}
		if sensitive && len(constraint.Allowed) > 0 {
			all = append(all, fmt.Sprintf("%s.allowed: parameter %s is sensitive, and everyone who can read this approval can read its allowed values", at, constraint.Name))
		}
	}
	return all
}

const (
	// maxClosed is the number of parameters of one template that a warning names.
	maxClosed = 10
	// maxClosing is the number of templates for which warnings name closed parameters.
	maxClosing = 5
)

// aboutClosedParameters warns about parameters that the approval does not list: required parameters without a value,
// without which no VirtualMachine can be created from the template, and parameters that retain their default or are
// generated.
func (s input) aboutClosedParameters(approved []candidate) (valueless, closed []string) {
	byReference := map[string]candidate{} // two entries may list the same template
	for _, t := range approved {
		byReference[t.Namespace+"/"+t.Name] = t
	}
	more := 0
	for _, reference := range slices.Sorted(maps.Keys(byReference)) {
		var missing, closing []string
		for _, p := range s.approval.ClosedParameters(byReference[reference].declared) {
			if approval.HasNoValue(p) {
				missing = append(missing, p.Name)
			} else {
				closing = append(closing, p.Name)
			}
		}
		if len(missing) > 0 {
			valueless = append(valueless, fmt.Sprintf("spec.parameters: no VirtualMachine of template %s is approved, because required parameters have no value: %s; "+
				"list them, with the values that are allowed or with anyValue: true", reference, excerpt.List(missing, maxClosed, "")))
		}
		switch {
		case len(closing) == 0:
		case len(closed) < maxClosing:
			closed = append(closed, fmt.Sprintf("spec.parameters: closes %s of template %s: a parameter that is not listed keeps its default, or is generated", excerpt.List(closing, maxClosed, ""), reference))
		default:
			more += len(closing)
		}
	}
	if more > 0 {
		closed[maxClosing-1] += fmt.Sprintf("; and %d more of other templates", more)
	}
	return valueless, closed
}

// shorten limits the warnings to a readable number and replaces the rest by their count.
func shorten(warnings []string) []string {
	const longest = 12
	if len(warnings) <= longest {
		return warnings
	}
	return append(slices.Clip(warnings[:longest-1]), fmt.Sprintf("and %d more warnings", len(warnings)-longest+1))
}
