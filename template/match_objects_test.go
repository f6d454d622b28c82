package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template"
)

const withObjects = `{parameters: [{name: NAME}, {name: PORT, value: "80"}, {name: TOKEN, generate: expression, from: "[a-f]{4}"}, {name: PASSWORD, generate: expression, from: "[a-f]{8}", sensitive: true}],
virtualMachine: {metadata: {name: "${NAME}"}, spec: {template: {spec: {hostname: "${NAME}", volumes: [{name: init, cloudInitNoCloud: {secretRef: {name: "${NAME}-access"}}}]}}}},
objectLabels: {tier: "${NAME}"},
objects: [
 {apiVersion: v1, kind: Secret, metadata: {name: "${NAME}-access"}, stringData: {userdata: "password: ${PASSWORD}"}},
 {apiVersion: v1, kind: Service, metadata: {name: "${NAME}"}, spec: {selector: {vm: "${NAME}"}, ports: [{port: "${{PORT}}"}]}},
 {apiVersion: v1, kind: ConfigMap, metadata: {name: "c-${TOKEN}"}, data: {port: "${PORT}"}},
]}`

const webVM = `{metadata: {name: web, labels: {tier: web}}, spec: {template: {metadata: {labels: {tier: web}}, spec: {hostname: web, volumes: [{name: init, cloudInitNoCloud: {secretRef: {name: web-access}}}]}}}}`

func TestMatchNamesTheOtherObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		spec, vm string
		want     []template.MatchedObject
	}{
		"a template without objects": {spec: `{virtualMachine: {spec: {}}}`, vm: `{spec: {}}`},
		"by values that the VM shows; it does not show a generated one": {spec: withObjects, vm: webVM, want: []template.MatchedObject{
			{APIVersion: "v1", Kind: "Secret", Name: "web-access"}, {APIVersion: "v1", Kind: "Service", Name: "web"}, {APIVersion: "v1", Kind: "ConfigMap"},
		}},
		"a Secret of secretize by the name of the VM": {
			spec: `{secretize: true, parameters: [{name: A}], virtualMachine: {metadata: {name: "x-${A}"}, spec: {template: {spec: {volumes: [{name: init, cloudInitNoCloud: {userData: "a"}}]}}}}}`,
			vm:   `{metadata: {name: web}, spec: {template: {spec: {volumes: [{name: init, cloudInitNoCloud: {secretRef: {name: web-init}}}]}}}}`,
			want: []template.MatchedObject{{APIVersion: "v1", Kind: "Secret", Name: "web-init"}},
		},
		"by the default of a parameter": {
			spec: `{parameters: [{name: A, value: x}], virtualMachine: {spec: {}}, objects: [{apiVersion: example.com/v2, kind: Thing, metadata: {name: "t-${A}"}}]}`, vm: `{spec: {}}`,
			want: []template.MatchedObject{{APIVersion: "example.com/v2", Kind: "Thing", Name: "t-x"}},
		},
		"by the annotation of a parameter": {
			spec: `{parameters: [{name: A, value: x}], virtualMachine: {spec: {}}, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: "t-${A}"}}]}`,
			vm:   `{metadata: {annotations: {parameter.template.kubevirt.io/A: z}}, spec: {}}`,
			want: []template.MatchedObject{{APIVersion: "v1", Kind: "ConfigMap", Name: "t-z"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, match(t, tc.spec, tc.vm).MatchedObjects()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatchComparesTheOtherObjects(t *testing.T) {
	secret := func(userdata string) string {
		return `{metadata: {name: web-access, namespace: shop, labels: {tier: web, objects.template.kubevirt.io/owner: u-1}, ownerReferences: [{uid: u-1}]}, data: {userdata: ` + userdata + `}, type: Opaque}`
	}
	const (
		generated = "cGFzc3dvcmQ6IGFiY2RlZmFi" // password: abcdefab
		service   = `{metadata: {name: web, labels: {tier: web}}, spec: {clusterIP: 10.0.0.1, selector: {vm: web}, ports: [{port: 80, protocol: TCP}]}}`
		configMap = `{metadata: {name: c-abcd, labels: {tier: web}}, data: {port: "80"}}`
	)
	for name, tc := range map[string]struct {
		objects []string // empty for an object that does not exist
		want    []string
	}{
		"as they were created":                      {objects: []string{secret(generated), service, configMap}},
		"one that does not exist":                   {objects: []string{secret(generated), "", configMap}, want: []string{"objects[1]: want an object, got nothing"}},
		"one that is not known":                     {objects: []string{"{}", service, configMap}},
		"another value of a Secret":                 {objects: []string{secret("cGFzc3dvcmQ6IGh1bnRlcjI="), service, configMap}, want: []string{"objects[0].stringData.userdata: want (sensitive), got (sensitive)"}},
		"another text around the value of a Secret": {objects: []string{secret("dG9rZW46IGh1bnRlcjI="), service, configMap}, want: []string{"objects[0].stringData.userdata: want (sensitive), got (sensitive)"}},
		"a Secret without its key":                  {objects: []string{"{metadata: {name: web-access, labels: {tier: web}}}", service, configMap}, want: []string{"objects[0].stringData.userdata: want (sensitive), got (sensitive)"}},
		"another selector": {objects: []string{secret(generated), `{metadata: {name: web, labels: {tier: web}}, spec: {selector: {vm: db}, ports: [{port: 80}]}}`, configMap},
			want: []string{`objects[1].spec.selector.vm: want "web", got "db"`}},
		"a label that is gone": {objects: []string{secret(generated), `{metadata: {name: web}, spec: {selector: {vm: web}, ports: [{port: 80}]}}`, configMap},
			want: []string{`objects[1].metadata.labels.tier: want "${NAME}", got nothing`}},
		"two objects with different values of a parameter": {objects: []string{secret(generated), service, `{metadata: {name: c-abcd, labels: {tier: web}}, data: {port: "81"}}`},
			want: []string{`objects[1].spec.ports[0].port: want 81, got 80`}},
		"a number of objects that is another template's": {objects: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []map[string]any
			for _, each := range tc.objects {
				var object map[string]any
				if each != "" {
					object = vmOf(t, each)
				}
				objects = append(objects, object)
			}
			found := match(t, withObjects, webVM, template.AndObjects(objects))
			if diff := cmp.Diff(tc.want, differences(found)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}
