package render

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const overridesAnnotation = "template.kubevirt.io/overrides"

// trackedVM returns a stored VM with a base, this spec and note.
func trackedVM(t *testing.T, spec, note string, base machine.Base) string {
	t.Helper()
	from := machine.Record{Namespace: "golden", Name: "fedora", UID: "u", Generation: 3, Digest: "sha256:d", Base: &base}
	annotations := map[string]any{"template.kubevirt.io/template-ref": "golden/fedora", "template.kubevirt.io/rendered": from.String()}
	if note != "" {
		annotations[overridesAnnotation] = note
	}
	return encode(t, map[string]any{
		"metadata": map[string]any{
			"name": "web-1", "annotations": annotations,
			"labels": map[string]any{"vm.kubevirt.io/template": "fedora", "vm.kubevirt.io/template.namespace": "golden", "vm.kubevirt.io/template.revision": "3"},
		},
		"spec": parseNumbers(t, spec),
	})
}

func TestARemovedOverrideHasTheTemplatesValue(t *testing.T) {
	always := machine.Base{RunStrategy: "Always"}
	secret := machine.Base{Secret: []string{"spec.template.password"}}
	for _, tc := range []struct {
		name, stored, note string
		base               machine.Base
		requested          string
		// forged is the annotation that the user sends; the stored one if empty.
		forged             string
		wantSpec, wantNote string
		wantCause          string
	}{
		{
			name:   "an override is noted",
			stored: `{"template":{"cores":4}}`, requested: `{"template":{"cores":2}}`,
			wantSpec: `{"template":{"cores":2}}`, wantNote: `{"spec.template.cores":{"value":4}}`,
		},
		{
			name:   "and removed",
			stored: `{"template":{"cores":2}}`, note: `{"spec.template.cores":{"value":4}}`, requested: `{"template":{}}`,
			wantSpec: `{"template":{"cores":4}}`,
		},
		{
			name:   "set to the template's value, it is none any more",
			stored: `{"template":{"cores":2}}`, note: `{"spec.template.cores":{"value":4}}`, requested: `{"template":{"cores":4}}`,
			wantSpec: `{"template":{"cores":4}}`,
		},
		{
			name:   "changed, it still covers the template's value",
			stored: `{"template":{"cores":2}}`, note: `{"spec.template.cores":{"value":4}}`, requested: `{"template":{"cores":3}}`,
			wantSpec: `{"template":{"cores":3}}`, wantNote: `{"spec.template.cores":{"value":4}}`,
		},
		{
			name:   "a field of the user's own goes",
			stored: `{"template":{"hostname":"h"}}`, note: `{"spec.template.hostname":{}}`, requested: `{"template":{}}`,
			wantSpec: `{"template":{}}`,
		},
		{
			name: "a removed run strategy is the template's", base: always,
			stored: `{"runStrategy":"Halted","template":{}}`, requested: `{"template":{}}`,
			wantSpec: `{"runStrategy":"Always","template":{}}`,
		},
		{
			name: "not beside the former field", base: always,
			stored: `{"runStrategy":"Halted","template":{}}`, requested: `{"running":true,"template":{}}`,
			wantSpec: `{"running":true,"template":{}}`,
		},
		{
			name: "a forged annotation is discarded", forged: `{"spec.template.cores":{"value":64}}`,
			stored: `{"template":{"cores":2}}`, note: `{"spec.template.cores":{"value":4}}`, requested: `{"template":{}}`,
			wantSpec: `{"template":{"cores":4}}`,
		},
		{
			name: "a forged annotation without a change is discarded", forged: `{"spec.template.cores":{"value":64}}`,
			stored: `{"template":{"cores":4}}`, requested: `{"template":{"cores":4}}`,
			wantSpec: `{"template":{"cores":4}}`,
		},
		{
			name:   "a list without the user's item is that of the template",
			stored: `{"template":{"disks":[{"name":"root","bus":"sata"},{"name":"more"}]}}`, note: `{"spec.template.disks[name=more]":{},"spec.template.disks[name=root].bus":{"value":"virtio"}}`,
			requested: `{"template":{"disks":[{"name":"root"}]}}`, wantSpec: `{"template":{"disks":[{"name":"root","bus":"virtio"}]}}`,
		},
		{
			name: "a secret is not noted", base: secret,
			stored: `{"template":{"password":"open-sesame"}}`, requested: `{"template":{"password":"mine"}}`,
			wantSpec: `{"template":{"password":"mine"}}`, wantNote: `{"spec.template.password":{"hidden":"Secret"}}`,
		},
		{
			name: "and cannot be restored", base: secret,
			stored: `{"template":{"password":"mine"}}`, note: `{"spec.template.password":{"hidden":"Secret"}}`, requested: `{"template":{}}`,
			wantCause: "spec.template.password: Forbidden: this override cannot be removed: the value of template golden/fedora is not stored with the VirtualMachine, " +
				"because it contains a sensitive or a generated value, and the template has changed since, is gone, or you may not use it; keep the field, or set it to the value that you want",
		},
		{
			name:   "nor can what is too large",
			stored: `{"template":{"script":"mine"}}`, note: `{"spec.template.script":{"hidden":"TooLarge"}}`, requested: `{"template":{}}`,
			wantCause: "spec.template.script: Forbidden: this override cannot be removed: the value of template golden/fedora is not stored with the VirtualMachine, " +
				"because it is too large, and the template has changed since, is gone, or you may not use it; keep the field, or set it to the value that you want",
		},
		{
			name:   "a short manifest has all overrides",
			stored: `{"template":{"cores":2,"memory":1}}`, note: `{"spec.template.cores":{"value":4}}`, requested: ``,
			wantSpec: `{"template":{"cores":4,"memory":1}}`,
		},
		{
			name:   "what holds a VM back is no override when it is removed",
			stored: `{"template":{"metadata":{"annotations":{"objects.template.kubevirt.io/hold":"objects","a":"b"}}}}`, requested: `{"template":{"metadata":{"annotations":{"a":"b"}}}}`,
			wantSpec: `{"template":{"metadata":{"annotations":{"a":"b"}}}}`,
		},
		{
			name:   "nor are the maps around it",
			stored: `{"template":{"metadata":{"annotations":{"objects.template.kubevirt.io/hold":"objects"}},"spec":{}}}`, requested: `{"template":{"metadata":{"annotations":{}},"spec":{}}}`,
			wantSpec: `{"template":{"metadata":{"annotations":{}},"spec":{}}}`,
		},
		{
			name:   "nor when it is forged",
			stored: `{"template":{"metadata":{"annotations":{"a":"b"}}}}`, requested: `{"template":{"metadata":{"annotations":{"objects.template.kubevirt.io/hold":"x","a":"b"}}}}`,
			wantSpec: `{"template":{"metadata":{"annotations":{"a":"b"}}}}`,
		},
		{
			name: "without a note that fits, no removal is possible",
			note: `{"spec":{"hidden":"TooLarge"}}`, stored: `{"template":{"cores":2}}`, requested: `{"template":{}}`,
			wantCause: "spec.template.cores: Forbidden: this override cannot be removed",
		},
		{
			name: "a change is", note: `{"spec":{"hidden":"TooLarge"}}`, stored: `{"template":{"cores":2}}`, requested: `{"template":{"cores":3}}`,
			wantSpec: `{"template":{"cores":3}}`, wantNote: `{"spec":{"hidden":"TooLarge"}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stored := trackedVM(t, tc.stored, tc.note, tc.base)
			object := parse(t, stored).(map[string]any)
			delete(object, "spec")
			if tc.requested != "" {
				object["spec"] = parse(t, tc.requested)
			}
			if tc.forged != "" {
				object["metadata"].(map[string]any)["annotations"].(map[string]any)[overridesAnnotation] = tc.forged
			}
			raw := encode(t, object)
			got, decided := decideUpdate(t, raw, stored, "")
			if tc.wantCause != "" {
				if err := decided.causes.ToAggregate(); err == nil || !strings.Contains(err.Error(), tc.wantCause) {
					t.Errorf("got %v, want %s", err, tc.wantCause)
				}
				return
			}
			if len(decided.causes) > 0 {
				t.Fatal(decided.causes)
			}
			after := got.(map[string]any)
			if diff := cmp.Diff(parse(t, tc.wantSpec), after["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			note, _ := after["metadata"].(map[string]any)["annotations"].(map[string]any)[overridesAnnotation].(string)
			if diff := cmp.Diff(tc.wantNote, note); diff != "" {
				t.Errorf("note (-want +got):\n%s", diff)
			}
		})
	}
}

func encode(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestAListWithoutAKnownBaseStays covers an applier that sends its list again where the note did not fit.
func TestAListWithoutAKnownBaseStays(t *testing.T) {
	const spec = `{"template":{"disks":[{"name":"root"},{"name":"more"}]}}`
	claims := parse(t, `[{"manager":"argocd","operation":"Apply","fieldsV1":{"f:spec":{"f:template":{"f:disks":{}}}}}]`)
	for _, note := range []string{`{"spec":{"hidden":"TooLarge"}}`, `{"spec.template.disks":{"hidden":"TooLarge"}}`} {
		stored := parse(t, trackedVM(t, spec, note, machine.Base{})).(map[string]any)
		stored["metadata"].(map[string]any)["managedFields"] = claims
		raw := encode(t, stored)
		stored["spec"] = parse(t, `{"template":{"disks":[{"name":"more"}]}}`)
		got, decided := decideUpdate(t, encode(t, stored), raw, "argocd")
		if len(decided.causes) > 0 {
			t.Fatal(decided.causes)
		}
		if diff := cmp.Diff(parse(t, spec), got.(map[string]any)["spec"]); diff != "" {
			t.Errorf("%s: spec (-want +got):\n%s", note, diff)
		}
	}
}
