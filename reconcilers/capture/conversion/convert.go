package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/identity"
	"github.com/vmstencil/stencil/template/plain"
)

// Options specify how a VirtualMachine becomes a template.
type Options struct {
	// Spec is the spec of the request. Only instancetype, runStrategy, secrets, secretize, objects and parameterize are read. If the instance
	// type is to be expanded, that must have been done.
	Spec v1beta1.VirtualMachineTemplateRequestSpec
	// Namespace is the namespace of the template, which contains the copies of the disks.
	Namespace string
	// Disks are the copies, in any order.
	Disks []Disk
}

// Disk is the copy of one volume.
type Disk struct {
	// Volume is the name of the volume in the VirtualMachine.
	Volume string
	// DataVolume is the name of the DataVolume, and of its PersistentVolumeClaim, that holds the copy.
	DataVolume string
	// Storage is spec.storage of DataVolumes that are made from the copy.
	Storage Storage
}

// Storage specifies the storage of a disk. The cluster chooses the values of empty fields.
type Storage struct {
	// Size is a quantity.
	Size        string
	Class       string
	VolumeMode  string
	AccessModes []string
}

// Result is a template, and findings about it.
type Result struct {
	Spec v1beta1.VirtualMachineTemplateSpec
	// Left lists what was not captured, in the order of the VirtualMachine.
	Left []Left
	// Secrets are the passwords and private keys that were found.
	Secrets []Secret
	// Unsearched are the fields that may contain secrets, but have a format that cannot be searched.
	Unsearched []string
	// Identity lists what identifies the VirtualMachine.
	Identity identity.Report
}

// Left is something that was not captured.
type Left struct {
	// What describes it, with its path.
	What string
	// Unreachable is true if the template refers to something that its VirtualMachines cannot use.
	Unreachable bool
}

// Secret is the place of a password or a private key.
type Secret struct {
	// Path is the field of the VirtualMachine, and in parentheses the place within the value of the field.
	Path string
	// Parameter is the parameter that replaces the secret; empty if the secret is still there.
	Parameter string
}

// conversion is the state of one call of Convert.
type conversion struct {
	options    Options
	source     string // the name of the VirtualMachine
	namespace  string // the namespace of the VirtualMachine
	disks      map[string]Disk
	identity   *identity.Identity
	parameters []v1beta1.Parameter
	// message holds lines of the template's message.
	message []string
	result  Result
}

// renamed writes a text with the name of the VirtualMachine between its parts.
func renamed(parts ...string) any {
	for i := range parts {
		parts[i] = escapeText(parts[i])
	}
	return literal(strings.Join(parts, "${NAME}"))
}

// literal is text in the template's language; any other string is text of the VirtualMachine.
type literal string

// Convert makes a template from a VirtualMachine, which is decoded JSON and is not modified. It fails if vm has no spec.template.spec, and if an
// object of the request is neither a Service nor a Secret.
func Convert(vm map[string]any, options Options) (*Result, error) {
	vm = runtime.DeepCopyJSON(vm)
	metadata, _ := vm["metadata"].(map[string]any)
	spec, _ := vm["spec"].(map[string]any)
	instance, _ := spec["template"].(map[string]any)
	guest, _ := instance["spec"].(map[string]any)
	if guest == nil {
		return nil, fmt.Errorf("converting the VirtualMachine: it has no spec.template.spec")
	}
	c := &conversion{options: options, disks: map[string]Disk{}}
	c.source, _ = metadata["name"].(string)
	c.namespace, _ = metadata["namespace"].(string)
	for _, disk := range options.Disks {
		c.disks[disk.Volume] = disk
	}
	c.parameters = []v1beta1.Parameter{{
		Name: string(v1beta1.CaptureName), Description: "Name of the VirtualMachine",
		Generate: v1beta1.GeneratorExpression, From: "vm-[a-z0-9]{5}", Required: true,
	}}
	c.identity = identity.Of(vm, renamed)
	objects, err := c.objects(guest)
	if err != nil {
		return nil, err
	}
	if !options.Spec.KeepLayout {
		unpin(metadata, instance)
	}
	c.result.Identity = c.identity.Strip(vm)
	c.vmSpec(spec)
	c.state(guest)
	c.volumes(spec, guest)
	c.bootImage(guest)
	c.claims(guest)
	c.credentials(guest)
	c.cloudInit(guest)
	c.networks(guest)
	made := map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
		"metadata": vm["metadata"], "spec": spec,
	}
	templateAnnotations, _ := instance["metadata"].(map[string]any)
	annotations, _ := templateAnnotations["annotations"].(map[string]any)
	c.ignition(annotations, "spec.template.metadata.annotations")
	encoded, err := json.Marshal(escape(made))
	if err != nil {
		return nil, fmt.Errorf("encoding the VirtualMachine of the template: %w", err)
	}
	c.result.Spec = v1beta1.VirtualMachineTemplateSpec{
		VirtualMachine: &runtime.RawExtension{Raw: encoded}, Parameters: c.parameters,
		Message: strings.Join(c.message, "\n"), Secretize: c.options.Spec.Secretize, Objects: objects,
	}
	if usesDollar(&c.result.Spec) {
		c.result.Spec.Parameters = append(c.result.Spec.Parameters, plain.Parameter(plain.Dollar))
	}
	return &c.result, nil
}

// usesDollar reports whether a template refers to the parameter that holds a dollar sign.
func usesDollar(spec *v1beta1.VirtualMachineTemplateSpec) bool {
	const reference = "${" + plain.Dollar + "}"
	uses := strings.Contains(spec.Message, reference) || bytes.Contains(spec.VirtualMachine.Raw, []byte(reference))
	for i := range spec.Objects {
		uses = uses || bytes.Contains(spec.Objects[i].Raw, []byte(reference))
	}
	return uses
}

// parameterized reports whether a value is requested to become a parameter.
func (c *conversion) parameterized(parameter v1beta1.CaptureParameter) bool {
	for _, wanted := range c.options.Spec.Parameterize {
		if wanted == parameter {
			return true
		}
	}
	return false
}

// declare adds a parameter and returns a reference to it. If the name is taken, a number is appended.
func (c *conversion) declare(p v1beta1.Parameter) literal {
	name := p.Name
	for n := 2; c.declared(p.Name); n++ {
		p.Name = fmt.Sprintf("%s_%d", name, n)
	}
	c.parameters = append(c.parameters, p)
	return literal("${" + p.Name + "}")
}

func (c *conversion) declared(name string) bool {
	for _, p := range c.parameters {
		if p.Name == name {
			return true
		}
	}
	return false
}

func (c *conversion) left(what string, arguments ...any) {
	c.result.Left = append(c.result.Left, Left{What: fmt.Sprintf(what, arguments...)})
}

func (c *conversion) unreachable(what string, arguments ...any) {
	c.result.Left = append(c.result.Left, Left{What: fmt.Sprintf(what, arguments...), Unreachable: true})
}

// reference reports that the template refers to an object in the source's namespace by name.
func (c *conversion) reference(path, kind, name string) {
	switch {
	case name == "":
	case c.namespace == c.options.Namespace:
		c.left("%s: %s %s stays in namespace %s, and VirtualMachines of other namespaces need one of that name", path, kind, name, c.namespace)
	default:
		c.unreachable("%s: %s %s stays in namespace %s", path, kind, name, c.namespace)
	}
}
