package approval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Template is what approvals evaluate of a VirtualMachineTemplate. The zero value is for a VirtualMachine without a template.
type Template struct {
	Namespace, Name string
	// Labels of the object.
	Labels map[string]string
	// Digest of its content: on creation the content from which the VirtualMachine is rendered, afterwards that from which it was rendered.
	Digest string
	// Deleted reports whether the object no longer exists, or was replaced by another of the same name. Its labels are then unavailable, so it is
	// approved by its name only.
	Deleted bool
}

// Approves reports whether the approval lists a template. If not, why is the reason, in a message to the user. It names no other template: the user may
// have no permission to read or use them.
func (a *Approval) Approves(t Template) (approved bool, why string) {
	if a.invalid != nil {
		return false, a.denialMessage
	}
	if t.Name == "" {
		return false, "the VirtualMachine names no template"
	}
	pinned := ""
	for i := range a.templates {
		entry := &a.templates[i]
		switch {
		case !Lists(entry, t):
		case admits(entry, t):
			return true, ""
		default:
			pinned = entry.Digest
		}
	}
	if pinned != "" {
		return false, fmt.Sprintf("template %s/%s has another content than the one that is approved: its digest is %s, approved is %s", t.Namespace, t.Name, t.Digest, pinned)
	}
	return false, fmt.Sprintf("it does not approve template %s/%s", t.Namespace, t.Name)
}

// TemplateNamespaces are the namespaces in which the approval lists templates,
// sorted.
func (a *Approval) TemplateNamespaces() []string {
	var namespaces []string
	for _, entry := range a.templates {
		namespaces = append(namespaces, entry.Namespace)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// Listed returns the templates that the approval lists, sorted, as NAMESPACE/NAME, or NAMESPACE/* where it selects them by labels. A closed approval
// lists none.
func (a *Approval) Listed() []string {
	if a.invalid != nil {
		return nil
	}
	var listed []string
	for _, entry := range a.templates {
		name := entry.Name
		if name == "" {
			name = "*"
		}
		listed = append(listed, entry.Namespace+"/"+name)
	}
	slices.Sort(listed)
	return slices.Compact(listed)
}

// ListsTemplate reports whether the approval lists a template, with whatever content.
func (a *Approval) ListsTemplate(t Template) bool {
	return slices.ContainsFunc(a.templates, func(entry v1alpha1.ApprovedTemplate) bool { return Lists(&entry, t) })
}

// Lists reports whether an entry of an approval applies to a template, regardless of the template's content.
func Lists(entry *v1alpha1.ApprovedTemplate, t Template) bool {
	switch {
	case entry.Namespace != t.Namespace:
		return false
	case entry.Name != "":
		return entry.Name == t.Name
	default:
		return !t.Deleted && entry.Selector != nil && selects(entry.Selector, t.Labels)
	}
}

// maxListed is how many entries of a list a message shows.
const maxListed = 10

// shorten joins entries, and counts those beyond maxListed.
func shorten(entries []string) string {
	if more := len(entries) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(entries[:maxListed], ", "), more)
	}
	return strings.Join(entries, ", ")
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func validateTemplates(listed []v1alpha1.ApprovedTemplate, path *field.Path) field.ErrorList {
	var causes field.ErrorList
	if len(listed) == 0 {
		causes = append(causes, field.Required(path, "an approval lists at least one template"))
	}
	for i, entry := range listed {
		at := path.Index(i)
		causes = append(causes, invalids(at.Child("namespace"), entry.Namespace, validation.IsDNS1123Label(entry.Namespace))...)
		switch {
		case (entry.Name == "") == (entry.Selector == nil):
			causes = append(causes, field.Invalid(at, omitted, "exactly one of name and selector must be given"))
		case entry.Selector != nil:
			causes = append(causes, validateSelector(entry.Selector, at.Child("selector"))...)
		default:
			causes = append(causes, invalids(at.Child("name"), entry.Name, validation.IsDNS1123Subdomain(entry.Name))...)
		}
		if entry.Digest != "" && !digestPattern.MatchString(entry.Digest) {
			causes = append(causes, field.Invalid(at.Child("digest"), shown(entry.Digest), "must be sha256: and 64 hexadecimal digits in lower case"))
		}
	}
	return causes
}
