package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

// maxPlanBytes is what fits into an object of etcd, which is at most 1.5 MiB.
const maxPlanBytes = 1 << 20

// plan checks the plan of a mover, and writes it to the status.
func (i *importing) plan(from *transfer.Plan) error {
	if from == nil {
		return &permanentError{transfer.ReasonNotAPackage, "the mover has found no plan"}
	}
	template := &v1beta1.VirtualMachineTemplate{}
	if err := json.Unmarshal(from.Template, template); err != nil {
		return &permanentError{transfer.ReasonNotAPackage, fmt.Sprintf("the template of the package cannot be read: %v", err)}
	}
	if len(from.Disks) > i.settings.MaxDisks {
		return &permanentError{transfer.ReasonLimitExceeded, fmt.Sprintf("the package has %d disks, and at most %d are imported", len(from.Disks), i.settings.MaxDisks)}
	}
	// Labels of a package could make approvals select the template.
	template.ObjectMeta = metav1.ObjectMeta{Name: i.templateName(), Namespace: i.object.Namespace, Annotations: template.Annotations, Labels: maps.Clone(i.object.Spec.TemplateLabels)}
	maps.DeleteFunc(template.Annotations, func(key, _ string) bool {
		return strings.Contains(key, "kubevirt.io/") && !strings.HasPrefix(key, "ovf.")
	})
	template.APIVersion, template.Kind = v1beta1.GroupVersion.String(), "VirtualMachineTemplate"
	raw, err := json.Marshal(template)
	if err != nil {
		return &permanentError{transfer.ReasonNotAPackage, err.Error()}
	}
	plan := &v1beta1.ImportPlan{
		Format: from.Format, Description: from.Description, Revision: from.Revision, VerifiedBy: from.Verified, Template: &runtime.RawExtension{Raw: raw}, Agreements: from.Agreements,
	}
	if from.Size >= 0 {
		plan.Size = &from.Size
	}
	if err := i.planDisks(plan, from.Disks); err != nil {
		return err
	}
	for _, note := range from.Notes {
		plan.Notes = append(plan.Notes, note.String())
	}
	identified, err := json.Marshal(plan)
	if err != nil {
		return &permanentError{transfer.ReasonNotAPackage, err.Error()}
	}
	if len(identified) > maxPlanBytes {
		return &permanentError{transfer.ReasonLimitExceeded, fmt.Sprintf("the plan has %d bytes, and a status has room for %d: the template or the licences are too large", len(identified), maxPlanBytes)}
	}
	sum := sha256.Sum256(identified)
	plan.Digest = "sha256:" + hex.EncodeToString(sum[:])
	i.object.Status.Plan = plan
	return nil
}

// planDisks checks the disks of a plan, and adds them to it.
func (i *importing) planDisks(plan *v1beta1.ImportPlan, disks []transfer.PlannedDisk) error {
	names, left := map[string]bool{}, i.settings.MaxBytes
	for _, disk := range disks {
		switch {
		case len(validation.IsDNS1123Subdomain(disk.Name)) > 0:
			return &permanentError{transfer.ReasonNotAPackage, fmt.Sprintf("disk %s of the package has a name that no PersistentVolumeClaim has", disk.Name)}
		case names[disk.Name]:
			return &permanentError{transfer.ReasonNotAPackage, "two disks of the package have the name " + disk.Name}
		case disk.Size < 0 || disk.Size > i.settings.MaxBytes:
			return &permanentError{transfer.ReasonLimitExceeded, fmt.Sprintf("disk %s of the package has %d bytes, and at most %d are imported", disk.Name, disk.Size, i.settings.MaxBytes)}
		case disk.Size > left:
			return &permanentError{transfer.ReasonLimitExceeded, fmt.Sprintf("the disks of the package have %d bytes, and at most %d are imported", i.settings.MaxBytes-left+disk.Size, i.settings.MaxBytes)}
		}
		names[disk.Name], left = true, left-disk.Size
		plan.Disks = append(plan.Disks, v1beta1.ImportPlanDisk{Name: disk.Name, Volume: disk.Volume, File: disk.File, Size: disk.Size, CDROM: disk.CDROM})
	}
	return nil
}

// wait returns what a user has to do before disks are imported; empty if nothing.
func (i *importing) wait() string {
	spec, plan := &i.object.Spec, i.object.Status.Plan
	switch {
	case len(plan.Agreements) > 0 && !spec.EULAAccepted:
		return "the package has licences, in status.plan.agreements: set spec.eulaAccepted to true to accept them"
	case spec.Approval == v1beta1.ImportApprovalManual && spec.ApprovedPlan != plan.Digest:
		return "the plan has to be approved: set spec.approvedPlan to status.plan.digest, " + plan.Digest
	}
	return ""
}
