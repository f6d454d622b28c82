package template

import (
	"encoding/json"
	"slices"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
)

// lastApplied is the annotation in which kubectl apply stores the applied manifest.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// readContract reads the given values of parameters from the annotations of a VirtualMachine. A value in the name counts as
// given too: users choose the name of a VirtualMachine.
func (m *matcher) readContract(vm map[string]any) {
	metadata, _ := vm["metadata"].(map[string]any)
	m.annotations, _ = metadata["annotations"].(map[string]any)
	m.vmName, _ = metadata["name"].(string)
	for _, s := range m.compiled.name {
		if s.parameter != noParameter {
			m.given[s.parameter] = true
		}
	}
	for name, value := range m.preferred {
		if i := m.compiled.find(name); i >= 0 {
			m.values[i], m.bound[i] = value, true
		}
	}
	declared := m.compiled.declared()
	if own := len(declared); own < len(m.values) && m.vmName != "" {
		m.values[own], m.bound[own] = shortened(m.vmName), true
	}
	if len(m.annotations) == 0 {
		return
	}
	key := make([]byte, 0, 128)
	for i := range declared {
		p := &declared[i]
		key = append(append(key[:0], contract.AnnotationParameterPrefix...), p.Name...)
		value, given := m.annotations[string(key)].(string)
		if given && (value != "" || p.generator == nil) {
			m.values[i], m.bound[i], m.given[i] = value, true, true
		}
	}
}

// withheld reports whether a value was given that the VirtualMachine does not show, because its parameter is sensitive.
func (m *matcher) withheld(p *parameter) bool {
	if !p.Sensitive {
		return false
	}
	text, _ := m.annotations[contract.AnnotationRendered].(string)
	m.steps += len(text)
	var rendered struct {
		Sensitive []string `json:"sensitive"`
	}
	if err := json.Unmarshal([]byte(text), &rendered); err != nil {
		return false
	}
	return slices.Contains(rendered.Sensitive, p.Name)
}

// released returns a VirtualMachine without the annotation that holds it back until its objects exist: a parameter that is all
// annotations of spec.template would show it.
func released(vm map[string]any) map[string]any {
	path := []string{"spec", "template", "metadata", "annotations"}
	annotations := vm
	for _, step := range path {
		annotations, _ = annotations[step].(map[string]any)
	}
	if _, held := annotations[contract.AnnotationHold]; !held {
		return vm
	}
	parent := path[:len(path)-1]
	if len(annotations) == 1 {
		result, metadata := copiedAlong(vm, parent)
		delete(metadata, path[len(parent)])
		return result
	}
	result, left := copiedAlong(vm, path)
	delete(left, contract.AnnotationHold)
	return result
}

// IsContract reports whether an annotation belongs to the contract between a VirtualMachine and its template. Templates must not contain these, and
// they are not compared.
func IsContract(key string) bool {
	return key == contract.AnnotationTemplateRef || key == contract.AnnotationRendered || key == contract.AnnotationOverrides ||
		key == contract.AnnotationCreatedBy || key == contract.AnnotationRenderedFor || key == contract.AnnotationBoundValues || key == contract.AnnotationProcessed ||
		key == contract.AnnotationDefaultsApplied || key == contract.AnnotationDefaultsFailed ||
		key == contract.AnnotationPendingObjects || key == lastApplied || strings.HasPrefix(key, contract.AnnotationParameterPrefix)
}

// ownedLabel reports whether a label of a VirtualMachine never comes from the template.
func ownedLabel(key string) bool {
	return key == contract.LabelTemplate || key == contract.LabelTemplateNamespace || key == contract.LabelTemplateRevision
}
