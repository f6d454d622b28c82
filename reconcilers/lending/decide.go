package lending

import (
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/internal/disks"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const (
	// annotationLentBy on a DataVolume names the template that lent its source, and the UID of the template.
	annotationLentBy = "stencil.kubevirt.io/lent-by"
	// annotationAdoption lets CDI take over a claim that exists. virt-controller sets it on every DataVolume that it creates.
	annotationAdoption = "cdi.kubevirt.io/allowClaimAdoption"
	annotationBind     = "cdi.kubevirt.io/storage.bind.immediate.requested"
	annotationsOfCDI   = "cdi.kubevirt.io/"
)

// state is the input of decide.
type state struct {
	// vm is the stored VirtualMachine, as decoded JSON; nil if there is none, or if it is being deleted.
	vm     *unstructured.Unstructured
	record machine.Record
	// failure is the message of KubeVirt if it could not create something for the VirtualMachine.
	failure string
	// revoked reports that the user of the grant may not use the template.
	revoked bool
	disks   []disk
}

// disk is one of the dataVolumeTemplates that copies from another namespace.
type disk struct {
	disks.Loan
	// dataVolume and claim of its name; nil if there are none.
	dataVolume, claim *metav1.ObjectMeta
	// source is what Loan.Source leads to. It is read only for a disk that is lent and does not exist.
	source disks.Resolved
	// outside is a namespace on the way to the source that is not that of the template.
	outside string
}

// missing reports whether the disk does not exist, and the template lends it.
func (d *disk) missing() bool { return d.dataVolume == nil && d.Denial == "" }

// plan is the result of decide.
type plan struct {
	// create are the DataVolumes to create.
	create []*unstructured.Unstructured
	// denials are the disks that neither the template lends nor KubeVirt may copy.
	denials []denial
	// waits is why a disk cannot be created yet; empty if none waits.
	waits string
}

type denial struct {
	disk   *disk
	reason string
}

// decide returns the DataVolumes that a VirtualMachine lacks and its template lends.
func decide(s *state) plan {
	var p plan
	if s.vm == nil {
		return p
	}
	for i := range s.disks {
		d := &s.disks[i]
		reason := d.Denial
		switch {
		case d.dataVolume != nil:
			continue
		case reason != "":
		case d.claim != nil && !disks.Own(d.claim.Labels, s.vm.GetUID()):
			reason = fmt.Sprintf("PersistentVolumeClaim %s/%s exists: %s", s.vm.GetNamespace(), d.Name, disks.Problem(d.claim.Labels))
		case d.source.Found == nil:
			p.waits = d.source.Problem
			continue
		case d.source.Namespace != s.record.Namespace:
			reason = fmt.Sprintf("VirtualMachineTemplate %s/%s lends only what is in its own namespace, and %s %s/%s is not", s.record.Namespace, s.record.Name, d.source.Kind, d.source.Namespace, d.source.Name)
		case d.outside != "":
			reason = fmt.Sprintf("VirtualMachineTemplate %s/%s lends only what is in its own namespace, and a DataSource of namespace %s selects it", s.record.Namespace, s.record.Name, d.outside)
		case d.source.Found.DeletionTimestamp != nil:
			p.waits = fmt.Sprintf("%s %s/%s is being deleted", d.source.Kind, d.source.Namespace, d.source.Name)
			continue
		default:
			p.create = append(p.create, s.manifest(d))
			continue
		}
		// KubeVirt creates the disk if the ServiceAccount of the namespace has the permission.
		if strings.Contains(s.failure, "clone source namespace") {
			p.denials = append(p.denials, denial{d, reason})
		}
	}
	return p
}

// manifest returns the DataVolume that virt-controller would create, with its source resolved.
func (s *state) manifest(d *disk) *unstructured.Unstructured {
	metadata := machine.MapAt(d.DataVolume, "metadata")
	labels := texts(machine.MapAt(metadata, "labels"))
	labels[disks.CreatedBy] = string(s.vm.GetUID())
	annotations := texts(machine.MapAt(metadata, "annotations"))
	// CDI's other annotations change how a disk is filled, and by what right.
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, annotationsOfCDI) && key != annotationBind })
	annotations[annotationAdoption] = "true"
	annotations[annotationLentBy] = fmt.Sprintf("%s/%s %s", s.record.Namespace, s.record.Name, s.record.UID)

	spec := runtime.DeepCopyJSON(machine.MapAt(d.DataVolume, "spec"))
	delete(spec, "sourceRef")
	spec["source"] = d.source.DataVolumeSource()
	priority := machine.StringAt(machine.MapAt(s.vm.Object, "spec", "template", "spec"), "priorityClassName")
	if machine.StringAt(spec, "priorityClassName") == "" && priority != "" {
		spec["priorityClassName"] = priority
	}

	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(dataVolumes.GroupVersion().WithKind("DataVolume"))
	made.SetNamespace(s.vm.GetNamespace())
	made.SetName(d.Name)
	made.SetLabels(labels)
	made.SetAnnotations(annotations)
	controller, blocks := true, false
	made.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: virtualMachines.GroupVersion().String(), Kind: kindVM, Name: s.vm.GetName(), UID: s.vm.GetUID(),
		// Blocking the deletion of the owner requires permission to update its finalizers.
		Controller: &controller, BlockOwnerDeletion: &blocks,
	}})
	return made
}

// texts returns the texts of a map.
func texts(in map[string]any) map[string]string {
	found := make(map[string]string, len(in)+1)
	for key := range in {
		found[key] = machine.StringAt(in, key)
	}
	return found
}

// grant returns the command that permits KubeVirt to create the disk.
func (d denial) grant(namespace string) string {
	to := d.disk.source.Source
	if to.Name == "" {
		to = d.disk.Source
	}
	return to.Grant(namespace)
}
