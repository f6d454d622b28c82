package extensions

import (
	"fmt"

	contract "github.com/vmstencil/stencil/api/template"
)

// maxAnnotations is the maximum size of an object's annotations in the API server, less what other webhooks add.
const maxAnnotations = 256<<10 - 8<<10

// Decision is what is done with a write.
type Decision struct {
	// Restored are the extensions that are added to the specification.
	Restored Extensions
	// Annotation is the value of AnnotationExtensions. If it is empty, the annotation is removed.
	Annotation string
	// RemoveDrop removes AnnotationDropExtensions.
	RemoveDrop bool
	// Loss is why the template loses extensions. It is empty if it does not.
	Loss     string
	Warnings []string
}

const howToDrop = "; to drop them, add annotation " + contract.AnnotationDropExtensions + `: "true"`

// Decide decides on a write. before is nil when the template is created.
//
// The extensions of a write always win over the annotation. If it has none, and does not drop them, those of the stored template are
// restored while its annotation stands, and those of the annotation if the template is imported.
func Decide(before, after *Object) Decision {
	annotation, annotated := after.Metadata.Annotations[contract.AnnotationExtensions]
	drops := after.Metadata.Annotations[contract.AnnotationDropExtensions] == "true"
	written := Extract(after.Spec)
	var d Decision
	var stored Extensions
	if before != nil {
		stored = Extract(before.Spec)
	}
	switch {
	case !written.Empty():
		if drops {
			d.RemoveDrop = true
			d.warn("annotation %s was removed: it has an effect in the request that removes the fields: %s", contract.AnnotationDropExtensions, written)
		}
	case drops:
	case !annotated:
		if lost := stored.Fitting(after.Spec); !lost.Empty() {
			d.Loss = fmt.Sprintf("fields that the published API lacks are removed, and so is annotation %s, which could restore them: %s%s",
				contract.AnnotationExtensions, lost, howToDrop)
		}
	case !stored.Empty() && before.Metadata.Annotations[contract.AnnotationExtensions] == annotation:
		d.Restored = stored.Fitting(after.Spec)
	default:
		kept, err := Decode(annotation)
		if err != nil {
			d.Annotation = annotation
			d.Loss = fmt.Sprintf("fields that the published API lacks cannot be restored from annotation %s, because %v: write the fields, or remove the annotation",
				contract.AnnotationExtensions, err)
			return d
		}
		d.Restored = kept.Fitting(after.Spec)
	}
	if !d.Restored.Empty() {
		written = d.Restored
		d.warn("fields that the published API lacks were restored: %s%s", d.Restored, howToDrop)
	}
	if !written.Empty() {
		d.annotate(written, after.Metadata.Annotations)
	}
	return d
}

func (d *Decision) warn(format string, arguments ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, arguments...))
}

// annotate sets the annotation. One that holds the extensions already remains, however it is written.
func (d *Decision) annotate(e Extensions, annotations map[string]string) {
	annotation, err := Encode(e)
	if err == nil {
		current := annotations[contract.AnnotationExtensions]
		if held, err := Decode(current); err == nil {
			if again, err := Encode(held); err == nil && again == annotation {
				annotation = current
			}
		}
		size := len(contract.AnnotationExtensions) + len(annotation)
		for key, value := range annotations {
			if key != contract.AnnotationExtensions {
				size += len(key) + len(value)
			}
		}
		if size > maxAnnotations {
			err = fmt.Errorf("all annotations would have %d bytes, and the maximum is %d", size, maxAnnotations)
		}
	}
	if err != nil {
		d.warn("clients of the published API can drop fields of this template, because annotation %s cannot hold them: %v", contract.AnnotationExtensions, err)
		return
	}
	d.Annotation = annotation
}
