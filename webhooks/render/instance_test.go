package render_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/webhooks/render"
)

const (
	referenceKey = "template.kubevirt.io/template-ref"
	processedKey = "template.kubevirt.io/processed"
	recordKey    = "template.kubevirt.io/rendered"
	parameterKey = "parameter.template.kubevirt.io/"
)

// stall is a template with every kind of parameter: NAME is set by the name, PLACE and RACK are in one text, TOKEN is generated and secret, SERIAL
// generated, PASSWORD secret.
const stall = `
spec:
  parameters:
  - {name: NAME, required: true}
  - {name: SIZE, value: small}
  - {name: PLACE, value: north}
  - {name: RACK, value: "1"}
  - {name: CORES, type: int, value: "1", maximum: 8}
  - {name: TOKEN, sensitive: true, generate: expression, from: "[a-z]{8}"}
  - {name: SERIAL, generate: expression, from: "[0-9]{6}"}
  - {name: PASSWORD, sensitive: true, required: true}
  - {name: UNUSED}
  virtualMachine:
    metadata: {name: "${NAME}", labels: {size: "${SIZE}"}}
    spec:
      runStrategy: Halted
      template:
        spec:
          hostname: ${NAME}
          subdomain: ${PLACE}-${RACK}
          domain:
            cpu: {cores: "${{CORES}}"}
            firmware: {serial: "${SERIAL}"}
            machine: {type: q35}
            devices: {}
          volumes:
          - {name: init, cloudInitNoCloud: {userData: "token: ${TOKEN}\npassword: ${PASSWORD}"}}
`

// complete returns a VM of the template stall as process renders it, and as edit changes it.
func complete(t *testing.T, values map[string]string, edit func(vm, annotations map[string]any)) string {
	t.Helper()
	all := map[string]string{"NAME": "web-1", "TOKEN": "abcdefgh", "SERIAL": "123456", "PASSWORD": "hunter2"}
	maps.Copy(all, values)
	s := &fakeTemplates{}
	s.put(t, stall, 1)
	compiled, err := s.templates["golden/box"].Compiled()
	if err != nil {
		t.Fatal(err)
	}
	vm := fixture.VM(t, fixture.Render(t, compiled, all).JSON())
	annotations := map[string]any{referenceKey: "golden/box", processedKey: compiled.Digest()}
	vm["metadata"].(map[string]any)["annotations"] = annotations
	if edit != nil {
		edit(vm, annotations)
	}
	raw, err := json.Marshal(vm)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// sentSpec returns the spec of a request.
func sentSpec(t *testing.T, request admission.Request) any {
	t.Helper()
	var vm map[string]any
	if err := json.Unmarshal(request.Object.Raw, &vm); err != nil {
		t.Fatal(err)
	}
	return vm["spec"]
}

// guest is spec.template.spec of a VM.
func guest(vm map[string]any) map[string]any {
	return vm["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
}

func userData(text string) func(vm, annotations map[string]any) {
	return func(vm, _ map[string]any) {
		guest(vm)["volumes"].([]any)[0].(map[string]any)["cloudInitNoCloud"].(map[string]any)["userData"] = text
	}
}

func annotate(pairs ...string) func(vm, annotations map[string]any) {
	return func(_, annotations map[string]any) {
		for i := 0; i < len(pairs); i += 2 {
			if annotations[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
				delete(annotations, pairs[i])
			}
		}
	}
}

func both(edits ...func(vm, annotations map[string]any)) func(vm, annotations map[string]any) {
	return func(vm, annotations map[string]any) {
		for _, edit := range edits {
			edit(vm, annotations)
		}
	}
}

// unmarked is a VM that a client made complete without process.
var unmarked = annotate(processedKey, "")

// byLabels is a VM that refers to its template by labels only.
func byLabels(vm, annotations map[string]any) {
	delete(annotations, referenceKey)
	delete(annotations, processedKey)
	labels := vm["metadata"].(map[string]any)["labels"].(map[string]any)
	labels["vm.kubevirt.io/template"], labels["vm.kubevirt.io/template.namespace"] = "box", "golden"
}

func field(name string, value any) func(vm, annotations map[string]any) {
	return func(vm, _ map[string]any) { guest(vm)[name] = value }
}

func machineType(version string) func(vm, annotations map[string]any) {
	return func(vm, _ map[string]any) {
		guest(vm)["domain"].(map[string]any)["machine"] = map[string]any{"type": version}
	}
}

func TestACompleteVMInAGovernedNamespace(t *testing.T) {
	const open = "parameters: [{name: PASSWORD, anyValue: true}]"
	for _, tc := range []struct {
		name     string
		approval string
		values   map[string]string
		edit     func(vm, annotations map[string]any)
		want     []string // texts of the denial
		wantNot  string
	}{
		{name: "as process returns it", approval: open},
		{name: "without the mark", approval: open, edit: unmarked},
		{name: "with parameters in annotations", approval: open, edit: annotate(parameterKey+"NAME", "web-1", parameterKey+"SIZE", "small")},
		{name: "with an allowed value", approval: "parameters: [{name: PASSWORD, anyValue: true}, {name: SIZE, allowed: [small, large]}]", values: map[string]string{"SIZE": "large"}},
		{
			name: "a value that the approval does not list", approval: open, values: map[string]string{"SIZE": "huge"},
			want: []string{`parameters[SIZE]: Invalid value: "huge": must be "small", the default of the template`},
		},
		{
			name: "the same without the mark", approval: open, values: map[string]string{"SIZE": "huge"}, edit: unmarked,
			want: []string{`parameters[SIZE]: Invalid value: "huge": must be "small", the default of the template`},
		},
		{
			name: "a value that the template does not permit", approval: "parameters: [{name: PASSWORD, anyValue: true}, {name: CORES, anyValue: true}]",
			edit: func(vm, _ map[string]any) {
				guest(vm)["domain"].(map[string]any)["cpu"] = map[string]any{"cores": 64}
			},
			want: []string{"spec.template.spec.domain.cpu.cores", "must be at most 8"},
		},
		{
			name: "an annotation that hides a value of the spec", approval: open, values: map[string]string{"SIZE": "huge"}, edit: annotate(parameterKey+"SIZE", "small"),
			want: []string{"metadata.labels.size"},
		},
		{
			name: "an annotation of a parameter that the template does not declare", approval: open, edit: annotate(parameterKey+"OTHER", "x"),
			want: []string{"parameters[OTHER]"},
		},
		{
			name: "the same without the mark", approval: open, edit: both(unmarked, annotate(parameterKey+"OTHER", "x")),
			want: []string{"OTHER"},
		},
		{
			name: "an annotation of a value that the spec does not show", approval: open, edit: annotate(parameterKey+"UNUSED", "x"),
			want: []string{`parameters[UNUSED]: Invalid value: "x": must be empty as in the template`},
		},
		{
			name: "a chosen secret that a forged record permits", approval: open,
			values: map[string]string{"TOKEN": "open-sesame"},
			edit:   annotate(recordKey, `{"namespace":"golden","name":"box","uid":"uid","generation":1,"digest":"sha256:0","sensitive":["TOKEN"]}`),
			want:   []string{"parameters[TOKEN]: Invalid value: must be left to the template"}, wantNot: "sesame",
		},
		{
			name: "the same without the mark", approval: open, values: map[string]string{"TOKEN": "open-sesame"},
			edit: both(unmarked, annotate(recordKey, `{"namespace":"golden","name":"box","uid":"uid","digest":"sha256:0","sensitive":["TOKEN"]}`)),
			want: []string{"not approved"}, wantNot: "sesame",
		},
		{
			name: "a secret that the template could have generated", approval: open, values: map[string]string{"TOKEN": "aaaaaaaa"},
		},
		{
			name: "unless the approval denies to choose", approval: open + ", generatedValues: Deny",
			want: []string{"parameters[TOKEN]: Forbidden: must be left to the template, which generates it: the approval denies generated values that the user sends; leave out spec", "parameters[SERIAL]"},
		},
		{name: "a chosen secret that the approval lists", approval: "parameters: [{name: PASSWORD, anyValue: true}, {name: TOKEN, anyValue: true}]", values: map[string]string{"TOKEN": "open-sesame"}},
		{
			name: "a secret that the approval does not permit", approval: "parameters: [{name: PASSWORD, pattern: '[0-9]+'}]",
			want: []string{"parameters[PASSWORD]"}, wantNot: "hunter2",
		},
		{
			name: "more behind a secret, which is part of its value", approval: "parameters: [{name: PASSWORD, pattern: '[a-z0-9]+'}]",
			edit: userData("token: abcdefgh\npassword: hunter2 evil"), want: []string{"parameters[PASSWORD]"}, wantNot: "evil",
		},
		{
			name: "another line behind a secret", approval: open, edit: userData("token: abcdefgh\npassword: hunter2\nruncmd: [evil]"),
			want: []string{"spec.template.spec.volumes[name=init].cloudInitNoCloud.userData: may not be written"}, wantNot: "evil",
		},
		{
			name: "a field beyond the template", approval: open, edit: field("nodeSelector", map[string]any{"node": "master"}),
			want: []string{"spec.template.spec.nodeSelector.node: may not be written or changed beside the template; no field may"},
		},
		{name: "the same without the mark", approval: open, edit: both(unmarked, field("nodeSelector", map[string]any{"node": "master"})), want: []string{"spec.template.spec.nodeSelector.node"}},
		{name: "which is an override", approval: open + ", overrides: [spec.template.spec.nodeSelector]", edit: field("nodeSelector", map[string]any{"a": "b"})},
		{name: "a changed field", approval: open, edit: func(vm, _ map[string]any) { vm["spec"].(map[string]any)["runStrategy"] = "Always" }, want: []string{"spec.runStrategy: may not be written"}},
		{name: "which is an override, too", approval: open + ", overrides: [spec.runStrategy]", edit: func(vm, _ map[string]any) { vm["spec"].(map[string]any)["runStrategy"] = "Always" }},
		{name: "a field that is missing", approval: open, edit: func(vm, _ map[string]any) { delete(guest(vm), "subdomain") }, want: []string{"spec.template.spec.subdomain"}},
		{
			name: "a list that is missing, which is reported once", approval: open, edit: func(vm, _ map[string]any) { delete(guest(vm), "volumes") },
			want: []string{`not approved in namespace "team-a": spec.template.spec.volumes[name=init]: may not be written or changed beside the template; no field may (approval "team")`}, wantNot: "the template has",
		},
		{name: "a hostname other than the name", approval: open, edit: field("hostname", "evil"), want: []string{"hostname"}},
		{name: "a pinned machine type", approval: open, edit: machineType("pc-q35-9.2"), want: []string{"spec.template.spec.domain.machine.type"}},
		{name: "which is an override, too: a machine type", approval: open + ", overrides: [spec.template.spec.domain.machine.type]", edit: machineType("pc-q35-9.2")},
		{
			name: "a value that matches two ways, of which one is approved", approval: "parameters: [{name: PASSWORD, anyValue: true}, {name: RACK, allowed: [b-1]}]",
			values: map[string]string{"PLACE": "north", "RACK": "b-1"},
		},
		{
			name: "a value that matches two ways, none of which is approved", approval: "parameters: [{name: PASSWORD, anyValue: true}, {name: RACK, allowed: ['1', '2']}]",
			values: map[string]string{"PLACE": "south-2", "RACK": "2"}, want: []string{"parameters["},
		},
		{
			name: "an annotation that contradicts the way that the text is read", approval: "parameters: [{name: PASSWORD, anyValue: true}, {name: RACK, allowed: ['1', '2']}]",
			values: map[string]string{"PLACE": "south", "RACK": "2"}, edit: annotate(parameterKey+"PLACE", "north"), want: []string{"subdomain"},
		},
		{
			name: "an old version of the template that the VM still matches", approval: open, edit: annotate(processedKey, "sha256:old"),
		},
		{
			name: "an old version of the template that it does not match", approval: open, edit: both(annotate(processedKey, "sha256:old"), field("subdomain", "gone")),
			want: []string{"it changed after this VM was processed from it, and the VM does not match it any more; process it again"},
		},
		{
			name: "a mark on a manifest that is not complete is no mark", approval: open,
			edit: func(vm, _ map[string]any) {
				vm["spec"] = map[string]any{"runStrategy": "Always"}
			},
			want: []string{`PASSWORD]: Required value`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &fakeTemplates{}
			s.put(t, stall, 7)
			spec := "{namespaces: [team-a], templates: [{namespace: golden, name: box}], " + tc.approval + "}"
			h := render.New(render.Options{Templates: s, Permissions: everything, Approvals: governing(approve(t, spec))})
			request := create(t, complete(t, tc.values, tc.edit))
			response := h.Handle(t.Context(), request)
			if response.Allowed != (tc.want == nil) {
				t.Fatalf("allowed %v: %v", response.Allowed, response.Result)
			}
			if tc.want == nil {
				if diff := cmp.Diff(sentSpec(t, request), apply(t, request, response)["spec"]); diff != "" {
					t.Errorf("the spec changed (-sent +stored):\n%s", diff)
				}
				return
			}
			for _, want := range tc.want {
				if !strings.Contains(response.Result.Message, want) {
					t.Errorf("the denial lacks %q: %s", want, response.Result.Message)
				}
			}
			if tc.wantNot != "" && strings.Contains(response.Result.Message, tc.wantNot) {
				t.Errorf("the denial shows %q: %s", tc.wantNot, response.Result.Message)
			}
		})
	}
}

func TestTheMetadataOfACompleteVM(t *testing.T) {
	s := &fakeTemplates{}
	s.put(t, stall, 7)
	for _, tc := range []struct {
		name   string
		values map[string]string
		edit   func(vm, annotations map[string]any)
		want   map[string]string
		// wantSensitive of the record.
		wantSensitive []string
	}{
		{name: "defaults and generated values are not noted", wantSensitive: []string{"PASSWORD"}, want: map[string]string{}},
		{
			name: "other values are, except secret ones", values: map[string]string{"SIZE": "large", "SERIAL": "mine", "TOKEN": "open-sesame"},
			want: map[string]string{"SIZE": "large", "SERIAL": "mine"}, wantSensitive: []string{"PASSWORD", "TOKEN"},
		},
		{
			name: "a secret in an annotation is removed", edit: annotate(parameterKey+"PASSWORD", "hunter2", parameterKey+"NAME", "web-1"),
			want: map[string]string{"NAME": "web-1"}, wantSensitive: []string{"PASSWORD"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := create(t, complete(t, tc.values, both(annotate(recordKey, "forged"), func(vm, annotations map[string]any) {
				if tc.edit != nil {
					tc.edit(vm, annotations)
				}
			})))
			h := render.New(render.Options{Templates: s, Permissions: everything, Approvals: governing()})
			stored := apply(t, request, h.Handle(t.Context(), request))
			annotations := stored["metadata"].(map[string]any)["annotations"].(map[string]any)
			parameters := map[string]string{}
			for key, value := range annotations {
				if name, is := strings.CutPrefix(key, parameterKey); is {
					parameters[name] = value.(string)
				}
			}
			if diff := cmp.Diff(tc.want, parameters); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
			var record struct {
				Namespace, Name, Digest string
				Sensitive               []string
			}
			if err := json.Unmarshal([]byte(annotations[recordKey].(string)), &record); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantSensitive, record.Sensitive); diff != "" || record.Namespace != "golden" || record.Name != "box" || !strings.HasPrefix(record.Digest, "sha256:") {
				t.Errorf("%+v (-want +got):\n%s", record, diff)
			}
			if annotations[referenceKey] != "golden/box" {
				t.Errorf("%v", annotations)
			}
		})
	}
}

func TestACompleteVMElsewhereStaysAsItWasSent(t *testing.T) {
	for name, edit := range map[string]func(vm, annotations map[string]any){
		"as process returns it":      nil,
		"with another name":          both(annotate(parameterKey+"NAME", "web-1"), func(vm, _ map[string]any) { vm["metadata"].(map[string]any)["name"] = "other" }),
		"without a volume":           func(vm, _ map[string]any) { delete(guest(vm), "volumes") },
		"with another field":         field("nodeSelector", map[string]any{"a": "b"}),
		"with another parameter":     annotate(parameterKey+"OTHER", "x"),
		"without the mark":           unmarked,
		"with a value out of bounds": func(vm, _ map[string]any) { guest(vm)["domain"].(map[string]any)["cpu"] = map[string]any{"cores": 64} },
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeTemplates{}
			s.put(t, stall, 7)
			h := render.New(render.Options{Templates: s, Permissions: everything, Approvals: governing()})
			request := create(t, complete(t, nil, edit))
			stored := apply(t, request, h.Handle(t.Context(), request))
			if diff := cmp.Diff(sentSpec(t, request), stored["spec"]); diff != "" {
				t.Errorf("the spec changed (-sent +stored):\n%s", diff)
			}
		})
	}
	t.Run("also when its template changed, with a warning", func(t *testing.T) {
		s := &fakeTemplates{}
		s.put(t, strings.Replace(stall, "runStrategy: Halted", "runStrategy: Manual", 1), 8)
		h := render.New(render.Options{Templates: s, Permissions: everything, Approvals: governing()})
		request := create(t, complete(t, nil, nil))
		response := h.Handle(t.Context(), request)
		if diff := cmp.Diff(sentSpec(t, request), apply(t, request, response)["spec"]); diff != "" {
			t.Errorf("the spec changed (-sent +stored):\n%s", diff)
		}
		want := []string{"template golden/box changed after this VM was processed from it; the VM is created as it was sent"}
		if diff := cmp.Diff(want, response.Warnings); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
	})
}

func TestACompleteVMWithAGeneratedName(t *testing.T) {
	const crate = `
spec:
  parameters: [{name: SUFFIX, generate: expression, from: "[a-z]{5}"}]
  virtualMachine: {metadata: {generateName: crate-, annotations: {suffix: "${SUFFIX}"}}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}}
`
	s := &fakeTemplates{}
	s.put(t, crate, 7)
	h := render.New(render.Options{
		Templates: s, Permissions: everything, Suffix: func() string { return "abcde" },
		Approvals: governing(approve(t, "{namespaces: [team-a], templates: [{namespace: golden, name: box}]}")),
	})
	request := create(t, `
metadata: {generateName: crate-, annotations: {template.kubevirt.io/template-ref: golden/box, template.kubevirt.io/processed: "sha256:1", suffix: vwxyz}}
spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}`)
	if name := apply(t, request, h.Handle(t.Context(), request))["metadata"].(map[string]any)["name"]; name != "crate-abcde" {
		t.Errorf("its name is %v", name)
	}
}

func TestLabelsAsAReference(t *testing.T) {
	const accepting = "{namespaces: [team-a], templates: [{namespace: golden, name: box}], parameters: [{name: PASSWORD, anyValue: true}], templateLabels: Accept"
	label := func(key, value string) func(vm, annotations map[string]any) {
		return func(vm, _ map[string]any) {
			vm["metadata"].(map[string]any)["labels"].(map[string]any)[key] = value
		}
	}
	for _, tc := range []struct {
		name      string
		approvals []string
		edit      func(vm, annotations map[string]any)
		rights    *rights
		want      string // text of the denial
	}{
		{name: "accepted", approvals: []string{accepting + "}"}},
		{name: "ignored without the field", approvals: []string{strings.Replace(accepting, ", templateLabels: Accept", "", 1) + "}"}, want: "the VirtualMachine names no template"},
		{name: "ignored", approvals: []string{strings.Replace(accepting, "Accept", "Ignore", 1) + "}"}, want: "the VirtualMachine names no template"},
		{
			name: "accepted by an approval of another template", want: "the VirtualMachine names no template",
			approvals: []string{strings.Replace(accepting, "name: box", "name: crate", 1) + "}", strings.Replace(accepting, ", templateLabels: Accept", "", 1) + "}"},
		},
		{
			name: "accepted by one of two approvals, whose constraints hold", want: "parameters[PASSWORD]",
			approvals: []string{
				strings.Replace(accepting, "anyValue: true", "pattern: '[0-9]+'", 1) + "}",
				strings.Replace(accepting, ", templateLabels: Accept", "", 1) + "}",
			},
		},
		{
			name: "accepted by one that warns, where another one denies", want: "spec.template.spec.nodeSelector.a", edit: field("nodeSelector", map[string]any{"a": "b"}),
			approvals: []string{accepting + ", enforcement: Warn}", "{namespaces: [team-a], templates: [{namespace: golden, name: crate}]}"},
		},
		{name: "for other users", approvals: []string{accepting + ", subjects: [{kind: User, name: bob}]}"}, want: "names no template"},
		{name: "one label", approvals: []string{accepting + "}"}, edit: label("vm.kubevirt.io/template.namespace", ""), want: "names no template"},
		{name: "a template that does not exist, as one of OpenShift", approvals: []string{accepting + "}"}, edit: label("vm.kubevirt.io/template", "fedora-server-small"), want: "names no template"},
		{name: "no name", approvals: []string{accepting + "}"}, edit: label("vm.kubevirt.io/template", "box/x"), want: "names no template"},
		{name: "a VM that differs", approvals: []string{accepting + "}"}, edit: field("nodeSelector", map[string]any{"a": "b"}), want: "spec.template.spec.nodeSelector.a: may not be written"},
		{name: "a VM of something else", approvals: []string{accepting + "}"}, edit: userData("#!/bin/sh"), want: "spec.template.spec.volumes[name=init].cloudInitNoCloud.userData"},
		{name: "no right to use it", approvals: []string{accepting + "}"}, rights: &rights{}, want: "it does not exist or user \"ada\" may not use it"},
		{name: "no right to use it, of a user who is exempt", approvals: []string{accepting + ", exemptSubjects: [{kind: User, name: ada}]}"}, rights: &rights{}},
		{name: "no right to use it, where VMs are created with a warning", approvals: []string{accepting + ", enforcement: Warn}"}, rights: &rights{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &fakeTemplates{}
			s.put(t, stall, 7)
			var compiled []*approval.Approval
			for i, spec := range tc.approvals {
				compiled = append(compiled, fixture.Approval(t, string(rune('a'+i)), spec))
			}
			may := everything
			if tc.rights != nil {
				may = *tc.rights
			}
			h := render.New(render.Options{Templates: s, Permissions: may, Approvals: governing(compiled...)})
			edits := both(byLabels)
			if tc.edit != nil {
				edits = both(byLabels, tc.edit)
			}
			request := create(t, complete(t, nil, edits))
			response := h.Handle(t.Context(), request)
			if tc.want != "" {
				if response.Allowed || !strings.Contains(response.Result.Message, tc.want) {
					t.Errorf("%v, want %q", response.Result, tc.want)
				}
				return
			}
			stored := apply(t, request, response)["metadata"].(map[string]any)["annotations"]
			if reference, _ := stored.(map[string]any)[referenceKey].(string); (reference == "golden/box") != (tc.rights == nil) {
				t.Errorf("%v", stored)
			}
		})
	}
}
