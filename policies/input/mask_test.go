package input_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
)

func TestMask(t *testing.T) {
	for _, tc := range []struct {
		name      string
		kind      string
		object    string
		templated bool
		want      string
		wantPaths []string
	}{
		{
			name: "values of sensitive parameters wherever they stand, and what the guest is set up with", templated: true,
			object: strings.Replace(web, "labels: {app: web}", "labels: {app: web, hushhush-key: x}", 1),
			want:   "hushhush abcdefgh",
			wantPaths: []string{
				"object.metadata.labels.***0",
				"object.spec.template.metadata.annotations.token",
				"object.spec.template.spec.volumes[0].cloudInitNoCloud.userData",
			},
		},
		{
			name: "values of sensitive parameters that an encoder has written", templated: true,
			object: strings.Replace(web, "labels: {app: web}", "labels: {app: web, b64: aHVzaGh1c2g=}", 1),
			want:   "hushhush aHVzaGh1c2g abcdefgh",
			wantPaths: []string{
				"object.metadata.labels.b64",
				"object.spec.template.metadata.annotations.token",
				"object.spec.template.spec.volumes[0].cloudInitNoCloud.userData",
			},
		},
		{
			name:      "the content of Secrets of a template",
			object:    `{spec: {objects: [{kind: Secret, data: {a: SECRET}, stringData: {b: SECRET}, type: Opaque}, {kind: ConfigMap, data: {a: b}}]}}`,
			want:      "SECRET",
			wantPaths: []string{"object.spec.objects[0].data", "object.spec.objects[0].stringData"},
		},
		{
			name:      "without a template, what the guest is set up with and copies of the whole",
			object:    `{metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: SECRET}}, spec: {template: {metadata: {annotations: {kubevirt.io/ignitiondata: SECRET}}, spec: {volumes: [{cloudInitConfigDrive: {userDataBase64: SECRET, networkData: SECRET, secretRef: {name: a}}}]}}}}`,
			want:      "SECRET",
			wantPaths: []string{"object.metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]", "object.spec.template.metadata.annotations[kubevirt.io/ignitiondata]", "object.spec.template.spec.volumes[0].cloudInitConfigDrive.networkData", "object.spec.template.spec.volumes[0].cloudInitConfigDrive.userDataBase64"},
		},
		{
			name:      "copies of the whole that other clients keep",
			object:    `{metadata: {annotations: {kapp.k14s.io/original: SECRET, kapp.k14s.io/original-diff: SECRET, kapp.k14s.io/original-diff-full: SECRET, objectset.rio.cattle.io/applied: SECRET, banzaicloud.com/last-applied: SECRET}}}`,
			want:      "SECRET",
			wantPaths: []string{"object.metadata.annotations[banzaicloud.com/last-applied]", "object.metadata.annotations[kapp.k14s.io/original-diff-full]", "object.metadata.annotations[kapp.k14s.io/original-diff]", "object.metadata.annotations[kapp.k14s.io/original]", "object.metadata.annotations[objectset.rio.cattle.io/applied]"},
		},
		{
			name: "defaults and choices of sensitive parameters of a template", kind: "VirtualMachineTemplate",
			object:    `{spec: {parameters: [{name: A, value: open}, {name: B, value: SECRET, enum: [SECRET, SECRETER, 7], sensitive: true}], virtualMachine: {x: [SECRET, 7, true, null]}}}`,
			want:      "SECRET",
			wantPaths: []string{"object.spec.parameters[1].enum[0]", "object.spec.parameters[1].enum[1]", "object.spec.parameters[1].value", "object.spec.virtualMachine.x[0]"},
		},
		{name: "nothing to hide", object: `{metadata: {name: a}, spec: {x: 1.5}}`, want: "SECRET"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := policyinput.Case{Request: rego.Request{Operation: "CREATE", Kind: "VirtualMachine", Namespace: "team-a"}, Object: object(t, tc.object)}
			if tc.kind != "" {
				c.Request.Kind = tc.kind
			}
			if tc.templated {
				origin, _ := policyinput.OriginOf(c.Object, "team-a")
				c.Template = origin.Template(&metav1.ObjectMeta{UID: "uid"}, compiled(t))
			}
			before, _ := json.Marshal(c.Object)
			masked, paths := c.Mask(c.Document())
			if diff := cmp.Diff(tc.wantPaths, paths); diff != "" {
				t.Error(diff)
			}
			raw, err := policyinput.EncodeInput(masked)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range strings.Fields(tc.want) {
				if strings.Contains(string(raw), secret) {
					t.Errorf("%s is in %s", secret, raw)
				}
			}
			if after, _ := json.Marshal(c.Object); string(after) != string(before) {
				t.Errorf("the object has been changed to %s", after)
			}
		})
	}
}

func TestASensitiveNumberIsMasked(t *testing.T) {
	vm := object(t, `{metadata: {annotations: {template.kubevirt.io/template-ref: box, parameter.template.kubevirt.io/PIN: "4711", template.kubevirt.io/rendered: '{"namespace":"golden","name":"box","sensitive":["PIN"]}'}}}`)
	vm["spec"] = map[string]any{"a": json.Number("4711"), "b": 4711.0, "c": int64(4711), "d": json.Number("1")}
	c := policyinput.Case{Request: rego.Request{Operation: "CREATE", Kind: "VirtualMachine"}, Object: vm, Template: &policyinput.Template{}}
	masked, _ := c.Mask(c.Document())
	want := map[string]any{"a": "***", "b": "***", "c": "***", "d": json.Number("1")}
	if diff := cmp.Diff(want, masked.Object["spec"]); diff != "" {
		t.Error(diff)
	}
}
