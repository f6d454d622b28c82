package extensions_test

import (
	"strings"
	"testing"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/template/extensions"
)

const (
	own       = `{secretize: true, parameters: [{name: A, sensitive: true}, {name: B, value: x, type: int}]}`
	published = `{parameters: [{name: A}, {name: B, value: x}]}`
	restored  = `fields that the published API lacks were restored: `
	toDrop    = `; to drop them, add annotation template.kubevirt.io/drop-extensions: "true"`
)

// template returns a template with annotations given as pairs.
func template(t *testing.T, spec string, pairs ...string) *extensions.Object {
	t.Helper()
	made := object(t, "spec: "+spec)
	made.Metadata.Annotations = map[string]string{"team": "a"}
	for i := 0; i < len(pairs); i += 2 {
		made.Metadata.Annotations[pairs[i]] = pairs[i+1]
	}
	return made
}

func annotationOf(t *testing.T, spec string) string {
	t.Helper()
	return encode(t, extensions.Extract(object(t, "spec: "+spec).Spec))
}

func TestDecide(t *testing.T) {
	kept := annotationOf(t, own)
	const key, drop = contract.AnnotationExtensions, contract.AnnotationDropExtensions
	stored := template(t, own, key, kept)
	for _, tc := range []struct {
		name           string
		before, after  *extensions.Object
		wantRestored   string
		wantAnnotation string
		wantRemoveDrop bool
		wantLoss       string
		wantWarning    string
	}{
		{name: "a published template has no annotation", after: template(t, published)},
		{name: "a new template with extensions", after: template(t, own), wantAnnotation: kept},
		{name: "the same again, by a manifest without the annotation", before: stored, after: template(t, own), wantAnnotation: kept},
		{name: "the annotation that holds them in other words stays", before: stored, after: template(t, own, key, " "+kept), wantAnnotation: " " + kept},
		{name: "a client that has the fields changes them", before: stored, after: template(t, `{secretize: true}`, key, kept), wantAnnotation: annotationOf(t, `{secretize: true}`)},
		{name: "a damaged annotation is replaced by the fields", before: stored, after: template(t, own, key, "damaged"), wantAnnotation: kept},
		{
			name: "a client that does not have the fields drops all", before: stored, after: template(t, published, key, kept),
			wantRestored: "spec.secretize, spec.parameters[A].sensitive, spec.parameters[B].type", wantAnnotation: kept,
			wantWarning: restored + "spec.secretize, spec.parameters[A].sensitive, spec.parameters[B].type" + toDrop,
		},
		{
			name: "also if it changes, adds and removes parameters", before: stored, after: template(t, `{parameters: [{name: C}, {name: B, value: y, required: true}]}`, key, kept),
			wantRestored: "spec.secretize, spec.parameters[B].type", wantAnnotation: annotationOf(t, `{secretize: true, parameters: [{name: B, type: int}]}`),
			wantWarning: restored + "spec.secretize, spec.parameters[B].type" + toDrop,
		},
		{
			name: "the stored fields count, and not an annotation that is damaged in both", before: template(t, own, key, "damaged"), after: template(t, published, key, "damaged"),
			wantRestored: "spec.secretize, spec.parameters[A].sensitive, spec.parameters[B].type", wantAnnotation: kept,
			wantWarning: restored + "spec.secretize, spec.parameters[A].sensitive, spec.parameters[B].type" + toDrop,
		},
		{
			name: "the parameters that have them are gone", before: template(t, `{parameters: [{name: A, type: int}]}`, key, annotationOf(t, `{parameters: [{name: A, type: int}]}`)),
			after: template(t, `{parameters: [{name: B}]}`, key, annotationOf(t, `{parameters: [{name: A, type: int}]}`)),
		},
		{
			name: "an import of a published artifact", after: template(t, published, key, kept),
			wantRestored: "spec.secretize, spec.parameters[A].sensitive, spec.parameters[B].type", wantAnnotation: kept,
			wantWarning: restored + "spec.secretize, spec.parameters[A].sensitive, spec.parameters[B].type" + toDrop,
		},
		{
			name: "an import over a template with other fields", before: stored, after: template(t, published, key, annotationOf(t, `{syntax: Parentheses}`)),
			wantRestored: "spec.syntax", wantAnnotation: annotationOf(t, `{syntax: Parentheses}`), wantWarning: restored + "spec.syntax" + toDrop,
		},
		{
			name: "what was dropped while no webhook answered", before: template(t, published, key, kept), after: template(t, `{message: m, parameters: [{name: A}]}`, key, kept),
			wantRestored: "spec.secretize, spec.parameters[A].sensitive", wantAnnotation: annotationOf(t, `{secretize: true, parameters: [{name: A, sensitive: true}]}`),
			wantWarning: restored + "spec.secretize, spec.parameters[A].sensitive" + toDrop,
		},
		{name: "a user drops them", before: stored, after: template(t, published, key, kept, drop, "true")},
		{name: "the annotation that drops them may stay", before: template(t, published, drop, "true"), after: template(t, `{message: m}`, drop, "true")},
		{
			name: "but not with such fields", before: template(t, published, drop, "true"), after: template(t, own, drop, "true"), wantAnnotation: kept, wantRemoveDrop: true,
			wantWarning: "annotation template.kubevirt.io/drop-extensions was removed: it has an effect in the request that removes the fields: spec.secretize, spec.parameters[A].sensitive, spec.parameters[B].type",
		},
		{
			name: "another value drops nothing", before: stored, after: template(t, `{}`, key, kept, drop, "false"),
			wantRestored: "spec.secretize", wantAnnotation: annotationOf(t, `{secretize: true}`), wantWarning: restored + "spec.secretize" + toDrop,
		},
		{
			name: "a client drops the annotation as well", before: stored, after: template(t, published),
			wantLoss: "fields that the published API lacks are removed, and so is annotation template.kubevirt.io/extensions, which could restore them: spec.secretize, spec.parameters[A].sensitive, spec.parameters[B].type" + toDrop,
		},
		{
			name: "a damaged annotation of an import", after: template(t, published, key, "hunter2"), wantAnnotation: "hunter2",
			wantLoss: "fields that the published API lacks cannot be restored from annotation template.kubevirt.io/extensions, because it is no JSON of the expected form: write the fields, or remove the annotation",
		},
		{
			name: "annotations that leave no room", after: template(t, own, "large", strings.Repeat("x", 250<<10)),
			wantWarning: "clients of the published API can drop fields of this template, because annotation template.kubevirt.io/extensions cannot hold them: all annotations would have 256223 bytes, and the maximum is 253952",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := extensions.Decide(tc.before, tc.after)
			if got := d.Restored.String(); got != tc.wantRestored {
				t.Errorf("restored %s, want %s", got, tc.wantRestored)
			}
			if d.Annotation != tc.wantAnnotation || d.RemoveDrop != tc.wantRemoveDrop {
				t.Errorf("annotation %s, removed %v; want %s, %v", d.Annotation, d.RemoveDrop, tc.wantAnnotation, tc.wantRemoveDrop)
			}
			if d.Loss != tc.wantLoss {
				t.Errorf("loss %s, want %s", d.Loss, tc.wantLoss)
			}
			if got := strings.Join(d.Warnings, "\n"); got != tc.wantWarning {
				t.Errorf("warnings %s, want %s", got, tc.wantWarning)
			}
		})
	}
}
