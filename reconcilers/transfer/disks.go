package transfer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/ovf/conversion"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// exported is a disk of an export.
type exported struct {
	// volume is its name in the VirtualMachine.
	volume string
	cdrom  bool
	// source is the object that the template names.
	source disks.Source
}

// exportable is a template in the form in which it is exported.
type exportable struct {
	// template and vm have a PersistentVolumeClaim as source of each disk that is exported, so that an import can put its own there.
	template *v1beta1.VirtualMachineTemplate
	vm       map[string]any
	disks    []exported
}

// prepare finds the disks of a template. The VirtualMachine is the one that the template renders with the defaults of its parameters.
func prepare(from *v1beta1.VirtualMachineTemplate, vm map[string]any) (*exportable, error) {
	template := from.DeepCopy()
	if template.Spec.VirtualMachine == nil {
		return nil, fmt.Errorf("template %s has no VirtualMachine", template.Name)
	}
	declared, err := machine.Decode(template.Spec.VirtualMachine.Raw)
	if err != nil {
		return nil, fmt.Errorf("reading the VirtualMachine of template %s: %w", template.Name, err)
	}
	// References to DataSources and snapshots become references to claims, in the template and in the VirtualMachine alike.
	originals := map[string]disks.Source{}
	for _, object := range []map[string]any{declared, vm} {
		for _, each := range machine.MapsAt(machine.MapAt(object, "spec"), "dataVolumeTemplates") {
			replaceSource(machine.MapAt(each, "spec"), template.Namespace, originals)
		}
	}
	if template.Spec.VirtualMachine.Raw, err = json.Marshal(declared); err != nil {
		return nil, fmt.Errorf("encoding the VirtualMachine of template %s: %w", template.Name, err)
	}
	p := &exportable{template: template, vm: vm}
	for _, source := range conversion.Sources(template, vm) {
		namespace := source.Namespace
		if namespace == "" {
			namespace = template.Namespace
		}
		original, replaced := originals[source.Claim]
		if !replaced {
			original = disks.Source{Kind: disks.ClaimKind, Namespace: namespace, Name: source.Claim}
		}
		p.disks = append(p.disks, exported{volume: source.Volume, cdrom: source.CDROM, source: original})
	}
	return p, nil
}

// placeholders begin the names of claims that stand for objects of these kinds.
var placeholders = map[string]string{disks.DataSourceKind: "datasource", disks.SnapshotKind: "snapshot"}

// replaceSource replaces a DataSource or a snapshot in the spec of a DataVolume by a claim, and stores the original by the name of the claim. What a
// parameter selects stays as it is: it is not the template's own.
func replaceSource(spec map[string]any, namespace string, originals map[string]disks.Source) {
	var kind string
	var from map[string]any
	source := machine.MapAt(spec, "source")
	switch {
	case machine.MapAt(spec, "sourceRef") != nil:
		kind, from = disks.DataSourceKind, machine.MapAt(spec, "sourceRef")
	case machine.MapAt(source, "snapshot") != nil:
		kind, from = disks.SnapshotKind, machine.MapAt(source, "snapshot")
	default:
		return
	}
	name, in := machine.StringAt(from, "name"), machine.StringAt(from, "namespace")
	if in == "" {
		in = namespace
	}
	if name == "" || strings.Contains(name+in, "${") {
		return
	}
	// No claim has a name with a colon, so that it can be distinguished from the name of one.
	claim := placeholders[kind] + ":" + in + ":" + name
	originals[claim] = disks.Source{Kind: kind, Namespace: in, Name: name}
	delete(spec, "sourceRef")
	spec["source"] = map[string]any{"pvc": map[string]any{"namespace": in, "name": claim}}
}
