package conversion

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// labelPod is the label by which KubeVirt marks the pods of one VirtualMachine.
const labelPod = "vm.kubevirt.io/name"

// captured are the fields that are captured of each kind of object, besides metadata. No other field is: a template has fields of its own in its
// objects, which the user might not be allowed to set.
var captured = map[string][]string{
	"Service": {"spec"},
	"Secret":  {"data", "immutable", "stringData", "type"},
}

// assigned are the fields of a Service's spec that the cluster assigns, or that only one Service can have.
var assigned = []string{"clusterIPs", "healthCheckNodePort", "ipFamilies", "loadBalancerIP"}

// object identifies an object of the request.
type object struct{ kind, name string }

// objects makes objects of the template of those of the request, and lets the VM refer to them by their new names.
func (c *conversion) objects(guest map[string]any) (made []runtime.RawExtension, err error) {
	renamed := map[object]literal{}
	for i := range c.options.Spec.Objects {
		read, err := machine.Decode(c.options.Spec.Objects[i].Raw)
		if err != nil {
			return nil, fmt.Errorf("reading spec.objects[%d] of the request: %w", i, err)
		}
		id := object{machine.StringAt(read, "kind"), machine.StringAt(machine.MapAt(read, "metadata"), "name")}
		fields, known := captured[id.kind]
		if !known || read["apiVersion"] != "v1" || id.name == "" {
			return nil, fmt.Errorf("spec.objects[%d] of the request is neither a Service nor a Secret with a name", i)
		}
		renamed[id] = c.rename(id, renamed)
		metadata := c.identity.Metadata("metadata", machine.MapAt(read, "metadata"))
		metadata["name"] = renamed[id]
		kept := map[string]any{"apiVersion": "v1", "kind": id.kind, "metadata": metadata}
		for _, field := range fields {
			if value, found := read[field]; found {
				kept[field] = value
			}
		}
		c.service(machine.MapAt(kept, "spec"))
		if id.kind == "Secret" {
			c.result.Secrets = append(c.result.Secrets, Secret{Path: fmt.Sprintf("spec.objects[%d] (Secret %s)", i, id.name)})
		}
		encoded, err := json.Marshal(escape(kept))
		if err != nil {
			return nil, fmt.Errorf("encoding spec.objects[%d] of the template: %w", i, err)
		}
		made = append(made, runtime.RawExtension{Raw: encoded})
	}
	machine.NamedObjects(guest, func(kind string, in map[string]any, key string) {
		if name, found := renamed[object{kind, machine.StringAt(in, key)}]; found {
			in[key] = name
		}
	})
	return made, nil
}

// rename returns the name of an object in the template: ${NAME} in place of the VM's name if it begins with that, and otherwise before its own.
func (c *conversion) rename(id object, renamed map[object]literal) literal {
	rest, own := strings.CutPrefix(id.name, c.source)
	if own && (rest == "" || rest[0] == '-') {
		name := literal("${NAME}" + escapeText(rest))
		for other, taken := range renamed {
			own = own && (other.kind != id.kind || taken != name)
		}
		if own {
			return name
		}
	}
	return literal("${NAME}-" + escapeText(id.name))
}

// service reduces the spec of a Service, and lets it select one VM.
func (c *conversion) service(spec map[string]any) {
	for _, field := range assigned {
		delete(spec, field)
	}
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
	}
	for _, port := range machine.MapsAt(spec, "ports") {
		delete(port, "nodePort")
	}
	if selector := machine.MapAt(spec, "selector"); len(selector) > 0 {
		// What becomes of the labels of the VM becomes of them here, too.
		kept := machine.MapAt(c.identity.Metadata("", map[string]any{"labels": selector}), "labels")
		if kept == nil {
			kept = map[string]any{}
		}
		// VMs of the template have the other labels of the captured VM too.
		kept[labelPod] = literal("${NAME}")
		spec["selector"] = kept
	}
}
