package render_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/webhooks/render"
)

// shelf is a template whose objects have values that its VM does not show: a generated secret, one that a user may give, and one that must be given if
// it is declared required.
const shelf = `
spec:
  secretize: true
  parameters:
  - {name: NAME, required: true}
  - {name: CORES, type: int, value: "1", maximum: 8}
  - {name: TOKEN, sensitive: true, generate: expression, from: "[a-z]{8}"}
  - {name: PASSWORD, sensitive: true, value: none}
  - {name: OWNER, value: staff}
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      template:
        spec:
          domain: {cpu: {cores: "${{CORES}}"}, devices: {}}
          volumes:
          - {name: init, cloudInitNoCloud: {userData: "token: ${TOKEN}\npassword: ${PASSWORD}"}}
  objects:
  - {apiVersion: v1, kind: Service, metadata: {name: "${NAME}", labels: {owner: "${OWNER}", cores: "${CORES}"}}, spec: {}}
`

func TestACompleteVMOfATemplateWithObjects(t *testing.T) {
	const (
		open = "parameters: [{name: CORES, anyValue: true}]"
		all  = "parameters: [{name: CORES, anyValue: true}, {name: PASSWORD, anyValue: true}, {name: OWNER, anyValue: true}]"
	)
	secretRef := func(name string) func(vm, annotations map[string]any) {
		return func(vm, _ map[string]any) {
			guest(vm)["volumes"].([]any)[0].(map[string]any)["cloudInitNoCloud"] = map[string]any{"secretRef": map[string]any{"name": name}}
		}
	}
	withMetadata := func(metadata any) func(vm, annotations map[string]any) {
		return func(vm, _ map[string]any) {
			vm["spec"].(map[string]any)["template"].(map[string]any)["metadata"] = metadata
		}
	}
	for _, tc := range []struct {
		name     string
		template string // a change of shelf
		approval string // none: the namespace is not governed
		edit     func(vm, annotations map[string]any)
		rights   render.Permissions
		want     []string // texts of the denial
		wantNot  string
		// wantUserData is a pattern, wantLabels are those of the Service.
		wantUserData, wantLabels string
	}{
		{name: "as process returns it", approval: open},
		{name: "without the mark", approval: open, edit: unmarked},
		{name: "with metadata that are null", approval: open, edit: withMetadata(nil)},
		{name: "in a namespace that is not governed"},
		{name: "not governed, with an annotation of its own", edit: withMetadata(map[string]any{"annotations": map[string]any{"a": "b"}})},
		{name: "not governed, with a label of its own", edit: withMetadata(map[string]any{"labels": map[string]any{"a": "b"}})},
		{name: "not governed, with a field of its own", edit: field("subdomain", "mine")},
		{
			name: "a given secret", approval: all, edit: annotate(parameterKey+"PASSWORD", "hunter2"),
			wantUserData: "^token: [a-z]{8}\npassword: hunter2$",
		},
		{name: "a given value", approval: all, edit: annotate(parameterKey+"OWNER", "ada"), wantLabels: "ada 2"},
		{
			name: "a secret that the approval does not list", approval: open, edit: annotate(parameterKey+"PASSWORD", "hunter2"),
			want: []string{"parameters[PASSWORD]"}, wantNot: "hunter2",
		},
		{
			name: "a secret of the user in place of the generated one", approval: all, edit: annotate(parameterKey+"TOKEN", "abcdefgh"),
			want: []string{"parameters[TOKEN]"}, wantNot: "abcdefgh",
		},
		{name: "a value that the approval does not list", approval: open, edit: annotate(parameterKey+"OWNER", "ada"), want: []string{"parameters[OWNER]"}},
		{name: "a Secret of the user", approval: all, edit: secretRef("mine"), want: []string{"spec.template.spec.volumes[name=init].cloudInitNoCloud.secretRef"}},
		{name: "the Secret of another VM", approval: all, edit: secretRef("web-2-init"), want: []string{"spec.template.spec.volumes[name=init].cloudInitNoCloud.secretRef"}},
		{
			name: "user data in place of the Secret", approval: all, edit: func(vm, _ map[string]any) {
				guest(vm)["volumes"].([]any)[0].(map[string]any)["cloudInitNoCloud"] = map[string]any{"userData": "evil"}
			},
			want: []string{"spec.template.spec.volumes[name=init].cloudInitNoCloud"}, wantNot: "evil",
		},
		{name: "an additional field", approval: all, edit: field("subdomain", "mine"), want: []string{"spec.template.spec.subdomain"}},
		{
			name: "a secret that must be given, and is not", template: "{name: PASSWORD, sensitive: true, required: true}", approval: all,
			want: []string{"parameters[PASSWORD]: Required value"},
		},
		{
			name: "the same where nothing is governed", template: "{name: PASSWORD, sensitive: true, required: true}",
			want: []string{parameterKey + "PASSWORD", "Required value"},
		},
		{name: "an object that the user may not create", approval: all, rights: mayCreate("ada", "services"), want: []string{`user "ada" may not create secrets`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := shelf
			if tc.template != "" {
				text = strings.Replace(shelf, "{name: PASSWORD, sensitive: true, value: none}", tc.template, 1)
			}
			s := &fakeTemplates{}
			s.put(t, text, 7)
			compiled, err := s.templates["golden/box"].Compiled()
			if err != nil {
				t.Fatal(err)
			}
			vm := fixture.VM(t, fixture.Render(t, compiled, map[string]string{"NAME": "web-1", "CORES": "2", "PASSWORD": "shown-by-process"}).JSON())
			annotations := map[string]any{
				referenceKey: "golden/box", processedKey: compiled.Digest(), parameterKey + "NAME": "web-1", parameterKey + "CORES": "2",
				"objects.template.kubevirt.io/pending": "forged",
			}
			vm["metadata"].(map[string]any)["annotations"] = annotations
			if tc.edit != nil {
				tc.edit(vm, annotations)
			}
			raw, err := json.Marshal(vm)
			if err != nil {
				t.Fatal(err)
			}
			var approvals []*approval.Approval
			if tc.approval != "" {
				approvals = append(approvals, approve(t, "{namespaces: [team-a], templates: [{namespace: golden, name: box}], "+tc.approval+"}"))
			}
			others, keys := objectsOf()
			if tc.rights == nil {
				tc.rights = mayCreate("ada", allObjects...)
			}
			h := render.New(render.Options{Templates: s, Permissions: tc.rights, Approvals: governing(approvals...), Objects: others})
			request := create(t, string(raw))
			response := h.Handle(t.Context(), request)
			if response.Allowed != (tc.want == nil) {
				t.Fatalf("allowed %v: %v", response.Allowed, response.Result)
			}
			if tc.want != nil {
				for _, want := range tc.want {
					if !strings.Contains(response.Result.Message, want) {
						t.Errorf("the denial lacks %q: %s", want, response.Result.Message)
					}
				}
				if tc.wantNot != "" && strings.Contains(response.Result.Message, tc.wantNot) {
					t.Errorf("the denial shows %q: %s", tc.wantNot, response.Result.Message)
				}
				return
			}

			stored := apply(t, request, response)
			if got := lookup(stored, annotationsAt+"/objects.template.kubevirt.io~1hold"); got != "objects" {
				t.Errorf("the VM is held by %v", got)
			}
			if _, left := stored["metadata"].(map[string]any)["annotations"].(map[string]any)[parameterKey+"PASSWORD"]; left {
				t.Error("the annotation of a sensitive parameter is stored")
			}
			sent := sentSpec(t, request)
			if diff := cmp.Diff(unheldSpec(sent), unheldSpec(stored["spec"])); diff != "" {
				t.Errorf("the spec changed (-sent +stored):\n%s", diff)
			}
			pending := opened(t, keys, stored)
			if len(pending.Objects) != 2 {
				t.Fatalf("%d objects", len(pending.Objects))
			}
			var service, secret struct {
				Metadata   struct{ Name, Labels any }
				StringData struct{ Userdata string }
			}
			for i, into := range []any{&service, &secret} {
				if err := json.Unmarshal(pending.Objects[i].Manifest, into); err != nil {
					t.Fatal(err)
				}
			}
			if tc.wantUserData == "" {
				tc.wantUserData = "^token: [a-z]{8}\npassword: none$"
			}
			if !regexp.MustCompile(tc.wantUserData).MatchString(secret.StringData.Userdata) || secret.Metadata.Name != "web-1-init" {
				t.Errorf("the Secret is %+v", secret)
			}
			if tc.wantLabels == "" {
				tc.wantLabels = "staff 2"
			}
			labels, _ := service.Metadata.Labels.(map[string]any)
			if got, _ := labels["owner"].(string); got+" "+labels["cores"].(string) != tc.wantLabels || service.Metadata.Name != "web-1" {
				t.Errorf("the Service is %+v", service)
			}
		})
	}
}

// unheldSpec removes what only holds a VM back.
func unheldSpec(spec any) any {
	template := spec.(map[string]any)["template"].(map[string]any)
	metadata, _ := template["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, "objects.template.kubevirt.io/hold")
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	if len(metadata) == 0 {
		delete(template, "metadata")
	}
	return spec
}
