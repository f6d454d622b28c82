package approval

import (
	"fmt"
	"slices"
	"sync"

	contract "github.com/vmstencil/stencil/api/template"
)

// clusterAdditions are the places at which Stencil, KubeVirt v1.8, and the MAC pools that are usually installed with it, add to the spec of VirtualMachines:
// on creation what the guest would otherwise lose at its next start, later what snapshots and restores need. The instance type and preference that
// KubeVirt infers from a volume are not listed; see inferred.
var clusterAdditions = []string{
	"spec.dataVolumeTemplates[*].spec.pvc.storageClassName",
	"spec.dataVolumeTemplates[*].spec.storage.storageClassName",
	"spec.instancetype.revisionName",
	"spec.preference.revisionName",
	`spec.template.metadata.annotations["kubevirt.io/pci-interface-slot-count"]`,
	`spec.template.metadata.annotations["kubevirt.io/pci-topology-version"]`,
	`spec.template.metadata.annotations["` + contract.AnnotationHold + `"]`,
	"spec.template.spec.architecture",
	"spec.template.spec.domain.devices.interfaces[*].macAddress",
	"spec.template.spec.domain.firmware.serial",
	"spec.template.spec.domain.firmware.uuid",
	"spec.template.spec.domain.machine.type",
}

// ClusterAdditions returns the places at which the cluster itself adds to VirtualMachines: those of KubeVirt, and the given ones, for other admission
// webhooks and controllers of this cluster. The given places are overrides. The error names the one that cannot be parsed.
func ClusterAdditions(more ...string) (*Additions, error) {
	a := &Additions{overrides: append([]Override(nil), defaultAdditions()...)}
	for _, text := range more {
		override, err := ParseOverride(text)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", text, err)
		}
		a.overrides = append(a.overrides, override)
	}
	return a, nil
}

var defaultAdditions = sync.OnceValue(func() []Override { return overridesOf(clusterAdditions) })

// overridesOf parses places of this package.
func overridesOf(places []string) []Override {
	overrides := make([]Override, len(places))
	for i, text := range places {
		override, err := ParseOverride(text)
		if err != nil {
			panic(fmt.Sprintf("reading %q: %v", text, err))
		}
		overrides[i] = override
	}
	return overrides
}

// Additions are places at which the cluster adds to VirtualMachines. They are safe
// for concurrent use.
type Additions struct {
	overrides []Override
	// defaulted reports whether stencil-defaulter also adds to VirtualMachines.
	defaulted bool
}

// Beyond returns the places that Added returns, except those at which the cluster adds.
func (a *Additions) Beyond(rendered, stored map[string]any) []Path {
	var beyond []Path
	for _, path := range Added(rendered, stored) {
		if a.covers(path) || inferred(rendered, path) || a.defaulted && defaulted(rendered, stored, path) {
			continue
		}
		beyond = append(beyond, path)
	}
	return beyond
}

func (a *Additions) covers(path Path) bool { return anyCovers(a.overrides, path) }

func anyCovers(overrides []Override, path Path) bool {
	for i := range overrides {
		if overrides[i].Covers(path) {
			return true
		}
	}
	return false
}

// inferred reports whether a place holds the name or the kind of an instance type or a preference that KubeVirt infers from a volume because the
// template requests it. KubeVirt removes inferFromVolume then.
func inferred(rendered map[string]any, path Path) bool {
	if len(path) != 3 || path[1] != Field("instancetype") && path[1] != Field("preference") ||
		path[2] != Field("name") && path[2] != Field("kind") {
		return false
	}
	spec, _ := rendered["spec"].(map[string]any)
	matcher, _ := spec[path[1].text].(map[string]any)
	volume, _ := matcher["inferFromVolume"].(string)
	return volume != ""
}

// ChangesByUser returns the places of [Changes] except additions by admission webhooks of the cluster: KubeVirt adds a machine type, for example, to
// every VirtualMachine that has none, whatever the request changes. Such a place is outside of lists, the stored object
// has nothing there, and no client has set it.
//
// What clients set, this request included, is in metadata.managedFields of the new object, as an admission webhook receives it: the API server
// computes it before mutating admission. If there is none, or a is nil, all changes are the user's.
func (a *Additions) ChangesByUser(old, new map[string]any) []Path {
	changes := Changes(old, new)
	metadata, _ := new["metadata"].(map[string]any)
	managers, _ := metadata["managedFields"].([]any)
	if a == nil || len(managers) == 0 {
		return changes
	}
	claimed := func(path Path) bool {
		return slices.ContainsFunc(managers, func(manager any) bool {
			entry, _ := manager.(map[string]any)
			fields, _ := entry["fieldsV1"].(map[string]any)
			return claims(fields, path)
		})
	}
	return slices.DeleteFunc(changes, func(path Path) bool {
		return a.covers(path) && absent(old, path) && !claimed(path)
	})
}

// absent reports whether an object has nothing at a path, which leads through maps only.
func absent(object any, path Path) bool {
	for _, step := range path {
		members, is := object.(map[string]any)
		if step.kind != stepField || !is && !vacant(object) {
			return false
		}
		object = members[step.text]
	}
	return vacant(object)
}

// claims reports whether a manager owns a field, a field that contains it whole, or a field in it. The fields are in the format FieldsV1.
func claims(fields map[string]any, path Path) bool {
	for _, step := range path {
		below, found := fields["f:"+step.text].(map[string]any)
		if !found || len(below) == 0 {
			return found
		}
		fields = below
	}
	return true
}
