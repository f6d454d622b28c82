package instances

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/disks"
)

// instance holds the fields of a VirtualMachineInstance that the webhook reads.
type instance struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     map[string]any    `json:"spec"`
}

// disk is a disk from the dataVolumeTemplates of a VirtualMachine that its instance uses.
type disk struct {
	// volume is the name of the volume.
	volume string
	// claim is the name of the claim. found is its metadata, or nil if the claim does not exist.
	claim string
	found *metav1.ObjectMeta
}

// mounted returns the disks from the dataVolumeTemplates of a VirtualMachine that its instance uses, or a problem
// with the VirtualMachine.
func mounted(vmi instance, owner *metav1.OwnerReference, vm map[string]any) (found []disk, problem string) {
	metadata, _ := vm["metadata"].(map[string]any)
	spec, _ := vm["spec"].(map[string]any)
	if uid, _ := metadata["uid"].(string); vm == nil || types.UID(uid) != owner.UID {
		return nil, fmt.Sprintf("metadata.ownerReferences: there is no VirtualMachine %q with UID %s, so it is not known which disks are its own: start a VirtualMachine that exists",
			owner.Name, owner.UID)
	}
	named := disks.Claims(vmi.Spec)
	for _, template := range disks.Templates(spec) {
		if volume, used := named[template.Name]; used {
			found = append(found, disk{volume: volume, claim: template.Name})
		}
	}
	if len(found) > disks.Maximum {
		return nil, fmt.Sprintf("spec.volumes: %d of them name dataVolumeTemplates, and at most %d are permitted", len(found), disks.Maximum)
	}
	return found, ""
}

// foreign describes the disks that KubeVirt did not create for the VirtualMachine and that an approval does not
// allow. It returns "" if there are none.
func foreign(owner *metav1.OwnerReference, mounted []disk, approvals []*approval.Approval) string {
	var problems []string
	for _, d := range mounted {
		at := fmt.Sprintf("spec.volumes[name=%s]: ", d.volume)
		var labels map[string]string
		if d.found != nil {
			labels = d.found.Labels
		}
		if disks.Own(labels, owner.UID) {
			continue
		}
		switch denying := approval.DenyingDisk(approvals, labels); {
		case len(denying) == 0:
		case d.found == nil:
			problems = append(problems, at+fmt.Sprintf("claim %q does not exist, so the owner of its disk is unknown: it is evaluated again when CDI has created it (approval %q)", d.claim, denying[0].Name()))
		default:
			problems = append(problems, at+fmt.Sprintf("claim %q was not created for VirtualMachine %q: %s; delete the claim and the DataVolume of this name, so that KubeVirt creates them, "+
				"or ask a cluster admin to allow it with existingDisks (approval %q)", d.claim, owner.Name, disks.Problem(d.found.Labels), denying[0].Name()))
		}
	}
	return strings.Join(problems, "; ")
}
