package audit

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/machine"
	"github.com/vmstencil/stencil/template"
	"github.com/vmstencil/stencil/templatecache"
)

// Templates returns compiled templates, nil for one that does not exist; a templatecache.Cache does.
type Templates interface {
	Get(namespace, name string) *templatecache.Template
}

// judgement is what is found about one machine.
type judgement struct {
	// satisfied are the approvals that the machine satisfies, in their order.
	satisfied []*approval.Approval
	// cause tells why there are none.
	cause *cause
}

// judge says which of the approvals that cover its namespace a stored machine satisfies. covering is in the order of names and
// not empty.
func judge(object map[string]any, namespace string, covering []*approval.Approval, templates Templates) judgement {
	first := covering[0].Name()
	vm, problems := machine.Read(object)
	if len(problems) > 0 {
		return judgement{cause: newCause(ruleDifferent, first, "the machine cannot be read: %v", problems.ToAggregate())}
	}
	written, found := vm.Reference()
	if !found {
		return judgement{cause: newCause(ruleNoTemplate, first, "it names no template")}
	}
	reference, problems := machine.ParseReference(written, namespace)
	if len(problems) > 0 {
		return judgement{cause: newCause(ruleNoTemplate, first, "it names no template: %v", problems.ToAggregate())}
	}
	stored := templates.Get(reference.Namespace, reference.Name)
	if stored == nil {
		return judgement{cause: newCause(ruleTemplateGone, first, "its template %s is gone", reference)}
	}
	compiled, err := stored.Compiled()
	if err != nil {
		return judgement{cause: newCause(ruleTemplateInvalid, first, "its template %s is not valid any more", reference)}
	}
	return comparison{vm: vm, reference: reference, stored: stored, compiled: compiled}.judge(covering)
}

// comparison is a machine and the template that it refers to.
type comparison struct {
	vm        machine.Machine
	reference machine.Reference
	stored    *templatecache.Template
	compiled  *template.Compiled
}

func (c comparison) judge(covering []*approval.Approval) judgement {
	question := approval.Question{
		Anyone: true,
		Template: approval.Template{
			Namespace: c.reference.Namespace,
			Name:      c.reference.Name,
			Labels:    c.stored.Labels,
			// Not what the machine says it was rendered from: it is compared with what is there.
			Digest: c.compiled.Digest(),
		},
		Sensitive: c.compiled.Sensitive,
		Match:     c.match,
	}
	var result judgement
	var near *cause
	var far []string
	for _, a := range covering {
		if approved, why := a.Approves(question.Template); !approved {
			far = append(far, fmt.Sprintf("approval %q: %s", a.Name(), why))
			continue
		}
		objections := a.Objections(question)
		switch {
		case len(objections) == 0:
			result.satisfied = append(result.satisfied, a)
		case near == nil:
			near = c.cause(a, objections)
		}
	}
	switch {
	case len(result.satisfied) > 0:
	case near != nil:
		result.cause = near
	default:
		result.cause = newCause(ruleTemplateNotApproved, covering[0].Name(), "%s", strings.Join(far, "; "))
	}
	return result
}

// match compares the machine with the template, but for what the approval lets people write.
func (c comparison) match(a *approval.Approval) (map[string]string, []approval.Objection) {
	matched, err := c.compiled.Match(c.vm.Object, template.Ignoring(a.OverridableField))
	if err != nil {
		return nil, []approval.Objection{{Field: "spec"}}
	}
	var differences []approval.Objection
	for _, difference := range matched.Differences() {
		differences = append(differences, approval.Objection{Field: difference.Path})
	}
	return matched.Values(), differences
}

// cause puts the objections of an approval that approves the template into words.
func (c comparison) cause(a *approval.Approval, objections []approval.Objection) *cause {
	paths, values := objected(objections)
	notAllowed := ""
	if len(values) > 0 {
		notAllowed = enumerate(values, "values")
	}
	record := c.vm.Record()
	switch {
	case len(paths) == 0:
		return newCause(ruleParameterNotAllowed, a.Name(), "%s", notAllowed)
	case record.Name == c.reference.Name && record.Namespace == c.reference.Namespace && record.Digest != c.compiled.Digest():
		return newCause(ruleTemplateChanged, a.Name(), "template %s has changed since the machine was rendered from it (generation %d, now %d) and is different at %s",
			c.reference, record.Generation, c.stored.Generation, enumerate(paths, "fields"))
	default:
		if notAllowed != "" {
			notAllowed = "; " + notAllowed
		}
		return newCause(ruleDifferent, a.Name(), "differs from template %s at %s%s", c.reference, enumerate(paths, "fields"), notAllowed)
	}
}
