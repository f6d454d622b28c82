package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template"
)

// secretized is a template with user data that contain a sensitive parameter.
const secretized = `
secretize: true
objectLabels: {team: "${TEAM}"}
parameters:
- {name: NAME}
- {name: TEAM, value: shop}
- {name: NS, value: golden}
- {name: PASSWORD, generate: expression, from: "[a-z]{8}", sensitive: true}
virtualMachine:
  metadata: {name: "vm-${NAME}", namespace: "${NS}"}
  spec: {template: {spec: {volumes: [{name: root, emptyDisk: {}}, {name: init, cloudInitNoCloud: {userData: "#cloud-config\npassword: ${PASSWORD|yaml}"}}]}}}
`

func TestSecretizeMovesUserDataIntoASecret(t *testing.T) {
	compiled := compile(t, secretized, template.WithRandom(counting{}))
	if diff := cmp.Diff([]string{"Secret vm-${NAME}-init"}, compiled.Objects()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if compiled.Unused() != nil || compiled.Warnings() != nil {
		t.Errorf("unused parameters %v, warnings %v", compiled.Unused(), compiled.Warnings())
	}
	binding := bound(t, compiled, map[string]string{"NAME": "web"})
	if diff := cmp.Diff(map[string]string{"NAME": "web", "TEAM": "shop", "NS": "golden", "PASSWORD": "abcdefgh"}, binding.Values()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if declared := compiled.Parameters(); len(declared) != len(binding.Values()) {
		t.Errorf("the parameters are %v", declared)
	}
	long := strings.Repeat("very-long.", 20)
	for name, tc := range map[string]struct{ vm, secret string }{
		"the template's name":            {secret: "vm-web-init"},
		"a name that fits the template":  {vm: "vm-web", secret: "vm-web-init"},
		"another name":                   {vm: "other", secret: "other-init"},
		"a name that leaves no room":     {vm: long, secret: long[:179] + "-e7a6a3f2-init"},
		"the longest that is used whole": {vm: long[:189], secret: long[:189] + "-init"},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := compiled.RenderAs(binding, tc.vm)
			if err != nil {
				t.Fatal(err)
			}
			vm := `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"labels":{"team":"shop"},"name":"vm-web","namespace":"golden"},"spec":{"template":{"metadata":{"labels":{"team":"shop"}},"spec":{"volumes":[` +
				`{"emptyDisk":{},"name":"root"},{"cloudInitNoCloud":{"secretRef":{"name":"` + tc.secret + `"}},"name":"init"}]}}}}`
			if diff := cmp.Diff(vm, string(rendered.JSON())); diff != "" {
				t.Errorf("VirtualMachine (-want +got):\n%s", diff)
			}
			secret := `[{"apiVersion":"v1","kind":"Secret","metadata":{"labels":{"team":"shop"},"name":"` + tc.secret + `","namespace":"golden"},"stringData":{"userdata":"#cloud-config\npassword: \"abcdefgh\""}}]`
			if diff := cmp.Diff(secret, string(rendered.Objects())); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecretizeMovesAllDataOfCloudInitAndNothingElse(t *testing.T) {
	for name, tc := range map[string]struct{ volume, rendered, secret string }{
		"encoded data": {
			volume:   `{name: a, cloudInitConfigDrive: {userDataBase64: "${D}"}}`,
			rendered: `{"cloudInitConfigDrive":{"secretRef":{"name":"web-a"}},"name":"a"}`,
			secret:   `"data":{"userdata":"eA=="},"kind":"Secret","metadata":{"name":"web-a"}`,
		},
		"data of the network": {
			volume:   `{name: a, cloudInitNoCloud: {userData: "#!/bin/sh", networkDataBase64: "${D}"}}`,
			rendered: `{"cloudInitNoCloud":{"networkDataSecretRef":{"name":"web-a"},"secretRef":{"name":"web-a"}},"name":"a"}`,
			secret:   `"data":{"networkdata":"eA=="},"kind":"Secret","metadata":{"name":"web-a"},"stringData":{"userdata":"#!/bin/sh"}`,
		},
		"user data that a parameter gives": {
			volume:   `{name: a, cloudInitNoCloud: {userData: "${{R}}"}}`,
			rendered: `{"cloudInitNoCloud":{"secretRef":{"name":"web-a"}},"name":"a"}`,
			secret:   `"kind":"Secret","metadata":{"name":"web-a"},"stringData":{"userdata":"#r"}`,
		},
		"a volume with a parameter in its name": {
			volume:   `{name: "a-${R}", cloudInitNoCloud: {networkData: "version: 2", secretRef: {name: own}}}`,
			rendered: `{"cloudInitNoCloud":{"networkDataSecretRef":{"name":"web-a-#r"},"secretRef":{"name":"own"}},"name":"a-#r"}`,
			secret:   `"kind":"Secret","metadata":{"name":"web-a-#r"},"stringData":{"networkdata":"version: 2"}`,
		},
		"a volume that has a Secret": {
			volume:   `{name: a, cloudInitNoCloud: {secretRef: {name: own}, userData: ""}}`,
			rendered: `{"cloudInitNoCloud":{"secretRef":{"name":"own"},"userData":""},"name":"a"}`,
		},
		"a volume of another kind": {
			volume:   `{name: a, cloudInitNoCloud: null, sysprep: {secret: {name: own}}}`,
			rendered: `{"name":"a","sysprep":{"secret":{"name":"own"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(parse(t, `{secretize: true, parameters: [{name: D, value: eA==}, {name: R, value: "#r", required: true}], virtualMachine: {metadata: {name: web}, spec: {template: {spec: {volumes: [`+tc.volume+`]}}}}}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			if vm := string(rendered.JSON()); !strings.Contains(vm, `"volumes":[`+tc.rendered+`]`) {
				t.Errorf("got %s, want %s", vm, tc.rendered)
			}
			want := ""
			if tc.secret != "" {
				want = `[{"apiVersion":"v1",` + tc.secret + `}]`
			}
			if diff := cmp.Diff(want, string(rendered.Objects())); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatchWithSecretize(t *testing.T) {
	compiled := compile(t, secretized)
	const at = "spec.template.spec.volumes[name=init].cloudInitNoCloud"
	vm := func(name, source string) map[string]any {
		return vmOf(t, fmt.Sprintf(`{metadata: {name: %s, namespace: golden, labels: {team: shop}}, spec: {template: {metadata: {labels: {team: shop}}, spec: {volumes: [{name: root, emptyDisk: {}}, {name: init, cloudInitNoCloud: %s}]}}}}`, name, source))
	}
	for name, tc := range map[string]struct {
		vm   map[string]any
		want []string
	}{
		"as it is rendered":                  {vm: vm("vm-web", "{secretRef: {name: vm-web-init}}")},
		"with a name that does not fit":      {vm: vm("other", "{secretRef: {name: other-init}}")},
		"with the Secret of another machine": {vm: vm("vm-web", "{secretRef: {name: vm-db-init}}"), want: []string{at + `.secretRef.name: want "vm-web-init", got "vm-db-init"`}},
		"with user data in its place":        {vm: vm("vm-web", `{userData: "#cloud-config"}`), want: []string{at + `.secretRef: want an object, got nothing`}},
	} {
		t.Run(name, func(t *testing.T) {
			found := matched(t, compiled, tc.vm)
			var got []string
			for _, d := range found.Differences() {
				got = append(got, fmt.Sprintf("%s: want %s, got %s", d.Path, d.Want, d.Got))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if password, shown := found.Values()["PASSWORD"]; shown {
				t.Errorf("the VirtualMachine shows the password %q", password)
			}
			again, err := compiled.Reconstruct(found)
			if err != nil {
				t.Fatal(err)
			}
			if len(tc.want) == 0 && !contains(t, tc.vm, again) {
				t.Errorf("it is reconstructed as %s", again.JSON())
			}
		})
	}
}

func TestSecretizeChangesTheDigestOnlyIfSet(t *testing.T) {
	with := compile(t, secretized).Digest()
	unset := compile(t, strings.Replace(secretized, "secretize: true\n", "", 1)).Digest()
	off := compile(t, strings.Replace(secretized, "secretize: true", "secretize: false", 1)).Digest()
	if with == unset || unset != off {
		t.Errorf("with secretize %s, with false %s, without %s", with, off, unset)
	}
}

func TestSecretizeThatDoesNotCompile(t *testing.T) {
	const whole = ": Forbidden: with secretize, a parameter gives neither this as a whole nor a key in it, because it could give data of cloud-init"
	const volumes = "spec.virtualMachine.spec.template.spec.volumes"
	for name, tc := range map[string]struct {
		vm   string
		want []string
	}{
		"a list of volumes that a parameter gives": {vm: `{metadata: {name: web}, spec: {template: {spec: {volumes: "${{A}}"}}}}`, want: []string{volumes + whole}},
		"a key of a volume that a parameter gives": {vm: `{metadata: {name: web}, spec: {template: {spec: {volumes: [{name: a, "${A}": {}}]}}}}`, want: []string{volumes + "[0]" + whole}},
		"a source that a parameter gives":          {vm: `{metadata: {name: web}, spec: {template: {spec: {volumes: [{name: a, cloudInitNoCloud: "${{A}}"}]}}}}`, want: []string{volumes + "[0].cloudInitNoCloud" + whole}},
		"data that is there twice": {
			vm:   `{metadata: {name: web}, spec: {template: {spec: {volumes: [{name: a, cloudInitNoCloud: {userData: a, userDataBase64: YQ==}}]}}}}`,
			want: []string{volumes + "[0].cloudInitNoCloud.userDataBase64: Forbidden: KubeVirt takes only one of userData and userDataBase64"},
		},
		"a volume without a name": {vm: `{metadata: {name: web}, spec: {template: {spec: {volumes: [{cloudInitNoCloud: {userData: a}}]}}}}`, want: []string{volumes + "[0].name: Required value"}},
		"a name that is no text":  {vm: `{metadata: {name: "${{A}}"}, spec: {template: {spec: {volumes: [{name: a, cloudInitNoCloud: {userData: a}}]}}}}`, want: []string{`spec.virtualMachine.metadata.name: Invalid value: "${{A}}": a name is always text: write ${A}`}},
		"too many Secrets": {
			vm:   `{metadata: {name: web}, spec: {template: {spec: {volumes: [` + strings.Repeat(`{name: a, cloudInitNoCloud: {userData: a}},`, 33) + `]}}}}`,
			want: []string{"spec.objects: Invalid value: the list, with the Secrets of secretize, must be at most 32 objects, and is 33"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template.Compile(parse(t, `{secretize: true, parameters: [{name: A}], virtualMachine: `+tc.vm+`}`))
			if diff := cmp.Diff(tc.want, causes(t, err)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
	_, err := render(parse(t, `{secretize: true, virtualMachine: {metadata: {name: web}, spec: {template: {spec: {volumes: [{name: a, cloudInitNoCloud: {userData: a}}]}}}}, objects: [{apiVersion: v1, kind: Secret, metadata: {name: web-a}}]}`), nil)
	if diff := cmp.Diff([]string{`spec.objects[1]: Duplicate value: "Secret web-a": has the kind and the name of spec.objects[0]`}, causes(t, err)); diff != "" {
		t.Errorf("an object with the name of the Secret (-want +got):\n%s", diff)
	}
}
