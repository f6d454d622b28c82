package conversion

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// volumes makes dataVolumeTemplates of the disks that were copied, and reports references of the other volumes.
func (c *conversion) volumes(spec, vm map[string]any) {
	class, hasClass := c.storageClass()
	var templates []any
	list, _ := vm["volumes"].([]any)
	kept := list[:0]
	dumps := map[any]bool{}
	for i, item := range list {
		volume, _ := item.(map[string]any)
		name, _ := volume["name"].(string)
		path := fmt.Sprintf("spec.template.spec.volumes[%d]", i)
		disk, copied := c.disks[name]
		switch {
		case volume["memoryDump"] != nil:
			// A memory dump holds the memory of one VM.
			dumps[volume["name"]] = true
			continue
		case copied && (volume["dataVolume"] != nil || volume["persistentVolumeClaim"] != nil):
			if hasClass && disk.Storage.Class == class.value {
				templates = append(templates, c.dataVolumeTemplate(disk, class.reference))
			} else {
				templates = append(templates, c.dataVolumeTemplate(disk, literal(escapeText(disk.Storage.Class))))
			}
			c.renewed(volume, name)
		default:
			c.others(volume, name, path)
		}
		kept = append(kept, item)
	}
	if list != nil {
		vm["volumes"] = kept
	}
	// KubeVirt adds no disk for a dump, but a user may have added one.
	domain, _ := vm["domain"].(map[string]any)
	devices, _ := domain["devices"].(map[string]any)
	if disks, found := devices["disks"].([]any); found && len(dumps) > 0 {
		left := disks[:0]
		for _, item := range disks {
			if disk, _ := item.(map[string]any); !dumps[disk["name"]] {
				left = append(left, item)
			}
		}
		devices["disks"] = left
	}
	delete(spec, "dataVolumeTemplates")
	if len(templates) > 0 {
		spec["dataVolumeTemplates"] = templates
	}
}

// renewed makes a volume refer to the disk that each VirtualMachine gets.
func (c *conversion) renewed(volume map[string]any, name string) {
	before, found := volume["dataVolume"].(map[string]any)
	if !found {
		before, _ = volume["persistentVolumeClaim"].(map[string]any)
	}
	after := map[string]any{"name": diskName(name)}
	if hotpluggable, found := before["hotpluggable"]; found {
		after["hotpluggable"] = hotpluggable
	}
	delete(volume, "persistentVolumeClaim")
	volume["dataVolume"] = after
}

func diskName(volume string) literal { return literal(escapeText(volume) + "-${NAME}") }

// dataVolumeTemplate returns a template that copies the copy of a disk.
func (c *conversion) dataVolumeTemplate(disk Disk, class literal) map[string]any {
	storage := map[string]any{}
	if disk.Storage.Size != "" {
		storage["resources"] = map[string]any{"requests": map[string]any{"storage": disk.Storage.Size}}
	}
	if class != "" {
		storage["storageClassName"] = class
	}
	if disk.Storage.VolumeMode != "" {
		storage["volumeMode"] = disk.Storage.VolumeMode
	}
	if len(disk.Storage.AccessModes) > 0 {
		modes := make([]any, len(disk.Storage.AccessModes))
		for i, mode := range disk.Storage.AccessModes {
			modes[i] = mode
		}
		storage["accessModes"] = modes
	}
	return map[string]any{
		"metadata": map[string]any{"name": diskName(disk.Volume)},
		"spec": map[string]any{
			"source":  map[string]any{"pvc": map[string]any{"namespace": c.options.Namespace, "name": disk.DataVolume}},
			"storage": storage,
		},
	}
}

// storageParameter is a reference to the parameter for the storage class, and the storage class in its value.
type storageParameter struct {
	value     string
	reference literal
}

// storageClass makes the class of the first copied disk a parameter. Disks of another class retain theirs.
func (c *conversion) storageClass() (storageParameter, bool) {
	if !c.parameterized(v1beta1.CaptureStorageClass) {
		return storageParameter{}, false
	}
	for _, disk := range c.options.Disks {
		if disk.Storage.Class == "" {
			continue
		}
		return storageParameter{disk.Storage.Class, c.declare(v1beta1.Parameter{
			Name: string(v1beta1.CaptureStorageClass), Description: "Storage class of the disks",
			Value: disk.Storage.Class, Required: true, Pattern: patternName,
		})}, true
	}
	return storageParameter{}, false
}

// others reports references of a volume to objects that are not part of the template.
func (c *conversion) others(volume map[string]any, name, path string) {
	at := func(source, key string) string {
		object, _ := volume[source].(map[string]any)
		text, _ := object[key].(string)
		return text
	}
	for _, disk := range []struct{ source, key, kind string }{
		{"dataVolume", "name", "DataVolume"}, {"persistentVolumeClaim", "claimName", "PersistentVolumeClaim"},
	} {
		if volume[disk.source] != nil {
			c.unreachable("%s: the disk %s is not copied, because no snapshot was taken of it; the template refers to %s %s of the source",
				path, name, disk.kind, at(disk.source, disk.key))
		}
	}
	if ephemeral, found := volume["ephemeral"].(map[string]any); found {
		claim, _ := ephemeral["persistentVolumeClaim"].(map[string]any)
		referred, _ := claim["claimName"].(string)
		c.reference(path+".ephemeral", "PersistentVolumeClaim", referred)
	}
	if volume["hostDisk"] != nil {
		c.left("%s.hostDisk: the file stays on its node", path)
	}
	c.reference(path+".secret", "Secret", at("secret", "secretName"))
	c.reference(path+".configMap", "ConfigMap", at("configMap", "name"))
	c.reference(path+".serviceAccount", "ServiceAccount", at("serviceAccount", "serviceAccountName"))
	for _, source := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
		c.secretReferences(volume, source, path, "secretRef", "networkDataSecretRef")
	}
	if sysprep, found := volume["sysprep"].(map[string]any); found {
		for _, answers := range []struct{ key, kind string }{{"secret", "Secret"}, {"configMap", "ConfigMap"}} {
			object, _ := sysprep[answers.key].(map[string]any)
			referred, _ := object["name"].(string)
			c.reference(path+".sysprep."+answers.key, answers.kind, referred)
		}
	}
	if image, found := volume["containerDisk"].(map[string]any); found {
		referred, _ := image["imagePullSecret"].(string)
		c.reference(path+".containerDisk.imagePullSecret", "Secret", referred)
	}
}

func (c *conversion) secretReferences(volume map[string]any, source, path string, keys ...string) {
	from, _ := volume[source].(map[string]any)
	for _, key := range keys {
		object, _ := from[key].(map[string]any)
		name, _ := object["name"].(string)
		c.reference(path+"."+source+"."+key, "Secret", name)
	}
}

// bootImage reports the Secret with which the image of a kernel is pulled.
func (c *conversion) bootImage(vm map[string]any) {
	domain, _ := vm["domain"].(map[string]any)
	firmware, _ := domain["firmware"].(map[string]any)
	kernel, _ := firmware["kernelBoot"].(map[string]any)
	image, _ := kernel["container"].(map[string]any)
	name, _ := image["imagePullSecret"].(string)
	c.reference("spec.template.spec.domain.firmware.kernelBoot.container.imagePullSecret", "Secret", name)
}

// claims reports the devices that the VM claims.
func (c *conversion) claims(vm map[string]any) {
	for i, claim := range objects(vm["resourceClaims"]) {
		for _, from := range []struct{ key, kind string }{{"resourceClaimName", "ResourceClaim"}, {"resourceClaimTemplateName", "ResourceClaimTemplate"}} {
			name, _ := claim[from.key].(string)
			c.reference(fmt.Sprintf("spec.template.spec.resourceClaims[%d].%s", i, from.key), from.kind, name)
		}
	}
}

// credentials reports the Secrets that accessCredentials name.
func (c *conversion) credentials(vm map[string]any) {
	for i, credential := range objects(vm["accessCredentials"]) {
		for _, key := range []string{"sshPublicKey", "userPassword"} {
			kind, _ := credential[key].(map[string]any)
			source, _ := kind["source"].(map[string]any)
			secret, _ := source["secret"].(map[string]any)
			name, _ := secret["secretName"].(string)
			c.reference(fmt.Sprintf("spec.template.spec.accessCredentials[%d].%s", i, key), "Secret", name)
		}
	}
}

// namespaced reports whether the name of a network attachment contains its namespace.
func namespaced(name string) bool { return strings.Contains(name, "/") }
