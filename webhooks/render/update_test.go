package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/fixture"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const (
	volumesPointer = "/spec/template/spec/volumes"
	sentVolumes    = `[{"name":"extra","emptyDisk":{"capacity":"1Gi"}}]`
	storedVolumes  = `[{"name":"root","dataVolume":{"name":"web-1"}},{"name":"extra","emptyDisk":{"capacity":"1Gi"}}]`
)

// storedVM returns a VM as it is stored after rendering.
func storedVM(t *testing.T, sensitive []string, sentSpec string, annotations map[string]string) string {
	t.Helper()
	from := machine.Record{Namespace: "golden", Name: "fedora", UID: "u", Generation: 3, Digest: "sha256:d", Sensitive: sensitive}
	if sentSpec != "" {
		from.Sent = machine.Fingerprint(parseNumbers(t, sentSpec))
		from.Lists = map[string]string{volumesPointer: machine.Fingerprint(parseNumbers(t, sentVolumes))}
	}
	all := map[string]string{
		"template.kubevirt.io/template-ref":       "golden/fedora",
		"parameter.template.kubevirt.io/SIZE":     "big",
		"template.kubevirt.io/rendered":           from.String(),
		"kubevirt.io/latest-observed-api-version": "v1",
	}
	for k, v := range annotations {
		all[k] = v
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"metadata":{"name":"web-1","finalizers":["kubevirt.io/x"],
		"labels":{"vm.kubevirt.io/template":"fedora","vm.kubevirt.io/template.namespace":"golden","vm.kubevirt.io/template.revision":"3","os":"fedora"},
		"annotations":%s},
		"spec":{"runStrategy":"Halted","template":{"spec":{"volumes":%s,"domain":{"devices":{}}}}}}`, raw, storedVolumes)
}

func parseNumbers(t *testing.T, raw string) any {
	t.Helper()
	return fixture.VM(t, `{"v":`+raw+`}`)["v"]
}

func decideUpdate(t *testing.T, object, stored, manager string) (any, result) {
	t.Helper()
	vm, errs := machine.Read(fixture.VM(t, object))
	old, oldErrs := machine.Read(fixture.VM(t, stored))
	if len(errs)+len(oldErrs) > 0 {
		t.Fatal(errs, oldErrs)
	}
	o := update{raw: []byte(object), object: vm, stored: old, fieldManager: manager}.decide()
	if o.patch == nil {
		return nil, o
	}
	return patched(t, object, o.patch), o
}

func TestUpdateOfTheSameManifestChangesNothing(t *testing.T) {
	const manifestMetadata = `"metadata":{"name":"web-1","annotations":{"template.kubevirt.io/template-ref":"golden/fedora","parameter.template.kubevirt.io/SIZE":"big"}}`
	partialSpec := `{"runStrategy":"Halted","template":{"spec":{"volumes":` + sentVolumes + `}}}`
	whole := func(volumes, annotations, managed string) string {
		var s map[string]any
		if err := json.Unmarshal([]byte(storedVM(t, nil, partialSpec, nil)), &s); err != nil {
			t.Fatal(err)
		}
		s["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["volumes"] = json.RawMessage(volumes)
		metadata := s["metadata"].(map[string]any)
		if annotations != "" {
			metadata["annotations"].(map[string]any)[lastAppliedAnnotation] = annotations
		}
		if managed != "" {
			metadata["managedFields"] = json.RawMessage(managed)
		}
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	for _, tc := range []struct {
		name, object, manager string
		sent                  string
	}{
		{name: "a manifest without a spec, replaced", object: `{` + manifestMetadata + `}`},
		{name: "a manifest with a null spec", object: `{` + manifestMetadata + `,"spec":null}`},
		{name: "a manifest whose spec has no template, replaced", object: `{` + manifestMetadata + `,"spec":{"runStrategy":"Halted"}}`},
		{name: "the very spec that was sent at creation, replaced", object: `{` + manifestMetadata + `,"spec":` + partialSpec + `}`, sent: partialSpec},
		{name: "the short list of a client-side apply", object: whole(sentVolumes, "", ""), sent: partialSpec},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stored := storedVM(t, nil, tc.sent, nil)
			got, _ := decideUpdate(t, tc.object, stored, tc.manager)
			if diff := cmp.Diff(parse(t, stored), got); diff != "" {
				t.Errorf("stored (-) and updated (+) differ:\n%s", diff)
			}
		})
	}
}

func TestUpdateMergesEvolvedListsOfDeclarativeClients(t *testing.T) {
	lastApplied := func(volumes string) map[string]string {
		return map[string]string{lastAppliedAnnotation: `{"spec":{"template":{"spec":{"volumes":` + volumes + `}}}}`}
	}
	object := func(annotations map[string]string, volumes, managedFields string) string {
		vm := storedVM(t, nil, "", annotations)
		vm = strings.Replace(vm, storedVolumes, volumes, 1)
		if managedFields != "" {
			vm = strings.Replace(vm, `"metadata":{`, `"metadata":{"managedFields":`+managedFields+`,`, 1)
		}
		return vm
	}
	const evolved = `[{"name":"more"}]`
	applyEntry := `[{"manager":"argocd","operation":"Apply","fieldsV1":{"f:spec":{"f:template":{"f:spec":{"f:volumes":{}}}}}}]`
	updateEntry := `[{"manager":"argocd","operation":"Update","fieldsV1":{"f:spec":{"f:template":{"f:spec":{"f:volumes":{}}}}}}]`
	for _, tc := range []struct {
		name, object, stored, manager, want string
	}{
		{
			name:   "client-side apply: a new item joins, one that the manifest dropped leaves, the template's stays",
			object: object(lastApplied(evolved), evolved, ""),
			stored: storedVM(t, nil, "", lastApplied(sentVolumes)),
			want:   `[{"name":"root","dataVolume":{"name":"web-1"}},{"name":"more"}]`,
		},
		{
			name:    "server-side apply: a new item joins",
			object:  object(nil, evolved, applyEntry),
			stored:  storedVM(t, nil, "", nil),
			manager: "argocd",
			want:    `[{"name":"root","dataVolume":{"name":"web-1"}},{"name":"extra","emptyDisk":{"capacity":"1Gi"}},{"name":"more"}]`,
		},
		{
			name:    "an edit by a manager that does not apply is taken as it is",
			object:  object(nil, evolved, updateEntry),
			stored:  storedVM(t, nil, "", nil),
			manager: "argocd",
			want:    evolved,
		},
		{
			name:   "an edit that removes an item is taken as it is",
			object: object(nil, `[{"name":"root","dataVolume":{"name":"web-1"}}]`, ""),
			stored: storedVM(t, nil, "", nil),
			want:   `[{"name":"root","dataVolume":{"name":"web-1"}}]`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := decideUpdate(t, tc.object, tc.stored, tc.manager)
			volumes := got.(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["volumes"]
			if diff := cmp.Diff(parse(t, tc.want), volumes); diff != "" {
				t.Errorf("volumes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpdateKeepsTheStamps(t *testing.T) {
	stored := storedVM(t, nil, "", nil)
	forged := strings.NewReplacer(
		`"vm.kubevirt.io/template":"fedora"`, `"vm.kubevirt.io/template":"other"`,
		`"vm.kubevirt.io/template.revision":"3",`, ``,
		`sha256:d`, `sha256:e`,
	).Replace(stored)
	got, _ := decideUpdate(t, forged, stored, "")
	if diff := cmp.Diff(parse(t, stored), got); diff != "" {
		t.Errorf("stored (-) and updated (+) differ:\n%s", diff)
	}
}

func TestUpdateLeavesTheContractToThePolicy(t *testing.T) {
	for _, tc := range []struct{ name, object, stored string }{
		{
			name:   "a parameter that is left out is not put back",
			object: `{"metadata":{"name":"web-1","annotations":{"template.kubevirt.io/template-ref":"golden/fedora"}}}`,
			stored: storedVM(t, nil, "", nil),
		},
		{
			name:   "a reference that is left out is not put back",
			object: `{"metadata":{"name":"web-1","annotations":{"parameter.template.kubevirt.io/SIZE":"big"}}}`,
			stored: storedVM(t, nil, "", nil),
		},
		{
			name:   "a reference that is added later renders nothing",
			object: `{"metadata":{"name":"web-1","annotations":{"template.kubevirt.io/template-ref":"golden/fedora"}}}`,
			stored: `{"metadata":{"name":"web-1"},"spec":{"runStrategy":"Halted"}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := decideUpdate(t, tc.object, tc.stored, "")
			annotations := got.(map[string]any)["metadata"].(map[string]any)["annotations"].(map[string]any)
			sent := parse(t, tc.object).(map[string]any)["metadata"].(map[string]any)["annotations"].(map[string]any)
			for _, key := range []string{"template.kubevirt.io/template-ref", "parameter.template.kubevirt.io/SIZE"} {
				if annotations[key] != sent[key] {
					t.Errorf("%s is %v, was sent as %v", key, annotations[key], sent[key])
				}
			}
		})
	}
}

func TestASensitiveParameterThatComesBackIsForgottenAgain(t *testing.T) {
	const key = "parameter.template.kubevirt.io/PASSWORD"
	const secret = "correct-horse"
	for _, tc := range []struct{ name, lastApplied string }{
		{name: "as an annotation alone"},
		{name: "in kubectl's kept manifest too", lastApplied: `{"metadata":{"annotations":{"` + key + `":"` + secret + `","keep":"me"},"name":"web-1"}}` + "\n"},
		{name: "in a kept manifest that cannot be read", lastApplied: `{"` + secret},
	} {
		t.Run(tc.name, func(t *testing.T) {
			annotations := map[string]string{key: secret}
			if tc.lastApplied != "" {
				annotations[lastAppliedAnnotation] = tc.lastApplied
			}
			stored := storedVM(t, []string{"PASSWORD"}, "", nil)
			got, o := decideUpdate(t, storedVM(t, []string{"PASSWORD"}, "", annotations), stored, "")
			raw, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(raw), secret) {
				t.Errorf("the secret is still there: %s", raw)
			}
			if strings.Contains(tc.lastApplied, "keep") && !strings.Contains(string(raw), `\"keep\":\"me\"`) {
				t.Errorf("the rest of the kept manifest is lost: %s", raw)
			}
			want := []string{"sensitive parameters are used once, at creation, and not stored; removed again: PASSWORD"}
			if diff := cmp.Diff(want, o.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// The defaults webhook would restore its record too, but the API server would then write the update.
func TestAShortManifestKeepsWhatDefaultsWereFilledInWith(t *testing.T) {
	applied := map[string]string{"defaults.template.kubevirt.io/applied": `{"libvirt":"9.0.0"}`}
	stored := storedVM(t, nil, "", applied)
	const short = `{"metadata":{"name":"web-1","annotations":{"template.kubevirt.io/template-ref":"golden/fedora","parameter.template.kubevirt.io/SIZE":"big"}}}`
	got, decided := decideUpdate(t, short, stored, "kubectl-replace")
	if len(decided.causes) > 0 {
		t.Fatal(decided.causes)
	}
	want := parseNumbers(t, stored)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the machine (-stored +got):\n%s", diff)
	}
}
