package render

import (
	"bytes"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/machine"
)

const lastAppliedAnnotation = corev1.LastAppliedConfigAnnotation

// forget takes the annotations of the given parameters out of the object, and
// out of the manifest that `kubectl apply` keeps in an annotation of its own.
// A kept manifest that cannot be read is dropped as a whole: it might hold them.
func forget(p *patch, annotations map[string]any, parameters []string) {
	at := pointer{"metadata", "annotations"}
	for _, name := range parameters {
		if _, found := annotations[contract.AnnotationParameterPrefix+name]; found {
			p.remove(at.child(contract.AnnotationParameterPrefix + name))
		}
	}
	applied := machine.StringAt(annotations, lastAppliedAnnotation)
	if applied == "" || len(parameters) == 0 {
		return
	}
	manifest, err := machine.Decode([]byte(applied))
	if err != nil {
		p.remove(at.child(lastAppliedAnnotation))
		return
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
		return
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out) // ends with a line feed, as kubectl's does
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(manifest); err != nil {
		p.remove(at.child(lastAppliedAnnotation))
		return
	}
	p.set(at.child(lastAppliedAnnotation), out.String())
}
