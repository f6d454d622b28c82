package approval

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
)

// NarrowDeclarations are the parameters of a template that Narrow narrows; a template.Compiled has them.
type NarrowDeclarations interface {
	Declarations
	// Accepts reports whether a value satisfies the declaration of a parameter.
	Accepts(name, value string) bool
}

// Narrowing is what the approvals of a namespace allow of one template.
type Narrowing struct {
	// Allowed reports whether a VirtualMachine of the template can be created.
	Allowed bool
	// Enforcement is what happens to a VirtualMachine that satisfies no approval. It is empty where the namespace is not governed.
	Enforcement v1alpha1.Enforcement
	// Variants have the parameters as each satisfiable approval allows them, in the order of the names of the approvals. Approvals with the same
	// result share a variant. A user who needs no approval has one variant, without approvals.
	Variants []v1beta1.TemplateVariant
	// Objections are why no approval can be satisfied. They name no other templates.
	Objections []Objection
}

// Narrow returns what approvals allow a user to create from a template: q has the user, the template and its objects. The values of a variant satisfy
// its approval, except for its requirements and for what depends on the VirtualMachine: the content of its disks, the names of objects, and
// user-specified fields. It returns neither defaults nor listed values of sensitive parameters.
func Narrow(approvals []*Approval, q Question, declared NarrowDeclarations) Narrowing {
	q.Declared = declared
	if len(approvals) == 0 {
		return Narrowing{Allowed: true, Variants: withoutApproval(declared)}
	}
	n := Narrowing{Enforcement: strictest(notExempting(approvals, q))}
	if exempt(approvals, q.User) {
		n.Allowed, n.Variants = true, withoutApproval(declared)
		return n
	}
	var near, far []Objection
	for _, a := range byName(approvals) {
		if objection := a.inapplicable(q); objection != "" {
			far = append(far, a.object(referenceField, objection))
			continue
		}
		objections, _ := a.evaluate(q)
		parameters, impossible := a.narrow(declared)
		if objections = append(objections, impossible...); len(objections) > 0 {
			near = append(near, objections...)
			continue
		}
		n.add(a.name, parameters)
	}
	if len(n.Variants) > 0 {
		n.Allowed = true
		return n
	}
	if n.Objections = near; near == nil {
		n.Objections = far
	}
	if n.Enforcement != v1alpha1.EnforcementDeny {
		n.Allowed, n.Variants = true, withoutApproval(declared)
	}
	return n
}

// NarrowingKey returns a text that is equal for two users of a namespace if Narrow returns the same for both, also after approvals were changed back.
func NarrowingKey(approvals []*Approval, user authenticationv1.UserInfo) string {
	var key strings.Builder
	for _, a := range approvals {
		fmt.Fprintf(&key, "%s %s %d %t %t %s;", a.name, a.uid, a.generation, a.Serves(user), a.Exempts(user), a.denialMessage)
	}
	return key.String()
}

// add adds a variant, or the approval to the variant with the same parameters.
func (n *Narrowing) add(approval string, parameters []v1beta1.AvailableParameter) {
	for i := range n.Variants {
		if reflect.DeepEqual(n.Variants[i].Parameters, parameters) {
			n.Variants[i].Approvals = append(n.Variants[i].Approvals, approval)
			return
		}
	}
	n.Variants = append(n.Variants, v1beta1.TemplateVariant{Approvals: []string{approval}, Parameters: parameters})
}

// inapplicable returns why the approval does not apply to the template or the user, empty if it does. Unlike Approves, it does not name the templates
// that the approval lists: the user may have no permission to use them.
func (a *Approval) inapplicable(q Question) string {
	if approved, _ := a.Approves(q.Template); !approved {
		switch {
		case a.invalid != nil:
			return a.denialMessage
		case slices.ContainsFunc(a.templates, func(entry v1alpha1.ApprovedTemplate) bool { return Lists(&entry, q.Template) }):
			return "the template has another content than the one that is approved: its digest is " + q.Template.Digest
		default:
			return "it does not approve the template"
		}
	}
	if !a.Serves(q.User) {
		return "it does not serve you"
	}
	return ""
}

// withoutApproval returns the variant of a user who needs no approval.
func withoutApproval(declared NarrowDeclarations) []v1beta1.TemplateVariant {
	var parameters []v1beta1.AvailableParameter
	for _, p := range declared.Parameters() {
		parameters = append(parameters, available(p).hidden())
	}
	return []v1beta1.TemplateVariant{{Parameters: parameters}}
}

// narrow returns the parameters with the values that the approval allows, and an objection for each parameter for which it allows none.
func (a *Approval) narrow(declared NarrowDeclarations) ([]v1beta1.AvailableParameter, []Objection) {
	var parameters []v1beta1.AvailableParameter
	var impossible []Objection
	for _, p := range declared.Parameters() {
		n, possible := a.narrowed(p, declared)
		if !possible {
			impossible = append(impossible, a.object("parameters["+p.Name+"]", "no value satisfies both the template and the approval"))
		}
		parameters = append(parameters, n.hidden())
	}
	return parameters, impossible
}

// narrowed returns a parameter with the values that the approval allows, and false if it allows none.
func (a *Approval) narrowed(p templatev1beta1.Parameter, declared NarrowDeclarations) (n *narrowed, possible bool) {
	n = available(p)
	switch c := a.constraintOf(p.Name); {
	case c != nil:
		return n, n.constrain(c, p, declared)
	case !declared.Naming(p.Name):
		n.Fixed, n.Required, n.Enum, n.Patterns, n.Minimum, n.Maximum = true, false, nil, nil, nil, nil
	}
	return n, true
}

// constraintOf returns the constraint of a parameter, nil if the approval does not list it.
func (a *Approval) constraintOf(parameter string) *constraint {
	i := slices.IndexFunc(a.constraints, func(c constraint) bool { return c.Name == parameter })
	if i < 0 {
		return nil
	}
	return &a.constraints[i]
}

// AllowedValues are the values of one parameter that an approval allows.
type AllowedValues struct {
	v1beta1.AvailableParameter
	// None means that no value satisfies both the template and the approval.
	None bool

	constraint *constraint
}

// Accepts reports whether the approval allows a value, except for the Requirements.
func (v *AllowedValues) Accepts(value string) bool {
	return v.constraint == nil || v.constraint.accepts(value)
}

// Values returns the parameters of a template with the values that an approval allows, or with all values of the template if the approval is nil. Other
// than Narrow it returns the values of sensitive parameters. The values also have to satisfy the Requirements, which Objections checks.
func Values(a *Approval, declared NarrowDeclarations) []AllowedValues {
	var all []AllowedValues
	for _, p := range declared.Parameters() {
		v := AllowedValues{AvailableParameter: v1beta1.AvailableParameter(*available(p))}
		if a != nil {
			n, possible := a.narrowed(p, declared)
			v.AvailableParameter, v.None, v.constraint = v1beta1.AvailableParameter(*n), !possible, a.constraintOf(p.Name)
		}
		all = append(all, v)
	}
	return all
}

// RelatesParameters reports whether the values that the approval allows for one parameter may depend on those of others.
func (a *Approval) RelatesParameters() bool {
	return slices.ContainsFunc(a.constraints, func(c constraint) bool { return strings.Contains(c.Expression, "params") })
}

// narrowed is a parameter while its values are narrowed.
type narrowed v1beta1.AvailableParameter

func available(p templatev1beta1.Parameter) *narrowed {
	n := &narrowed{
		Name: p.Name, DisplayName: p.DisplayName, Description: p.Description, Type: p.Type, Default: p.Value, Generated: generated(p),
		Required: HasNoValue(p), NonEmpty: p.Required, Multiline: p.Multiline, Sensitive: p.Sensitive, Mutable: p.Mutable, Enum: p.Enum, Minimum: p.Minimum, Maximum: p.Maximum,
	}
	if p.Pattern != "" {
		n.Patterns = []string{p.Pattern}
	}
	return n
}

// hidden returns the parameter without what users must not see of a sensitive one.
func (n *narrowed) hidden() v1beta1.AvailableParameter {
	if n.Sensitive {
		if n.Default = ""; len(n.Enum) > 0 {
			n.Enum = nil
			n.Requirements = append(n.Requirements, "must be one of the values that are listed")
		}
	}
	return v1beta1.AvailableParameter(*n)
}

// constrain narrows the values by a constraint. It returns false if none remains.
func (n *narrowed) constrain(c *constraint, p templatev1beta1.Parameter, declared NarrowDeclarations) bool {
	listed := n.Enum
	if len(listed) == 0 {
		listed = c.Allowed
	}
	n.Enum = nil
	for _, value := range listed {
		if c.accepts(value) && declared.Accepts(p.Name, value) {
			n.Enum = append(n.Enum, value)
		}
	}
	if c.Pattern != "" && !slices.Contains(n.Patterns, c.Pattern) {
		n.Patterns = append(n.Patterns, c.Pattern)
	}
	n.bound(c)
	if c.expression != nil {
		n.Requirements = append(n.Requirements, c.describeExpression())
	}
	switch {
	case generated(p):
		// The values of a generator are not known, unless none of them is listed.
		if len(n.Enum) > 0 && !slices.ContainsFunc(n.Enum, func(value string) bool { return declared.Generates(p.Name, value) }) {
			n.Required = true
		}
	case !c.accepts(p.Value):
		// The value that the VirtualMachine has without a given one is evaluated, too.
		n.Default, n.Required = "", true
	}
	return (len(listed) == 0 || len(n.Enum) > 0) && (n.Minimum == nil || n.Maximum == nil || *n.Minimum <= *n.Maximum)
}

// bound narrows the range of an integer.
func (n *narrowed) bound(c *constraint) {
	if c.Minimum == nil && c.Maximum == nil {
		return
	}
	switch n.Type {
	case "", templatev1beta1.ParameterTypeString, templatev1beta1.ParameterTypeInt:
		n.Type = templatev1beta1.ParameterTypeInt
	default:
		n.Requirements = append(n.Requirements, "must be an integer within the bounds of the approval")
		return
	}
	if c.Minimum != nil && (n.Minimum == nil || *c.Minimum > *n.Minimum) {
		n.Minimum = c.Minimum
	}
	if c.Maximum != nil && (n.Maximum == nil || *c.Maximum < *n.Maximum) {
		n.Maximum = c.Maximum
	}
}

// accepts reports whether a value satisfies the constraint, except for its expression, which may depend on the values of other parameters.
func (c *constraint) accepts(value string) bool {
	without := *c
	without.expression = nil
	check := valueCheck{constraint: &without, value: value, sensitive: func(string) bool { return true }}
	check.run()
	return len(check.causes) == 0
}
