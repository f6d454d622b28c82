package compliance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/machine"
	"github.com/vmstencil/stencil/template"
	"github.com/vmstencil/stencil/templatecache"
)

// sampleName is what a machine is called whose template leaves the name to its owner.
const sampleName = "policy-check"

// assume returns values for the required parameters that have no default, and the names of
// those for which there is none that makes sense.
func assume(parameters []v1beta1.Parameter, namePattern string) (values map[string]string, missing []string) {
	values = map[string]string{}
	for _, p := range parameters {
		if !p.Required || p.Value != "" || p.Generate != "" {
			continue
		}
		switch {
		case len(p.Enum) > 0:
			values[p.Name] = p.Enum[0]
		case p.Minimum != nil:
			values[p.Name] = strconv.FormatInt(*p.Minimum, 10)
		case p.Maximum != nil:
			values[p.Name] = strconv.FormatInt(*p.Maximum, 10)
		case p.Type == v1beta1.ParameterTypeBool:
			values[p.Name] = "false"
		case (p.Type == "" || p.Type == v1beta1.ParameterTypeString) && p.Pattern == "" && strings.Contains(namePattern, "${"+p.Name+"}"):
			values[p.Name] = sampleName
		default:
			missing = append(missing, p.Name)
		}
	}
	return values, missing
}

// sampleError is why a template has no sample.
type sampleError struct{ reason, message string }

// sampleOf makes the machine that the template's defaults make, as it would reach the
// validating webhooks if nobody else had changed it.
func sampleOf(t *templatecache.Template) (map[string]any, *sampleError) {
	compiled, err := t.Compiled()
	if err != nil {
		return nil, &sampleError{v1beta1.ReasonNotRendered, fmt.Sprintf("the template does not compile: %v", err)}
	}
	values, missing := assume(compiled.Parameters(), compiled.NamePattern())
	if len(missing) > 0 {
		return nil, &sampleError{v1beta1.ReasonParametersRequired, fmt.Sprintf("nobody knows what VirtualMachines it makes: required parameters have neither a default nor a list of values: %s", strings.Join(missing, ", "))}
	}
	object, err := render(compiled, values)
	if err != nil {
		return nil, &sampleError{v1beta1.ReasonNotRendered, fmt.Sprintf("its defaults make no VirtualMachine: %v", err)}
	}
	stamp(object, t, compiled, values)
	return object, nil
}

func render(compiled *template.Compiled, values map[string]string) (map[string]any, error) {
	binding, err := compiled.Bind(values)
	if err != nil {
		return nil, err
	}
	rendered, err := compiled.Render(binding)
	if err != nil {
		return nil, err
	}
	return machine.Decode(bytes.Clone(rendered.JSON()))
}

// stamp writes into the metadata what the render webhook would.
func stamp(object map[string]any, t *templatecache.Template, compiled *template.Compiled, values map[string]string) {
	metadata := mapAt(object, "metadata")
	metadata["namespace"] = t.Namespace
	if machine.StringAt(metadata, "name") == "" {
		metadata["name"] = machine.StringAt(metadata, "generateName") + sampleName
	}
	record := machine.Record{Namespace: t.Namespace, Name: t.Name, UID: t.UID, Generation: t.Generation, Digest: compiled.Digest()}
	annotations := mapAt(metadata, "annotations")
	annotations[contract.AnnotationTemplateRef] = t.Namespace + "/" + t.Name
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if compiled.Sensitive(name) {
			record.Sensitive = append(record.Sensitive, name)
		} else {
			annotations[contract.AnnotationParameterPrefix+name] = values[name]
		}
	}
	annotations[contract.AnnotationRendered] = record.String()
	labels := mapAt(metadata, "labels")
	for key, value := range record.Labels() {
		labels[key] = value
	}
}

// mapAt returns the map under a key, which it makes if there is none.
func mapAt(in map[string]any, key string) map[string]any {
	m, ok := in[key].(map[string]any)
	if !ok {
		m = map[string]any{}
		in[key] = m
	}
	return m
}

// fingerprint of what is judged of labels and annotations.
func fingerprint(maps ...map[string]string) string {
	raw, err := json.Marshal(maps)
	if err != nil {
		panic(fmt.Sprintf("encoding strings as JSON: %v", err))
	}
	return string(raw)
}
