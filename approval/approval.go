package approval

import (
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Approval is a TemplateApproval, ready for use. It never changes and is safe for
// concurrent use.
type Approval struct {
	name       string
	uid        types.UID
	generation int64
	created    time.Time

	coverage    coverage
	enforcement v1alpha1.Enforcement
	everyone    bool // serves everyone
	served      subjects
	exempted    subjects

	templates   []v1alpha1.ApprovedTemplate
	constraints []constraint
	overrides   []Override
	disks       v1alpha1.ExistingDisks
	objects     v1alpha1.ApprovedObjects
	// generatedDenied and labelsAccepted are generatedValues and templateLabels.
	generatedDenied, labelsAccepted bool

	// invalid is why the approval is closed, denialMessage is the text in messages to users.
	invalid       error
	denialMessage string
}

// Option is a setting of Compile and Closed.
type Option func(*settings)

type settings struct{ excluded []string }

// Excluding removes namespaces from every approval, in addition to SystemNamespaces. It is for Stencil's own namespace.
func Excluding(namespaces ...string) Option {
	return func(s *settings) { s.excluded = append(s.excluded, namespaces...) }
}

// Compile makes an Approval of an object. It does not retain the object. An error about the object is an *InvalidError with all its causes.
func Compile(object *v1alpha1.TemplateApproval, options ...Option) (*Approval, error) {
	a := outline(object, options)
	spec, path := &object.Spec, field.NewPath("spec")

	causes := validateCoverage(spec, path)
	causes = append(causes, validateTemplates(spec.Templates, path.Child("templates"))...)
	constraints, more := compileConstraints(spec.Parameters, path.Child("parameters"))
	causes = append(causes, more...)
	a.constraints = constraints
	for i, text := range spec.Overrides {
		override, err := ParseOverride(text)
		if err != nil {
			causes = append(causes, field.Invalid(path.Child("overrides").Index(i), shown(text), err.Error()))
		}
		a.overrides = append(a.overrides, override)
	}
	causes = append(causes, validateExistingDisks(spec.ExistingDisks, path.Child("existingDisks"))...)
	a.disks = *spec.ExistingDisks.DeepCopy()
	causes = append(causes, validateObjects(spec.Objects, path.Child("objects"))...)
	a.objects = *spec.Objects.DeepCopy()
	a.generatedDenied = spec.GeneratedValues == v1alpha1.GeneratedValueDeny
	a.labelsAccepted = spec.TemplateLabels == v1alpha1.TemplateLabelAccept
	causes = append(causes, validateChoices(spec, path)...)
	causes = append(causes, validateSubjects(spec.Subjects, path.Child("subjects"))...)
	causes = append(causes, validateSubjects(spec.ExemptSubjects, path.Child("exemptSubjects"))...)
	if len(causes) > 0 {
		return nil, &InvalidError{Causes: causes}
	}
	return a, nil
}

// validateChoices rejects other values of fields that are one of a list.
func validateChoices(spec *v1alpha1.TemplateApprovalSpec, path *field.Path) field.ErrorList {
	return slices.Concat(
		oneOf(path.Child("generatedValues"), spec.GeneratedValues, v1alpha1.GeneratedValueAllow, v1alpha1.GeneratedValueDeny),
		oneOf(path.Child("templateLabels"), spec.TemplateLabels, v1alpha1.TemplateLabelIgnore, v1alpha1.TemplateLabelAccept),
		oneOf(path.Child("enforcement"), spec.Enforcement, v1alpha1.EnforcementDeny, v1alpha1.EnforcementWarn, v1alpha1.EnforcementAudit),
	)
}

func oneOf[T ~string](path *field.Path, value T, values ...T) field.ErrorList {
	if value == "" || slices.Contains(values, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, values)}
}

// Closed makes an Approval of an object that does not compile, for the given reason. The Approval has the namespaces, exempt subjects and enforcement
// of the object, and approves nothing.
func Closed(object *v1alpha1.TemplateApproval, reason error, options ...Option) *Approval {
	if reason == nil {
		reason = errors.New("no reason is given")
	}
	a := outline(object, options)
	a.invalid = fmt.Errorf("compiling TemplateApproval %q: %w", object.Name, reason)
	a.denialMessage = "it is invalid and approves nothing until a cluster admin corrects it"
	return a
}

// Undecided makes an Approval without a name that denies everything to every user, because a decision is not possible. The text is shown to users:
// the reason, and what to do.
func Undecided(why string) *Approval {
	return &Approval{enforcement: v1alpha1.EnforcementDeny, everyone: true, invalid: errors.New(why), denialMessage: why}
}

// outline returns the parts of an approval that are usable even when the object does not compile.
func outline(object *v1alpha1.TemplateApproval, options []Option) *Approval {
	var s settings
	for _, option := range options {
		option(&s)
	}
	spec := object.Spec.DeepCopy()
	a := &Approval{
		name:       object.Name,
		uid:        object.UID,
		generation: object.Generation,
		created:    object.CreationTimestamp.Time,

		coverage:    newCoverage(spec, s.excluded),
		enforcement: spec.Enforcement,
		everyone:    len(spec.Subjects) == 0,
		served:      newSubjects(spec.Subjects),
		exempted:    newSubjects(spec.ExemptSubjects),
		templates:   spec.Templates,
	}
	if a.enforcement != v1alpha1.EnforcementWarn && a.enforcement != v1alpha1.EnforcementAudit {
		a.enforcement = v1alpha1.EnforcementDeny
	}
	return a
}

// Name is the name of the object.
func (a *Approval) Name() string { return a.name }

// UID of the object.
func (a *Approval) UID() types.UID { return a.uid }

// Generation of the object.
func (a *Approval) Generation() int64 { return a.generation }

// Err is the reason why the approval is closed, or nil.
func (a *Approval) Err() error { return a.invalid }

// Enforcement is what happens to a VirtualMachine that satisfies no approval.
func (a *Approval) Enforcement() v1alpha1.Enforcement { return a.enforcement }

// Serves reports whether a user can satisfy the approval.
func (a *Approval) Serves(user authenticationv1.UserInfo) bool {
	return a.everyone || a.served.include(user)
}

// AcceptsLabels reports whether labels of a VirtualMachine refer to a template that the approval approves.
func (a *Approval) AcceptsLabels(t Template) bool {
	approved, _ := a.Approves(t)
	return approved && a.labelsAccepted
}

// Exempts reports whether the approval exempts a user.
func (a *Approval) Exempts(user authenticationv1.UserInfo) bool { return a.exempted.include(user) }

// Overridable reports whether users may set a place in addition to the template.
func (a *Approval) Overridable(path Path) bool { return anyCovers(a.overrides, path) }
