package render

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
	"github.com/vmstencil/stencil/webhooks/internal/rerender"
)

const mutableTemplate = `{"metadata": {"namespace": "golden", "name": "fedora"}, "spec": {
"parameters": [
  {"name": "CORES", "type": "int", "value": "2", "mutable": true}, {"name": "TIER", "value": "front", "mutable": true}, {"name": "ZONE", "mutable": true},
  {"name": "SITE", "value": "north"}, {"name": "TOKEN", "generate": "expression", "from": "[a-z]{12}"}, {"name": "PASSWORD", "sensitive": true}
],
"virtualMachine": {"metadata": {"labels": {"tier": "${TIER}"}}, "spec": {"template": {"metadata": {"labels": {"tier": "${TIER}"}}, "spec": {
  "hostname": "${SITE}-${TIER}", "nodeSelector": {"zone": "${{ZONE}}", "disk": "ssd"},
  "domain": {"cpu": {"cores": "${{CORES}}"}, "devices": {
    "disks": [{"name": "root", "serial": "${TIER}"}, {"name": "init", "serial": "fixed"}],
    "interfaces": [{"name": "default", "model": "${TIER}"}]}},
  "volumes": [{"name": "init", "cloudInitNoCloud": {"userData": "SECRETS", "networkData": "token ${TOKEN}"}}]}}}}}}`

// mutableVM is a VM that was rendered from a template, and what is needed to update it.
type mutableVM struct {
	compiled *template.Compiled
	token    string
}

func compileMutable(t *testing.T, userData string) *template.Compiled {
	t.Helper()
	compiled, err := template.Compile(fixture.Template(t, "fedora", strings.Replace(mutableTemplate, "SECRETS", userData, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func (m mutableVM) render(t *testing.T, parameters map[string]string) map[string]any {
	t.Helper()
	given := map[string]string{}
	for name, value := range parameters {
		given[name] = value
	}
	if m.token != "" {
		given["TOKEN"] = m.token
	}
	return fixture.VM(t, fixture.Render(t, m.compiled, given).JSON())
}

// stored returns the VM without overrides.
func (m mutableVM) stored(t *testing.T, parameters map[string]string, sensitive ...string) map[string]any {
	t.Helper()
	vm := m.render(t, parameters)
	spec := vm["spec"].(map[string]any)
	from := machine.Record{Namespace: "golden", Name: "fedora", UID: "u", Generation: 1, Digest: m.compiled.Digest(), Sensitive: sensitive, Mutable: m.compiled.Mutable()}
	from.Base = baseOf(m.compiled, spec, "web-1", parameters)
	annotations := map[string]any{contract.AnnotationTemplateRef: "golden/fedora", contract.AnnotationRendered: from.String()}
	for name, value := range parameters {
		if !slices.Contains(sensitive, name) {
			annotations[contract.AnnotationParameterPrefix+name] = value
		}
	}
	metadata := vm["metadata"].(map[string]any)
	metadata["name"], metadata["annotations"] = "web-1", annotations
	for label, value := range from.Labels() {
		metadata["labels"].(map[string]any)[label] = value
	}
	return vm
}

func (m mutableVM) update(t *testing.T, object, stored map[string]any) (map[string]any, result) {
	t.Helper()
	raw := encode(t, object)
	vm, errs := machine.Read(fixture.VM(t, raw))
	old, oldErrs := machine.Read(fixture.VM(t, encode(t, stored)))
	if len(errs)+len(oldErrs) > 0 {
		t.Fatal(errs, oldErrs)
	}
	find := func(machine.Record) *template.Compiled { return m.compiled }
	decided := update{
		raw: []byte(raw), object: vm, stored: old, find: find, original: m.compiled, fieldManager: "kubectl-client-side-apply",
		mutated: rerender.Changed(old, vm),
	}.decide()
	if decided.patch == nil {
		return nil, decided
	}
	return patched(t, raw, decided.patch).(map[string]any), decided
}

// TestRandomParametersEndLikeAFreshRendering applies random manifests with random values of mutable parameters, as kubectl does, and compares the VM
// with a new one from the last manifest.
func TestRandomParametersEndLikeAFreshRendering(t *testing.T) {
	compiled := compileMutable(t, "role ${TIER}")
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		m := mutableVM{compiled: compiled}
		first := m.render(t, nil)
		m.token = strings.TrimPrefix(first["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["volumes"].([]any)[0].(map[string]any)["cloudInitNoCloud"].(map[string]any)["networkData"].(string), "token ")
		stored := m.stored(t, nil)
		manifest := map[string]any{}
		stored["metadata"].(map[string]any)["annotations"].(map[string]any)[lastAppliedAnnotation] = encode(t, manifest)
		for step := range 5 {
			next, parameters := randomDesk(random)
			sent := kubectlApply(t, manifest, next, stored)
			after, decided := m.update(t, sent, stored)
			if len(decided.causes) > 0 {
				t.Fatalf("seed %d, step %d: %v", seed, step, decided.causes)
			}
			rendered := m.render(t, parameters)
			want := overrides.Merge(rendered["spec"], next["spec"])
			if diff := cmp.Diff(parse(t, encode(t, want)), withoutEmpty(after["spec"], want)); diff != "" {
				t.Fatalf("seed %d, step %d: from %s\nto %s\n(-want +got):\n%s", seed, step, encode(t, manifest), encode(t, next), diff)
			}
			if got, want := machine.MapAt(after, "metadata", "labels")["tier"], machine.MapAt(rendered, "metadata", "labels")["tier"]; got != want {
				t.Fatalf("seed %d, step %d: the label is %v, want %v", seed, step, got, want)
			}
			note := overrides.ParseNote(machine.StringAt(machine.MapAt(after, "metadata", "annotations"), contract.AnnotationOverrides))
			if diff := cmp.Diff(parse(t, encode(t, rendered["spec"])), parse(t, encode(t, note.Base(after["spec"].(map[string]any), machine.Base{})))); diff != "" {
				t.Fatalf("seed %d, step %d: the base (-want +got):\n%s", seed, step, diff)
			}
			stored, manifest = after, next
		}
	}
}

// randomDesk returns a manifest with values of parameters and overrides, which are often what the template has.
func randomDesk(random *rand.Rand) (manifest map[string]any, parameters map[string]string) {
	tiers := []string{"front", "back"}
	tier := func() string { return tiers[random.IntN(2)] }
	annotations := map[string]any{contract.AnnotationTemplateRef: "golden/fedora"}
	parameters = map[string]string{}
	for name, value := range map[string]string{"CORES": fmt.Sprint(random.IntN(3) + 1), "TIER": tier(), "ZONE": tier()} {
		if random.IntN(2) == 0 {
			parameters[name], annotations[contract.AnnotationParameterPrefix+name] = value, value
		}
	}
	manifest = map[string]any{"metadata": map[string]any{"annotations": annotations}}
	guest := map[string]any{}
	if random.IntN(3) == 0 {
		guest["domain"] = map[string]any{"cpu": map[string]any{"cores": random.IntN(3) + 1}}
	}
	if random.IntN(3) == 0 {
		guest["domain"] = map[string]any{"devices": map[string]any{"disks": []any{map[string]any{"name": "root", "serial": tier()}, map[string]any{"name": "own", "serial": tier()}}}}
	}
	if random.IntN(3) == 0 {
		guest["hostname"] = "north-" + tier()
	}
	if random.IntN(3) == 0 {
		guest["nodeSelector"] = map[string]any{"zone": tier()}
	}
	if len(guest) > 0 {
		manifest["spec"] = map[string]any{"template": map[string]any{"spec": guest}}
	}
	return manifest, parameters
}

func TestAMutableParameterBesideSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		userData, override string
		want               string
	}{
		"a sensitive value that the VM shows":  {userData: "${TIER} ${PASSWORD}", want: "back open-sesame"},
		"two that only it shows, in one text":  {userData: "${TIER} ${PASSWORD}${TOKEN}"},
		"a generated value":                    {userData: "${TIER} ${TOKEN}"},
		"an override of a place with a secret": {userData: "${TIER} ${PASSWORD}", override: "front mine", want: "front mine"},
	} {
		t.Run(name, func(t *testing.T) {
			m := mutableVM{compiled: compileMutable(t, tc.userData)}
			stored := m.stored(t, map[string]string{"PASSWORD": "open-sesame"}, "PASSWORD")
			userData := func(vm map[string]any) map[string]any {
				return machine.MapAt(vm, "spec", "template", "spec")["volumes"].([]any)[0].(map[string]any)["cloudInitNoCloud"].(map[string]any)
			}
			want := tc.want
			if tc.override != "" {
				userData(stored)["userData"] = tc.override
				stored["metadata"].(map[string]any)["annotations"].(map[string]any)[contract.AnnotationOverrides] = `{"spec.template.spec.volumes[name=init].cloudInitNoCloud.userData":{"hidden":"Secret"}}`
			}
			if want == "" {
				want = strings.Replace(userData(stored)["userData"].(string), "front", "back", 1)
			}
			object := parse(t, encode(t, stored)).(map[string]any)
			object["metadata"].(map[string]any)["annotations"].(map[string]any)[contract.AnnotationParameterPrefix+"TIER"] = "back"
			after, decided := m.update(t, object, stored)
			if len(decided.causes) > 0 {
				t.Fatal(decided.causes)
			}
			if got := userData(after)["userData"]; got != want {
				t.Errorf("the user data is %q, want %q", got, want)
			}
			if got := machine.MapAt(after, "spec", "template", "spec")["hostname"]; got != "north-back" {
				t.Errorf("the hostname is %v", got)
			}
			note := machine.StringAt(machine.MapAt(after, "metadata", "annotations"), contract.AnnotationOverrides)
			if before := machine.StringAt(machine.MapAt(stored, "metadata", "annotations"), contract.AnnotationOverrides); note != before {
				t.Errorf("the overrides are %q, want %q", note, before)
			}
		})
	}
}

func TestAChangeOfAMutableParameterThatTheTemplateRejects(t *testing.T) {
	m := mutableVM{compiled: compileMutable(t, "${TIER}")}
	stored := m.stored(t, nil)
	for name, tc := range map[string]struct{ parameter, value, want string }{
		"its declaration":        {"CORES", "many", `metadata.annotations[parameter.template.kubevirt.io/CORES]: Invalid value: "many": must be an integer`},
		"the field":              {"CORES", "-1", `template[golden/fedora].spec.virtualMachine.spec.template.spec.domain.cpu.cores: Invalid value: -1: value of CORES: must be an integer from 0 to 4294967295`},
		"what it would be typed": {"ZONE", "{}", `template[golden/fedora].spec.virtualMachine.spec.template.spec.nodeSelector[zone]: Invalid value`},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, encode(t, stored)).(map[string]any)
			object["metadata"].(map[string]any)["annotations"].(map[string]any)[contract.AnnotationParameterPrefix+tc.parameter] = tc.value
			_, decided := m.update(t, object, stored)
			if err := decided.causes.ToAggregate(); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}
