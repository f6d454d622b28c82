package approval

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// DenyingDisk returns the approvals of the namespace that do not allow a VirtualMachine a disk with these labels that KubeVirt did not create for it,
// ordered by name: those with the strictest enforcement. A VirtualMachine has to satisfy one approval only, but each of them has to allow a disk,
// because the disk is not part of the template that one of them approves. Approvals that only audit deny nothing.
func DenyingDisk(approvals []*Approval, labels map[string]string) []*Approval {
	strict := strictest(approvals)
	if strict == v1alpha1.EnforcementAudit {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(byName(approvals)), func(a *Approval) bool {
		return a.enforcement != strict || a.AllowsDisk(labels)
	})
}

// AllowsDisk reports whether the approval allows a VirtualMachine a disk with these
// labels that KubeVirt did not create for it.
func (a *Approval) AllowsDisk(labels map[string]string) bool {
	return a.invalid == nil && a.disks.Policy == v1alpha1.ExistingDiskAllow &&
		(a.disks.Selector == nil || selects(a.disks.Selector, labels))
}

// DecidesOnDisks reports whether an approval of the namespace may deny a disk that KubeVirt did not create for its VirtualMachine. If not, callers
// need no information about disks.
func DecidesOnDisks(approvals []*Approval) bool {
	strict := strictest(approvals)
	return strict != v1alpha1.EnforcementAudit && slices.ContainsFunc(approvals, func(a *Approval) bool {
		return a.enforcement == strict && (a.disks.Selector != nil || !a.AllowsDisk(nil))
	})
}

func validateExistingDisks(disks v1alpha1.ExistingDisks, path *field.Path) field.ErrorList {
	var causes field.ErrorList
	switch disks.Policy {
	case "", v1alpha1.ExistingDiskDeny:
		if disks.Selector != nil {
			causes = append(causes, field.Forbidden(path.Child("selector"), "selector limits what policy Allow permits, so it needs policy Allow"))
		}
	case v1alpha1.ExistingDiskAllow:
	default:
		causes = append(causes, field.NotSupported(path.Child("policy"), disks.Policy, []v1alpha1.ExistingDiskPolicy{
			v1alpha1.ExistingDiskDeny, v1alpha1.ExistingDiskAllow,
		}))
	}
	if disks.Selector != nil {
		causes = append(causes, validateSelector(disks.Selector, path.Child("selector"))...)
	}
	return causes
}
