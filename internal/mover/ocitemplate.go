package mover

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/identity"
	"github.com/vmstencil/stencil/oci"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/template/extensions"
	"github.com/vmstencil/stencil/template/plain"
	"github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/transfer"
)

// made is the template of an artifact.
type made struct {
	template *v1beta1.VirtualMachineTemplate
	// volumes are the volumes of the VirtualMachine by the claims of which they are copies.
	volumes map[string]string
}

type noting func(action conversion.Action, source, format string, arguments ...any)

// makeTemplate makes a template of the resource of an artifact, whose claims are in the namespace of the import.
func makeTemplate(resource *oci.Resource, choices transfer.Conversion, claims []oci.Claim, note noting) (*made, error) {
	if err := checkChoices(choices, "a "+string(resource.Kind)); err != nil {
		return nil, err
	}
	m := &made{volumes: map[string]string{}}
	raw, err := json.Marshal(resource.Object)
	if err != nil {
		return nil, err
	}
	t := &v1beta1.VirtualMachineTemplate{}
	var vm map[string]any
	if resource.Kind == oci.VirtualMachineTemplate {
		if raw, err = restore(raw, note); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, t); err != nil {
			return nil, failed(transfer.ReasonNotAPackage, false, "the template of the artifact: %v", err)
		}
		if t.Spec.VirtualMachine == nil {
			return nil, failed(transfer.ReasonNotAPackage, false, "the template of the artifact has no VirtualMachine")
		}
		if vm, err = virtualmachine.Decode(t.Spec.VirtualMachine.Raw); err != nil {
			return nil, failed(transfer.ReasonNotAPackage, false, "the VirtualMachine of the artifact's template: %v", err)
		}
		t.Status = v1beta1.VirtualMachineTemplateStatus{}
		t.ObjectMeta = metav1.ObjectMeta{Name: t.Name, Annotations: t.Annotations}
	} else {
		if vm, err = virtualmachine.Decode(raw); err != nil {
			return nil, err
		}
		parametrize(t, vm, note)
		t.Name = resource.Name()
	}
	t.APIVersion, t.Kind = v1beta1.GroupVersion.String(), string(oci.VirtualMachineTemplate)
	m.move(vm, choices.Namespace, claims)
	if t.Spec.VirtualMachine, err = rawOf(vm); err != nil {
		return nil, err
	}
	t.Namespace = choices.Namespace
	if choices.Name != "" {
		t.Name = choices.Name
	}
	m.template = t
	return m, nil
}

// restore returns the template of an artifact with the fields that its exporter has dropped.
func restore(raw []byte, note noting) ([]byte, error) {
	written, err := extensions.Read(raw)
	if err != nil {
		return nil, failed(transfer.ReasonNotAPackage, false, "the template of the artifact: %v", err)
	}
	decision := extensions.Decide(nil, written)
	if decision.Loss != "" {
		note(conversion.ActionWarning, "template", "%s", decision.Loss)
	}
	if decision.Restored.Empty() {
		return raw, nil
	}
	object, err := virtualmachine.Decode(raw)
	if err != nil {
		return nil, failed(transfer.ReasonNotAPackage, false, "the template of the artifact: %v", err)
	}
	decision.Restored.Into(at(object, "spec"))
	note(conversion.ActionKept, "template", "%s, which the exporter does not have, from annotation %s", decision.Restored, contract.AnnotationExtensions)
	return json.Marshal(object)
}

// checkChoices rejects choices that apply to descriptors only, for a package with something else.
func checkChoices(choices transfer.Conversion, is string) error {
	var field string
	switch {
	case choices.Instancetype != "":
		field = "spec.instancetype"
	case choices.Preference != nil:
		field = "spec.preference"
	default:
		return nil
	}
	return failed(transfer.ReasonUnsupported, false, "%s: the package has %s, which decides this itself: create an import without the field, and change the template afterwards", field, is)
}

func rawOf(object map[string]any) (*runtime.RawExtension, error) {
	raw, err := json.Marshal(object)
	return &runtime.RawExtension{Raw: raw}, err
}

func at(value any, path ...string) map[string]any {
	object, _ := value.(map[string]any)
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

func list(value any) []any {
	all, _ := value.([]any)
	return all
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// move changes the namespace of the claims in the dataVolumeTemplates, and finds the volumes that are their copies.
func (m *made) move(vm map[string]any, namespace string, claims []oci.Claim) {
	has := map[string]bool{}
	for _, claim := range claims {
		has[claim.Name] = true
	}
	byDataVolume := map[string]string{}
	for _, each := range list(at(vm, "spec")["dataVolumeTemplates"]) {
		pvc := at(each, "spec", "source", "pvc")
		if name := text(pvc["name"]); has[name] {
			if namespace != "" {
				pvc["namespace"] = namespace
			}
			byDataVolume[text(at(each, "metadata")["name"])] = name
		}
	}
	for _, volume := range list(at(vm, "spec", "template", "spec")["volumes"]) {
		claim := byDataVolume[text(at(volume, "dataVolume")["name"])]
		if claim == "" {
			claim = text(at(volume, "persistentVolumeClaim")["claimName"])
		}
		if _, found := m.volumes[claim]; !found && has[claim] {
			m.volumes[claim] = text(at(volume)["name"])
		}
	}
}

// parametrize makes a VirtualMachine that of a template: with a name that is a parameter, copies of its disks, and without what identifies it.
func parametrize(t *v1beta1.VirtualMachineTemplate, vm map[string]any, note noting) {
	name := text(at(vm, "metadata")["name"])
	delete(vm, "status")
	_, dollar := escape(vm)
	const placeholder = "${" + conversion.ParameterName + "}"
	found := identity.Of(vm, func(parts ...string) any { return strings.Join(parts, placeholder) }).Strip(vm)
	spec := at(vm, "spec")
	guest := at(spec, "template", "spec")
	renamed := map[string]string{}
	templates := list(spec["dataVolumeTemplates"])
	for i, each := range templates {
		before := text(at(each, "metadata")["name"])
		renamed[before] = fmt.Sprintf("%s-%d", placeholder, i)
		at(each)["metadata"] = map[string]any{"name": renamed[before]}
		delete(at(each), "status")
	}
	for _, volume := range list(guest["volumes"]) {
		if of := at(volume, "dataVolume"); renamed[text(of["name"])] != "" {
			of["name"] = renamed[text(of["name"])]
		}
		claim := text(at(volume, "persistentVolumeClaim")["claimName"])
		if claim == "" {
			continue
		}
		made := fmt.Sprintf("%s-%d", placeholder, len(templates))
		templates = append(templates, map[string]any{
			"metadata": map[string]any{"name": made},
			"spec":     map[string]any{"source": map[string]any{"pvc": map[string]any{"name": claim}}, "storage": map[string]any{}},
		})
		delete(at(volume), "persistentVolumeClaim")
		at(volume)["dataVolume"] = map[string]any{"name": made}
	}
	if len(templates) > 0 {
		spec["dataVolumeTemplates"] = templates
	}
	t.Spec.Parameters = []v1beta1.Parameter{{
		Name: conversion.ParameterName, Description: "Name of the VirtualMachine", Generate: v1beta1.GeneratorExpression, From: name[:min(len(name), 24)] + "-[a-z0-9]{5}", Required: true,
		Pattern: "[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?",
	}}
	if dollar {
		t.Spec.Parameters = append(t.Spec.Parameters, plain.Parameter(plain.Dollar))
	}
	note(conversion.ActionChanged, "VirtualMachine "+name, "it becomes a template with the parameter %s, which copies its disks", conversion.ParameterName)
	for _, path := range found.Removed {
		note(conversion.ActionDropped, path, "it identifies one VirtualMachine")
	}
	for _, path := range found.Renamed {
		note(conversion.ActionChanged, path, "it has the new name")
	}
	for _, path := range found.Kept {
		note(conversion.ActionWarning, path, "it identifies one VirtualMachine, and all of the template have it: change the template before it is used")
	}
}

// escape writes all texts in objects and lists so that they render to themselves. It reports whether one has changed.
func escape(value any) (any, bool) {
	changed := false
	switch value := value.(type) {
	case string:
		escaped := plain.Text(value, plain.Dollar)
		return escaped, escaped != value
	case []any:
		for i := range value {
			one, did := escape(value[i])
			value[i], changed = one, changed || did
		}
	case map[string]any:
		for key := range value {
			one, did := escape(value[key])
			value[key], changed = one, changed || did
		}
	}
	return value, changed
}
