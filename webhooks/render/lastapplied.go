package render

import (
	"bytes"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/machine"
)

const lastAppliedAnnotation = corev1.LastAppliedConfigAnnotation

// discard takes annotations out that are not the sender's to write. It returns the
// places that it took out.
func discard(p *patch, annotations map[string]any, keys ...string) (removed []pointer) {
	for _, key := range keys {
		if _, found := annotations[key]; found {
			at := pointer{"metadata", "annotations", key}
			p.remove(at)
			removed = append(removed, at)
		}
	}
	return removed
}

// forget takes the annotations of the given parameters out of the object, and
// out of the manifest that `kubectl apply` keeps in an annotation of its own.
// A kept manifest that cannot be read is dropped as a whole: it might hold them.
// It returns the places that it took out.
func forget(p *patch, annotations map[string]any, parameters []string) (removed []pointer) {
	at := pointer{"metadata", "annotations"}
	for _, name := range parameters {
		if _, found := annotations[contract.AnnotationParameterPrefix+name]; found {
			p.remove(at.child(contract.AnnotationParameterPrefix + name))
			removed = append(removed, at.child(contract.AnnotationParameterPrefix+name))
		}
	}
	applied := machine.StringAt(annotations, lastAppliedAnnotation)
	if applied == "" || len(parameters) == 0 {
		return removed
	}
	manifest, err := machine.Decode([]byte(applied))
	if err != nil {
		p.remove(at.child(lastAppliedAnnotation))
		return removed
	}
	kept, _ := machine.Read(manifest)
	changed := false
	for _, name := range parameters {
		key := contract.AnnotationParameterPrefix + name
		if _, found := kept.Annotations[key]; found {
			delete(kept.Annotations, key)
			changed = true
		}
	}
	if !changed {
		return removed
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out) // ends with a line feed, as kubectl's does
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(manifest); err != nil {
		p.remove(at.child(lastAppliedAnnotation))
		return removed
	}
	p.set(at.child(lastAppliedAnnotation), out.String())
	return removed
}
