package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/webhooks/render"
)

// secretized is a template whose user data, with a password, are in a Secret.
var secretized = strings.Replace(box, "spec:\n", "spec:\n  secretize: true\n", 1)

func TestUserDataInASecret(t *testing.T) {
	const volumesAt = "/spec/template/spec/volumes"
	vm := func(metadata, rest string) string {
		return "metadata: {" + metadata + ", annotations: {template.kubevirt.io/template-ref: golden/box, parameter.template.kubevirt.io/PASSWORD: open-sesame}}" + rest
	}
	inVolume := func(source string) string {
		return "\nspec: {template: {spec: {volumes: [{name: extra, emptyDisk: {}}, {name: init, " + source + "}]}}}"
	}
	const denial = `VirtualMachine.kubevirt.io "web-1" is invalid: spec.template.spec.volumes[1].cloudInitNoCloud.`
	const inSecret = ": Forbidden: the template has it in a Secret, and KubeVirt takes only one of both: write it into a Secret of yours, and name that in "
	for _, tc := range []struct {
		name, object  string
		wantName      string // of the VM
		wantReference string // the name in secretRef, by default that of the VM's Secret
		wantSource    map[string]any
		wantDenial    string
	}{
		{name: "a name that fits the template", object: vm("name: web-1", ""), wantName: "web-1"},
		{name: "a name that is generated", object: vm("generateName: web-", ""), wantName: "web-abcde"},
		{name: "with the user's spec", object: vm("name: web-1", "\nspec: {runStrategy: Always}"), wantName: "web-1"},
		{
			name: "with a Secret of the user", object: vm("name: web-1", inVolume("cloudInitNoCloud: {secretRef: {name: mine}}")),
			wantName: "web-1", wantReference: "mine",
		},
		{
			name: "with data of the network that the template has not", object: vm("name: web-1", inVolume("cloudInitNoCloud: {networkData: 'version: 2'}")),
			wantName: "web-1", wantSource: map[string]any{"networkData": "version: 2"},
		},
		{
			name: "with user data of the user as null", object: vm("name: web-1", inVolume("cloudInitNoCloud: {userData: null}")),
			wantName: "web-1", wantSource: map[string]any{"userData": nil},
		},
		{
			name: "with user data of the user", object: vm("name: web-1", inVolume("cloudInitNoCloud: {userData: '#cloud-config'}")),
			wantDenial: denial + "userData" + inSecret + "secretRef",
		},
		{
			name: "with encoded user data of the user", object: vm("name: web-1", inVolume("cloudInitNoCloud: {userDataBase64: eA==}")),
			wantDenial: denial + "userDataBase64" + inSecret + "secretRef",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dependencies, keys := objectsOf("secrets")
			h := objectsHandler(t, secretized, render.Options{Permissions: mayCreate("ada", "secrets"), Objects: dependencies})
			request := create(t, tc.object)
			response := h.Handle(t.Context(), request)
			if tc.wantDenial != "" {
				if response.Allowed || response.Result.Message != tc.wantDenial {
					t.Errorf("got %+v, want %s", response.Result, tc.wantDenial)
				}
				return
			}
			got := apply(t, request, response)
			secret := tc.wantName + "-init"
			source := map[string]any{"secretRef": map[string]any{"name": secret}}
			if tc.wantReference != "" {
				source["secretRef"] = map[string]any{"name": tc.wantReference}
			}
			for key, value := range tc.wantSource {
				source[key] = value
			}
			want := []any{map[string]any{"name": "init", "cloudInitNoCloud": source}}
			if strings.Contains(tc.object, "extra") {
				want = append(want, map[string]any{"name": "extra", "emptyDisk": map[string]any{}})
			}
			if diff := cmp.Diff(want, lookup(got, volumesAt)); diff != "" {
				t.Errorf("volumes (-want +got):\n%s", diff)
			}
			pending := opened(t, keys, got)
			manifest := `{"apiVersion":"v1","kind":"Secret","metadata":{"labels":{"size":"small"},"name":"` + secret + `"},"stringData":{"userdata":"password: open-sesame"}}`
			if len(pending.Objects) != 1 || string(pending.Objects[0].Manifest) != manifest {
				t.Errorf("objects %+v, want %s", pending.Objects, manifest)
			}
			if strings.Contains(string(response.Patch), "open-sesame") {
				t.Errorf("the patch shows the password: %s", response.Patch)
			}
		})
	}
}

func TestUserDataInASecretNeedPermissionForSecrets(t *testing.T) {
	object := "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box}}"
	for _, tc := range []struct {
		name      string
		rights    rights
		resources []string
		want      string
	}{
		{
			name: "the user may not create Secrets", rights: mayCreate("ada"), resources: []string{"secrets"},
			want: `Forbidden: Secret ${NAME}-init: user "ada" may not create secrets in namespace "team-a"; ask for verb "create" on secrets there`,
		},
		{
			name: "the cluster admin permits none", rights: mayCreate("ada", "secrets"), resources: []string{"services"},
			want: `Forbidden: Secret ${NAME}-init: templates create no secrets in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.resources`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dependencies, _ := objectsOf(tc.resources...)
			h := objectsHandler(t, secretized, render.Options{Permissions: tc.rights, Objects: dependencies})
			response := h.Handle(t.Context(), create(t, object))
			want := `VirtualMachine.kubevirt.io "web-1" is invalid: template[golden/box].spec.objects[0]: ` + tc.want
			if response.Allowed || response.Result.Message != want {
				t.Errorf("got %+v, want %s", response.Result, want)
			}
		})
	}
}

func TestUserDataInASecretInAGovernedNamespace(t *testing.T) {
	const reference = "metadata: {name: other, annotations: {template.kubevirt.io/template-ref: golden/box, parameter.template.kubevirt.io/PASSWORD: open-sesame}}"
	for _, tc := range []struct{ name, approval, rest, want string }{
		{name: "the reference and an approved value", approval: "{namespaces: [team-a], templates: [{namespace: golden, name: box}], parameters: [{name: PASSWORD, anyValue: true}]}"},
		{
			name: "a Secret of the user", approval: "{namespaces: [team-a], templates: [{namespace: golden, name: box}], parameters: [{name: PASSWORD, anyValue: true}]}",
			rest: "\nspec: {template: {spec: {volumes: [{name: init, cloudInitNoCloud: {secretRef: {name: mine}}}]}}}",
			want: "spec.template.spec.volumes[name=init].cloudInitNoCloud.secretRef.name",
		},
		{
			name: "a value that is not approved", approval: "{namespaces: [team-a], templates: [{namespace: golden, name: box}], parameters: [{name: PASSWORD, pattern: '[0-9]+'}]}",
			want: "PASSWORD",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dependencies, _ := objectsOf("secrets")
			s := &fakeTemplates{}
			s.put(t, secretized, 7)
			h := render.New(render.Options{
				Templates: s, Approvals: governing(approve(t, tc.approval)), Permissions: mayCreate("ada", "secrets"), Objects: dependencies,
				Suffix: func() string { return "abcde" },
			})
			response := h.Handle(t.Context(), create(t, reference+tc.rest))
			if response.Allowed != (tc.want == "") || !response.Allowed && !strings.Contains(response.Result.Message, tc.want) {
				t.Errorf("allowed %t: %+v, want %q", response.Allowed, response.Result, tc.want)
			}
		})
	}
}
