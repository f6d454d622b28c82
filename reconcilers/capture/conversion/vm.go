package conversion

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// vmSpec changes the fields beside spec.template.
func (c *conversion) vmSpec(spec map[string]any) {
	if c.options.Spec.RunStrategy == v1beta1.CaptureRunStrategyHalted {
		delete(spec, "running")
		spec["runStrategy"] = "Halted"
	}
	// A revision is a copy that KubeVirt created for one VirtualMachine, and that is deleted with it.
	for _, key := range []string{"instancetype", "preference"} {
		if matcher, found := spec[key].(map[string]any); found {
			delete(matcher, "revisionName")
		}
	}
	c.matcher(spec, "instancetype", v1beta1.CaptureInstancetypeName, "Instance type of the VirtualMachine")
	c.matcher(spec, "preference", v1beta1.CapturePreferenceName, "Preference of the VirtualMachine")
}

// matcher makes the name of an instance type or a preference a parameter.
func (c *conversion) matcher(spec map[string]any, key string, parameter v1beta1.CaptureParameter, description string) {
	matcher, _ := spec[key].(map[string]any)
	name, _ := matcher["name"].(string)
	if name == "" {
		return
	}
	// KubeVirt accepts kinds in any case, in singular and plural.
	written, _ := matcher["kind"].(string)
	for _, kind := range []string{"VirtualMachineInstancetype", "VirtualMachinePreference"} {
		if strings.EqualFold(strings.TrimSuffix(strings.ToLower(written), "s"), kind) {
			c.reference("spec."+key, kind, name)
		}
	}
	if c.parameterized(parameter) {
		matcher["name"] = c.declare(v1beta1.Parameter{
			Name: string(parameter), Description: description, Value: name, Required: true, Pattern: patternName,
		})
	}
}

// patternName matches names of objects.
const patternName = `[a-z0-9]([-.a-z0-9]*[a-z0-9])?`

// state reports the state that KubeVirt stores beside the disks.
func (c *conversion) state(vm map[string]any) {
	domain, _ := vm["domain"].(map[string]any)
	firmware, _ := domain["firmware"].(map[string]any)
	bootloader, _ := firmware["bootloader"].(map[string]any)
	efi, _ := bootloader["efi"].(map[string]any)
	if efi["persistent"] == true {
		c.left("spec.template.spec.domain.firmware.bootloader.efi: the stored EFI variables stay behind; VirtualMachines of the template begin with new ones")
	}
	devices, _ := domain["devices"].(map[string]any)
	if tpm, _ := devices["tpm"].(map[string]any); tpm["persistent"] == true {
		c.left("spec.template.spec.domain.devices.tpm: the state of the TPM stays behind, and what is sealed by it cannot be opened; VirtualMachines of the template begin with a new one")
	}
}

// networks makes the first network attachment a parameter, and reports attachments that resolve to the namespace of the VM.
func (c *conversion) networks(vm map[string]any) {
	given := false
	for i, network := range objects(vm["networks"]) {
		multus, _ := network["multus"].(map[string]any)
		name, _ := multus["networkName"].(string)
		if name == "" {
			continue
		}
		if !namespaced(name) {
			c.reference(fmt.Sprintf("spec.template.spec.networks[%d].multus.networkName", i), "NetworkAttachmentDefinition", name)
		}
		if c.parameterized(v1beta1.CaptureNetwork) && !given {
			given = true
			multus["networkName"] = c.declare(v1beta1.Parameter{
				Name: string(v1beta1.CaptureNetwork), Description: "NetworkAttachmentDefinition of the network " + fmt.Sprint(network["name"]),
				Value: name, Required: true, Pattern: `(` + patternName + `/)?` + patternName,
			})
		}
	}
}

// objects returns the objects of a list.
func objects(list any) []map[string]any {
	items, _ := list.([]any)
	found := make([]map[string]any, 0, len(items))
	for _, item := range items {
		object, _ := item.(map[string]any)
		found = append(found, object)
	}
	return found
}
