package audit

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Templates returns compiled templates, nil for one that does not exist. A templatecache.Cache implements it.
type Templates interface {
	Get(namespace, name string) *templatecache.Template
}

// evaluation is the result of evaluating one VM.
type evaluation struct {
	// satisfied are the approvals that the VM satisfies, in the order of names.
	satisfied []*approval.Approval
	// cause is why there are none.
	cause *cause
	// closed are the satisfied approvals that do not list a parameter with a user-specified value, by name, with the reason why the next
	// release denies it.
	closed map[string]*cause
}

// warning returns why a VM will violate its approvals in the next release, nil if one of them stays satisfied.
func (j evaluation) warning() *cause {
	if len(j.satisfied) == 0 || len(j.closed) < len(j.satisfied) {
		return nil
	}
	return j.closed[j.satisfied[0].Name()]
}

// evaluate returns which approvals a stored VM satisfies. approvals are those that select its namespace, in the order of names; it must
// not be empty. cluster holds the places at which the cluster itself adds to VMs.
func evaluate(object map[string]any, namespace string, approvals []*approval.Approval, templates Templates, cluster *approval.Additions) evaluation {
	first := approvals[0].Name()
	vm, problems := machine.Read(object)
	if len(problems) > 0 {
		return evaluation{cause: newCause(ruleDifferent, first, "the VM cannot be read: %v", problems.ToAggregate())}
	}
	written, found := vm.Reference()
	if !found {
		return evaluation{cause: newCause(ruleNoTemplate, first, "it names no template")}
	}
	reference, problems := machine.ParseReference(written, namespace)
	if len(problems) > 0 {
		return evaluation{cause: newCause(ruleNoTemplate, first, "it names no template: %v", problems.ToAggregate())}
	}
	stored := templates.Get(reference.Namespace, reference.Name)
	if stored == nil {
		return evaluation{cause: newCause(ruleTemplateNotFound, first, "its template %s no longer exists", reference)}
	}
	compiled, err := stored.Compiled()
	if err != nil {
		return evaluation{cause: newCause(ruleTemplateInvalid, first, "its template %s is not valid any more", reference)}
	}
	return comparison{vm: vm, reference: reference, stored: stored, compiled: compiled, cluster: cluster}.evaluate(approvals)
}

// comparison is a VM and the template that it refers to.
type comparison struct {
	vm        machine.Object
	reference machine.Reference
	stored    *templatecache.Template
	compiled  *template.Compiled
	cluster   *approval.Additions
}

func (c comparison) evaluate(approvals []*approval.Approval) evaluation {
	question := approval.Question{
		Anyone: true,
		Template: approval.Template{
			Namespace: c.reference.Namespace,
			Name:      c.reference.Name,
			Labels:    c.stored.Labels(),
			// The current digest, not the one recorded in the VM: the VM is compared with the current template.
			Digest: c.compiled.Digest(),
		},
		Sensitive: c.compiled.Sensitive,
		Declared:  c.compiled,
		Name:      c.vm.Name(),
		Given:     c.vm.Parameters(),
		Match:     c.match,
	}
	question.Objects = approval.ObjectsOf(question.Template, c.compiled)
	var result evaluation
	var near *cause
	var far []string
	for _, a := range approvals {
		if approved, why := a.Approves(question.Template); !approved {
			far = append(far, fmt.Sprintf("approval %q: %s", a.Name(), why))
			continue
		}
		closed, objections := closedParameters(a.Objections(question))
		switch {
		case len(objections) == 0:
			result.satisfied = append(result.satisfied, a)
			if len(closed) > 0 {
				result.close(a, closed)
			}
		case near == nil:
			near = c.cause(a, objections)
		}
	}
	switch {
	case len(result.satisfied) > 0:
	case near != nil:
		result.cause = near
	default:
		result.cause = newCause(ruleTemplateNotApproved, approvals[0].Name(), "%s", strings.Join(far, "; "))
	}
	return result
}

// closedParameters separates the objections to parameters that the approval does not list from the others.
func closedParameters(objections []approval.Objection) (closed, others []approval.Objection) {
	for _, o := range objections {
		if o.Reason == approval.ReasonClosedParameter {
			closed = append(closed, o)
		} else {
			others = append(others, o)
		}
	}
	return closed, others
}

func (j *evaluation) close(a *approval.Approval, objections []approval.Objection) {
	if j.closed == nil {
		j.closed = map[string]*cause{}
	}
	var values []string
	for _, o := range objections {
		values = append(values, o.Field+": "+o.Message)
	}
	j.closed[a.Name()] = newCause(ruleClosedParameter, a.Name(), "%s", excerpt.List(values, maximumPaths, "values"))
}

// Messages of the objections that match returns; the method cause turns them into text.
const (
	differs = "differs"
	added   = "added"
)

// match compares the VM with the template, except for the approval's overrides. It returns objections to the fields that differ from the
// template, then to the fields that the VM has in addition.
func (c comparison) match(a *approval.Approval) (map[string]string, []approval.Objection) {
	matched, err := c.compiled.Match(c.vm.Object, template.Ignoring(a.OverridableField), template.Preferring(a.ClosedValues(c.compiled)))
	if err != nil {
		return nil, []approval.Objection{{Field: "spec", Message: differs}}
	}
	var objections []approval.Objection
	for _, difference := range matched.Differences() {
		objections = append(objections, approval.Objection{Field: difference.Path, Message: differs})
	}
	for _, path := range c.beyond(matched) {
		if !a.Overridable(path) {
			objections = append(objections, approval.Objection{Field: path.String(), Message: added})
		}
	}
	return matched.Values(), objections
}

// beyond returns what the VM has in addition to its template, except for what the cluster adds.
func (c comparison) beyond(matched *template.Match) []approval.Path {
	made, err := c.compiled.Reconstruct(matched)
	if err != nil {
		// No VM can be rendered from the matched values. Match reports a difference where they are used, unless the approval lets users
		// override those fields.
		return nil
	}
	object, err := machine.Decode(made.JSON())
	if err != nil {
		return nil
	}
	return c.cluster.Beyond(object, c.vm.Object)
}

// cause describes the objections of an approval that approves the template.
func (c comparison) cause(a *approval.Approval, objections []approval.Objection) *cause {
	var different, more, values, others []string
	for _, o := range objections {
		switch {
		case o.Reason == approval.ReasonObject:
			others = append(others, o.Field+": "+o.Message)
		case strings.HasPrefix(o.Field, parameterPrefix):
			values = append(values, o.Field+": "+o.Message)
		case o.Message == added:
			more = append(more, o.Field)
		default:
			different = append(different, o.Field)
		}
	}
	var clauses []string
	rule, subject := ruleParameterNotAllowed, fmt.Sprintf("template %s", c.reference)
	switch {
	case len(different)+len(more) > 0 && c.changed():
		rule = ruleTemplateChanged
		clause := fmt.Sprintf("%s has changed since the VM was rendered from it (generation %d, now %d)", subject, c.vm.Record().Generation, c.stored.Generation)
		if subject = "it"; len(different) > 0 {
			clause += " and is different at " + excerpt.List(different, maximumPaths, "fields")
		}
		clauses = append(clauses, clause)
	case len(different) > 0:
		rule = ruleDifferent
		clauses = append(clauses, fmt.Sprintf("differs from %s at %s", subject, excerpt.List(different, maximumPaths, "fields")))
		subject = "it"
	case len(more) > 0:
		rule = ruleMoreThanTemplate
	case len(values) == 0:
		rule = ruleObjectNotAllowed
	}
	if len(more) > 0 {
		clauses = append(clauses, fmt.Sprintf("adds to %s: %s", subject, excerpt.List(more, maximumPaths, "fields")))
	}
	if len(values) > 0 {
		clauses = append(clauses, excerpt.List(values, maximumPaths, "values"))
	}
	if len(others) > 0 {
		clauses = append(clauses, excerpt.List(others, maximumPaths, "objects"))
	}
	return newCause(rule, a.Name(), "%s", strings.Join(clauses, "; "))
}

// changed reports whether the content of the template differs from the content that the VM was rendered from.
func (c comparison) changed() bool {
	record := c.vm.Record()
	return record.Name == c.reference.Name && record.Namespace == c.reference.Namespace && record.Digest != c.compiled.Digest()
}
