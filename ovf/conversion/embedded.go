package conversion

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	sigsjson "sigs.k8s.io/json"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/ovf"
)

// Namespace is the XML namespace of the section that refers to the template in a package.
const Namespace = "https://template.kubevirt.io/ovf/1"

// MaxTemplateBytes is the largest size of the file with a template.
const MaxTemplateBytes = 1 << 20

// EmbeddedFile returns the file of the package that holds the template from which it was exported, and nil if there is none. Its content, not
// more than [MaxTemplateBytes], is Options.Template.
func EmbeddedFile(e *ovf.Envelope) *ovf.File {
	if section := embeddedSection(e); section != nil {
		if t := section.Child("Template"); t != nil {
			return e.File(t.Attribute("fileRef"))
		}
	}
	return nil
}

func embeddedSection(e *ovf.Envelope) *ovf.Element {
	for _, extension := range e.Extensions {
		if extension.Space == Namespace && extension.Local == "TemplateSection" {
			return extension
		}
	}
	return nil
}

// restore returns the template that the package carries, and the disks that it expects.
func restore(e *ovf.Envelope, options *Options) (*SystemPlan, error) {
	if chosen := options.sizing(); chosen != "" {
		return nil, fmt.Errorf("converting the OVF: the package carries its template, so that no %s can be chosen", chosen)
	}
	section := embeddedSection(e)
	if section == nil || EmbeddedFile(e) == nil || len(e.Systems) != 1 {
		return nil, fmt.Errorf("converting the OVF: the package carries no template, but one is given")
	}
	if len(options.Template) > MaxTemplateBytes {
		return nil, fmt.Errorf("converting the OVF: the template of the package is larger than %d KiB", MaxTemplateBytes>>10)
	}
	t := &v1beta1.VirtualMachineTemplate{}
	strict, err := sigsjson.UnmarshalStrict(options.Template, t)
	if err != nil {
		return nil, fmt.Errorf("converting the OVF: decoding the template of the package: %w", err)
	}
	if len(strict) > 0 {
		return nil, fmt.Errorf("converting the OVF: decoding the template of the package: %w", strict[0])
	}
	if t.Kind != "VirtualMachineTemplate" || t.APIVersion != v1beta1.GroupVersion.String() || t.Spec.VirtualMachine == nil {
		return nil, fmt.Errorf("converting the OVF: the template of the package is a %q of %q; want a VirtualMachineTemplate of %s", t.Kind, t.APIVersion, v1beta1.GroupVersion)
	}
	clean(t)
	plan := &SystemPlan{System: e.Systems[0].ID, Restored: true, Disks: []Disk{}, Notes: []Note{}, Template: t}
	claims := map[string]string{}
	for _, c := range section.Children {
		if c.Local != "Disk" {
			continue
		}
		file := e.File(c.Attribute("fileRef"))
		if file == nil || c.Attribute("claim") == "" {
			return nil, fmt.Errorf("converting the OVF: the section of the template refers to the file %q, which the package does not have, or names no claim", c.Attribute("fileRef"))
		}
		if err := checkName("claim", c.Attribute("claim")); err != nil {
			return nil, err
		}
		d := Disk{Volume: c.Attribute("volume"), Claim: c.Attribute("claim"), File: file.Href, Capacity: -1, CDROM: c.Attribute("cdrom") == "true"}
		if d.CDROM {
			d.Format, d.Capacity = ovf.FormatISO, file.Size
		}
		for _, disk := range e.Disks {
			if disk.FileRef == file.ID {
				d.Format, d.Capacity = disk.Format, disk.Capacity
			}
		}
		claims[d.Claim] = c.Attribute("namespace")
		plan.Disks = append(plan.Disks, d)
		plan.Notes = append(plan.Notes, Note{ActionKept, "file " + d.File, "the PersistentVolumeClaim " + d.Claim + " of the template"})
	}
	if options.Name != "" {
		t.Name = options.Name
	}
	if err := checkName("template name", t.Name); err != nil {
		return nil, err
	}
	if options.Namespace != "" {
		if err := move(t, options.Namespace, claims); err != nil {
			return nil, err
		}
	}
	plan.Notes = append(plan.Notes, Note{ActionKept, "template " + t.Name, "it is the one from which the package was exported; the descriptor is ignored"})
	return plan, nil
}

// clean removes what belongs to one stored object, and is not part of a template elsewhere.
func clean(t *v1beta1.VirtualMachineTemplate) {
	kept := t.ObjectMeta
	t.ObjectMeta = v1beta1.VirtualMachineTemplate{}.ObjectMeta
	t.Name, t.Namespace, t.Labels = kept.Name, kept.Namespace, kept.Labels
	for key, value := range kept.Annotations {
		if key == "kubectl.kubernetes.io/last-applied-configuration" {
			continue
		}
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		t.Annotations[key] = value
	}
	t.Status = v1beta1.VirtualMachineTemplateStatus{}
}

// move changes the namespace of the template, and in its dataVolumeTemplates that of the disks of the package.
func move(t *v1beta1.VirtualMachineTemplate, namespace string, claims map[string]string) error {
	t.Namespace = namespace
	vm, err := decode(t.Spec.VirtualMachine.Raw)
	if err != nil {
		return fmt.Errorf("converting the OVF: decoding the VirtualMachine of the template: %w", err)
	}
	changed := false
	for _, claim := range clones(vm) {
		name, _ := claim["name"].(string)
		if before, found := claims[name]; found && claim["namespace"] == before && before != namespace {
			claim["namespace"], changed = namespace, true
		}
	}
	if !changed {
		return nil
	}
	raw, err := json.Marshal(vm)
	if err != nil {
		return fmt.Errorf("converting the OVF: encoding the VirtualMachine of the template: %w", err)
	}
	t.Spec.VirtualMachine = &runtime.RawExtension{Raw: raw}
	return nil
}

// decode decodes an object and retains all digits of numbers.
func decode(raw []byte) (map[string]any, error) {
	var object map[string]any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	return object, d.Decode(&object)
}

// clones returns the spec.source.pvc of each of a VirtualMachine's dataVolumeTemplates that have one, by the name of the DataVolume.
func clones(vm map[string]any) map[string]map[string]any {
	found := map[string]map[string]any{}
	spec, _ := vm["spec"].(map[string]any)
	for _, each := range list(spec["dataVolumeTemplates"]) {
		metadata, _ := each["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		of, _ := each["spec"].(map[string]any)
		source, _ := of["source"].(map[string]any)
		if pvc, ok := source["pvc"].(map[string]any); ok {
			found[name] = pvc
		}
	}
	return found
}

func list(value any) []map[string]any {
	var objects []map[string]any
	items, _ := value.([]any)
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			objects = append(objects, object)
		}
	}
	return objects
}
