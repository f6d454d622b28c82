package approval

import (
	"fmt"
	"slices"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// DiskSource is what a disk of a VirtualMachine comes from.
type DiskSource struct {
	// Field is its path in the VirtualMachine.
	Field string
	// UID or Digest is the identity of the content; both are empty where it has none.
	UID, Digest string
	// Description is what the source is, or why it has no identity.
	Description string
}

// PinsSources reports whether any approval that lists the template with its content pins the content of disks, so that Sources are required.
func PinsSources(approvals []*Approval, t Template) bool {
	return slices.ContainsFunc(approvals, func(a *Approval) bool {
		return slices.ContainsFunc(a.templates, func(entry v1alpha1.ApprovedTemplate) bool {
			return len(entry.Sources) > 0 && admits(&entry, t)
		})
	})
}

// admits reports whether an entry lists the template with the content that it has.
func admits(entry *v1alpha1.ApprovedTemplate, t Template) bool {
	return Lists(entry, t) && (entry.Digest == "" || entry.Digest == t.Digest)
}

// sourceObjections returns one objection for each disk with a source that an entry of the template does not permit. One entry that permits all disks
// is enough; the objections are those of the first that does not.
func (a *Approval) sourceObjections(q Question) []Objection {
	if q.Sources == nil {
		return nil
	}
	var first []Objection
	for i := range a.templates {
		entry := &a.templates[i]
		if !admits(entry, q.Template) {
			continue
		}
		objections := a.unpinned(entry, q.Template, q.Sources)
		if len(objections) == 0 {
			return nil
		}
		if first == nil {
			first = objections
		}
	}
	return first
}

func (a *Approval) unpinned(entry *v1alpha1.ApprovedTemplate, t Template, sources []DiskSource) []Objection {
	if len(entry.Sources) == 0 {
		return nil
	}
	var objections []Objection
	for _, source := range sources {
		listed := slices.ContainsFunc(entry.Sources, func(p v1alpha1.PinnedSource) bool {
			return p.UID != "" && p.UID == source.UID || p.Digest != "" && p.Digest == source.Digest
		})
		if !listed {
			objections = append(objections, a.object(source.Field, fmt.Sprintf("the content of the disk is none that is approved with template %s/%s: %s",
				t.Namespace, t.Name, source.Description)))
		}
	}
	return objections
}
