package approval

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Object is an object that a template has besides the VirtualMachine.
type Object struct {
	// Field is its place in the template.
	Field string
	schema.GroupKind
	// Name is its name. When empty, names are not evaluated.
	Name string
	// Description is its kind and its name as in the template, so that it contains no values of parameters.
	Description string
	// Lent reports that the template lends the right to create it.
	Lent bool
}

// ObjectDeclarations are the objects of a template; a template.Compiled has them.
type ObjectDeclarations interface {
	// Objects are their kinds and names as in the template.
	Objects() []string
	// ObjectKinds are their kinds, in the same order.
	ObjectKinds() []schema.GroupKind
	// LendsObject reports whether the template lends the right to create one of them.
	LendsObject(i int) bool
}

// ObjectsOf returns the objects of a template, without names.
func ObjectsOf(t Template, declared ObjectDeclarations) []Object {
	at := field.NewPath(fmt.Sprintf("template[%s/%s]", t.Namespace, t.Name), "spec", "objects")
	var all []Object
	kinds := declared.ObjectKinds()
	for i, description := range declared.Objects() {
		all = append(all, Object{Field: at.Index(i).String(), GroupKind: kinds[i], Description: description, Lent: declared.LendsObject(i)})
	}
	return all
}

// ReasonObject is the reason of an objection to an object besides the VirtualMachine.
const ReasonObject = "object"

// LimitsObjects reports whether any approval limits the objects that are created with a VirtualMachine, so that Objects are required.
func LimitsObjects(approvals []*Approval) bool {
	return slices.ContainsFunc(approvals, (*Approval).limitsObjects)
}

func (a *Approval) limitsObjects() bool {
	return a.objects.Policy == v1alpha1.ObjectDeny || len(a.objects.Allowed) > 0
}

// objectObjections returns one objection for each object that the approval does not allow. An object of which the template lends the right to
// create it is allowed only by an entry.
func (a *Approval) objectObjections(q Question) []Objection {
	allowed := "no objects of templates"
	if len(a.objects.Allowed) > 0 {
		allowed = "only " + a.describeObjects()
	}
	var objections []Objection
	for _, object := range q.Objects {
		if !a.limitsObjects() && !object.Lent || slices.ContainsFunc(a.objects.Allowed, func(entry v1alpha1.ApprovedObject) bool { return listsObject(entry, object) }) {
			continue
		}
		message := fmt.Sprintf("%s: the approval allows %s; use another template, or ask a cluster admin to list the object in objects", object.Description, allowed)
		if object.Lent {
			message = object.Description + ": the template lends the right to create it, which the approval does not allow; use another template, or ask a cluster admin to list the object in objects with rights: Template"
		}
		objection := a.object(object.Field, message)
		objection.Reason = ReasonObject
		objections = append(objections, objection)
	}
	return objections
}

func listsObject(entry v1alpha1.ApprovedObject, object Object) bool {
	return slices.Contains(entry.Kinds, object.String()) && (!object.Lent || entry.Rights == v1alpha1.ObjectRightsTemplate) &&
		(len(entry.Names) == 0 || object.Name == "" || slices.ContainsFunc(entry.Names, func(pattern string) bool {
			matches, err := path.Match(pattern, object.Name)
			return matches && err == nil
		}))
}

// describeObjects describes the objects that are listed.
func (a *Approval) describeObjects() string {
	var entries []string
	for _, entry := range a.objects.Allowed {
		text := strings.Join(entry.Kinds, ", ")
		if len(entry.Names) > 0 {
			text += " named " + shorten(entry.Names)
		}
		entries = append(entries, text)
	}
	if more := len(entries) - maxListed; more > 0 {
		entries = append(entries[:maxListed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(entries, "; ")
}

var (
	kindPattern       = regexp.MustCompile(`^[A-Z][0-9A-Za-z]{0,62}(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	objectNamePattern = regexp.MustCompile(`^[-0-9A-Za-z.:_*]+$`)
)

func validateObjects(objects v1alpha1.ApprovedObjects, at *field.Path) field.ErrorList {
	var causes field.ErrorList
	switch objects.Policy {
	case "", v1alpha1.ObjectAllow:
	case v1alpha1.ObjectDeny:
		if len(objects.Allowed) > 0 {
			causes = append(causes, field.Forbidden(at.Child("allowed"), "allowed limits what policy Allow permits, so it needs policy Allow"))
		}
	default:
		causes = append(causes, field.NotSupported(at.Child("policy"), objects.Policy, []v1alpha1.ObjectPolicy{v1alpha1.ObjectAllow, v1alpha1.ObjectDeny}))
	}
	for i, entry := range objects.Allowed {
		at := at.Child("allowed").Index(i)
		if len(entry.Kinds) == 0 {
			causes = append(causes, field.Required(at.Child("kinds"), "an entry lists at least one kind"))
		}
		switch entry.Rights {
		case "", v1alpha1.ObjectRightsUser, v1alpha1.ObjectRightsTemplate:
		default:
			causes = append(causes, field.NotSupported(at.Child("rights"), entry.Rights, []v1alpha1.ObjectRights{v1alpha1.ObjectRightsUser, v1alpha1.ObjectRightsTemplate}))
		}
		for j, kind := range entry.Kinds {
			if !kindPattern.MatchString(kind) {
				causes = append(causes, field.Invalid(at.Child("kinds").Index(j), shown(kind), "must be KIND, or KIND.GROUP as in NetworkPolicy.networking.k8s.io"))
			}
		}
		for j, name := range entry.Names {
			if !objectNamePattern.MatchString(name) {
				causes = append(causes, field.Invalid(at.Child("names").Index(j), shown(name), "must have only letters, digits, -, ., :, _ and *, which stands for any text"))
			}
		}
	}
	return causes
}
