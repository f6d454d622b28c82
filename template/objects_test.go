package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/template"
)

const vmWithObjects = `
objectLabels: {team: "${TEAM}"}
parameters:
- {name: NAME}
- {name: TEAM, value: shop}
- {name: PASSWORD, generate: expression, from: "[a-z]{8}", sensitive: true}
- {name: PORT, type: int, value: "80"}
virtualMachine:
  metadata: {name: "${NAME}"}
  spec: {template: {spec: {volumes: [{name: a, cloudInitNoCloud: {userData: "#cloud-config\npassword: ${PASSWORD|yaml}"}}]}}}
`

const theObjects = `
objects:
- apiVersion: v1
  kind: Secret
  metadata: {name: "${NAME}-db", namespace: golden, annotations: {"${TEAM}/of": "$${NAME}"}}
  stringData: {password: "${PASSWORD}"}
  data: {encoded: "${PASSWORD|base64}"}
- apiVersion: v1
  kind: Service
  metadata: {name: "${NAME}", labels: {team: "${TEAM}"}}
  spec: {selector: {vm.kubevirt.io/name: "${NAME}"}, ports: [{port: "${{PORT}}"}], clusterIP: null}
  status: {}
`

func TestObjectsAreRenderedWithTheValuesOfTheVirtualMachine(t *testing.T) {
	rendered, err := render(parse(t, vmWithObjects+theObjects), map[string]string{"NAME": "web"}, template.WithRandom(counting{}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"apiVersion":"v1","data":{"encoded":"YWJjZGVmZ2g="},"kind":"Secret","metadata":{"annotations":{"shop/of":"${NAME}"},"labels":{"team":"shop"},"name":"web-db"},"stringData":{"password":"abcdefgh"}},` +
		`{"apiVersion":"v1","kind":"Service","metadata":{"labels":{"team":"shop"},"name":"web"},"spec":{"clusterIP":null,"ports":[{"port":80}],"selector":{"team":"shop","vm.kubevirt.io/name":"web"}}}]`
	if diff := cmp.Diff(want, string(rendered.Objects())); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if vm := string(rendered.JSON()); !strings.Contains(vm, `password: \"abcdefgh\"`) {
		t.Errorf("the VirtualMachine has another password: %s", vm)
	}
}

func TestObjectsDoNotChangeTheVirtualMachine(t *testing.T) {
	with, without := compile(t, vmWithObjects+theObjects), compile(t, vmWithObjects)
	if diff := cmp.Diff([]string{"Secret ${NAME}-db", "Service ${NAME}"}, with.Objects()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]schema.GroupKind{{Kind: "Secret"}, {Kind: "Service"}}, with.ObjectKinds()); diff != "" || without.ObjectKinds() != nil {
		t.Errorf("kinds of objects, without objects %v (-want +got):\n%s", without.ObjectKinds(), diff)
	}
	values := map[string]string{"NAME": "web", "PASSWORD": "password"}
	rendered, err := with.Render(bound(t, with, values))
	if err != nil {
		t.Fatal(err)
	}
	bare, err := without.Render(bound(t, without, values))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(bare.JSON()), string(rendered.JSON())); diff != "" {
		t.Errorf("VirtualMachine (-without +with objects):\n%s", diff)
	}
	if without.Objects() != nil || bare.Objects() != nil {
		t.Errorf("a template without objects has %v and %s", without.Objects(), bare.Objects())
	}
	if with.NamePattern() != without.NamePattern() || with.Naming("NAME") != without.Naming("NAME") || with.SelectsSource("NAME") {
		t.Error("the objects change what the template knows of its names")
	}
	// PORT is in no VirtualMachine, so that a comparison cannot find its value.
	found := matched(t, with, rendered.Object())
	if !found.Matches() {
		t.Errorf("the rendered VirtualMachine does not match: %v", found.Differences())
	}
	again, err := with.Reconstruct(found)
	if err != nil || again.Objects() != nil {
		t.Errorf("reconstructed with objects %s: %v", again.Objects(), err)
	}
}

func TestParametersOfObjectsAreUsed(t *testing.T) {
	if unused := compile(t, vmWithObjects).Unused(); !cmp.Equal(unused, []string{"PORT"}) {
		t.Errorf("without objects %v are unused", unused)
	}
	with := compile(t, vmWithObjects+theObjects)
	if unused := with.Unused(); len(unused) > 0 {
		t.Errorf("with objects %v are unused", unused)
	}
	want := []string{"spec.objects[0].metadata.namespace: is dropped: the object is created in the namespace of the VirtualMachine"}
	if diff := cmp.Diff(want, with.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestDigestCoversObjects(t *testing.T) {
	seen := map[string]string{}
	for _, objects := range []string{
		"",
		`objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]`,
		`objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: 1.0}}]`,
		`objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: 1.00}}]`,
		`objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}}, {apiVersion: v1, kind: Secret, metadata: {name: b}}]`,
	} {
		object := parse(t, "virtualMachine: {}\n"+objects)
		if strings.Contains(objects, "1.00") {
			// YAML would be the same number.
			object.Spec.Objects[0].Raw = []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"a":1.00}}`)
		}
		digest := mustCompile(t, object).Digest()
		if other, found := seen[digest]; found {
			t.Errorf("%q and %q have the same digest", objects, other)
		}
		seen[digest] = objects
	}
	spaced := parse(t, "virtualMachine: {}")
	spaced.Spec.Objects = []runtime.RawExtension{{Raw: []byte(` { "kind":"Secret", "metadata":{"name":"a"},"apiVersion":"v1"}`)}}
	if seen[mustCompile(t, spaced).Digest()] == "" {
		t.Error("white space and the order of keys change the digest")
	}
}

func TestRightsAreNotRendered(t *testing.T) {
	compiled := mustCompile(t, parse(t, `
virtualMachine: {}
objects:
- {apiVersion: v1, kind: Secret, metadata: {name: a}}
- {apiVersion: v1, kind: Secret, metadata: {name: b}, rights: User}
- {apiVersion: v1, kind: Secret, metadata: {name: c}, rights: Template, data: {rights: Template}}
- {apiVersion: v1, kind: Secret, metadata: {name: d}, rights: null}
`))
	var lent []bool
	for i := range compiled.Objects() {
		lent = append(lent, compiled.LendsObject(i))
	}
	if diff := cmp.Diff([]bool{false, false, true, false}, lent); diff != "" {
		t.Errorf("lent (-want +got):\n%s", diff)
	}
	rendered, err := compiled.Render(bound(t, compiled, nil))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}},{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}},` +
		`{"apiVersion":"v1","data":{"rights":"Template"},"kind":"Secret","metadata":{"name":"c"}},{"apiVersion":"v1","kind":"Secret","metadata":{"name":"d"}}]`
	if diff := cmp.Diff(want, string(rendered.Objects())); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestObjectsThatDoNotCompile(t *testing.T) {
	const valid = `apiVersion: v1, kind: Secret, metadata: {name: a}`
	for name, tc := range map[string]struct {
		spec string // of parameters and objects
		want []string
	}{
		"what every object has": {
			spec: `objects: [{}, {apiVersion: "", kind: null, metadata: {name: ""}}, {apiVersion: v1, kind: 7, metadata: {name: [a]}}]`,
			want: []string{
				`spec.objects[0].apiVersion: Required value`,
				`spec.objects[0].kind: Required value`,
				`spec.objects[0].metadata.name: Required value`,
				`spec.objects[1].apiVersion: Required value`,
				`spec.objects[1].kind: Required value`,
				`spec.objects[1].metadata.name: Required value`,
				`spec.objects[2].metadata.name: Invalid value: must be a string, not a list`,
				`spec.objects[2].kind: Invalid value: 7: must be a string, not a number`,
			},
		},
		"rights that there are not": {
			spec: `{parameters: [{name: A}], objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}, rights: template}, {apiVersion: v1, kind: Secret, metadata: {name: b}, rights: "${A}"}, {apiVersion: v1, kind: Secret, metadata: {name: c}, rights: {a: b}}]}`,
			want: []string{
				`spec.objects[0].rights: Unsupported value: "template": supported values: "User", "Template"`,
				`spec.objects[1].rights: Unsupported value: "${A}": supported values: "User", "Template"`,
				`spec.objects[2].rights: Unsupported value: supported values: "User", "Template"`,
			},
		},
		"what is no object": {
			spec: `objects: [text, null]`,
			want: []string{`spec.objects[1]: Required value`},
		},
		"text": {
			spec: `objects: ["${{A}}"]`,
			want: []string{`spec.objects[0]: Invalid value: "${{A}}": must be an object, not a string`},
		},
		"kinds from parameters": {
			spec: `{parameters: [{name: A}], objects: [{apiVersion: "${A}/v1", kind: "${{A}}", metadata: {name: a}}]}`,
			want: []string{
				`spec.objects[0].apiVersion: Invalid value: "${A}/v1": must not contain a placeholder`,
				`spec.objects[0].kind: Invalid value: "${{A}}": must not contain a placeholder`,
			},
		},
		"a second VirtualMachine, and others of KubeVirt": {
			spec: `objects: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: a}}, {apiVersion: kubevirt.io/v1alpha3, kind: VirtualMachineInstance, metadata: {name: a}}, {apiVersion: instancetype.kubevirt.io/v1beta1, kind: VirtualMachineInstancetype, metadata: {name: a}}]`,
			want: []string{
				`spec.objects[0].kind: Forbidden: must not be of kubevirt.io: a template has one VirtualMachine, in spec.virtualMachine`,
				`spec.objects[1].kind: Forbidden: must not be of kubevirt.io: a template has one VirtualMachine, in spec.virtualMachine`,
			},
		},
		"a list, which could hide one": {
			spec: `objects: [{apiVersion: v1, kind: List, metadata: {name: a}, items: []}]`,
			want: []string{`spec.objects[0].kind: Forbidden: must not be a List: write its items among the objects`},
		},
		"what belongs to one object": {
			spec: `objects: [{apiVersion: v1, kind: Secret, metadata: {name: a, generateName: b, uid: a, ownerReferences: [{}], finalizers: [x]}, status: {ready: true}}]`,
			want: []string{
				`spec.objects[0].metadata.generateName: Forbidden: an object has a name, which may contain placeholders`,
				`spec.objects[0].metadata.finalizers: Forbidden: a template must not hold what belongs to one object`,
				`spec.objects[0].metadata.ownerReferences: Forbidden: a template must not hold what belongs to one object`,
				`spec.objects[0].metadata.uid: Forbidden: a template must not hold what belongs to one object`,
				`spec.objects[0].status: Forbidden: a template has no status`,
			},
		},
		"metadata that does not exist, or is no object": {
			spec: `{parameters: [{name: A}], objects: [{apiVersion: v1, kind: Secret, metadata: {name: a, lables: {}, labels: {a: 1}}}, {apiVersion: v1, kind: Secret, metadata: "${{A}}"}]}`,
			want: []string{
				`spec.objects[0].metadata.labels[a]: Invalid value: 1: must be a string, not a number`,
				`spec.objects[0].metadata.lables: Invalid value: there is no such field; did you mean labels?`,
				`spec.objects[1].metadata: Invalid value: "${{A}}": must be an object, not a string`,
			},
		},
		"parameters where there can be none": {
			spec: `{parameters: [{name: A}], objects: [{apiVersion: v1, kind: Secret, metadata: {name: a, "x${A}": a}, "${A}": {}}, {apiVersion: v1, kind: Secret, metadata: {name: "${{A}}"}}, {apiVersion: v1, kind: Secret, metadata: {name: "${A|sh}"}}]}`,
			want: []string{
				`spec.objects[0][${A}]: Invalid value: "${A}": this key cannot be a parameter`,
				`spec.objects[0].metadata[x${A}]: Invalid value: "x${A}": this key cannot be a parameter`,
				`spec.objects[1].metadata.name: Invalid value: "${{A}}": a name is always text: write ${A}`,
				`spec.objects[2].metadata.name: Invalid value: "${A|sh}": name takes no encoder: write ${A}`,
			},
		},
		"undefined references, each with its place": {
			spec: `{parameters: [{name: NAME}], objects: [{` + valid + `, stringData: {"${B}": "${NMAE}"}, list: [["${{C}}"]]}]}`,
			want: []string{
				`spec.objects[0].list[0][0]: Invalid value: "${{C}}": no parameter is called C; declare it, or write $${ for a literal ${`,
				`spec.objects[0].stringData[${B}]: Invalid value: "${B}": no parameter is called B; declare it, or write $${ for a literal ${`,
				`spec.objects[0].stringData[${B}]: Invalid value: "${NMAE}": no parameter is called NMAE; did you mean NAME?`,
			},
		},
		"objects that are the same": {
			spec: `{parameters: [{name: A}], objects: [{` + valid + `}, {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {` + valid + `}, {apiVersion: apps/v1, kind: Deployment, metadata: {name: "x${A}"}}, {apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: "x${A}"}}]}`,
			want: []string{
				`spec.objects[2]: Duplicate value: "Secret a": has the kind and the name of spec.objects[0]`,
				`spec.objects[4]: Duplicate value: "Deployment x${A}": has the kind and the name of spec.objects[3]`,
			},
		},
		"a namespace that is not that of the VirtualMachine": {
			spec: `{parameters: [{name: A}], objects: [{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: "${A}"}}]}`,
			want: []string{`spec.objects[0].metadata.namespace: Invalid value: "${A}": must be that of the VirtualMachine`},
		},
		"object labels that differ from the labels of an object, or have no place": {
			spec: `{parameters: [{name: A}], objectLabels: {a: b}, objects: [{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {a: c}}}, {apiVersion: v1, kind: Service, metadata: {name: a, labels: "${{A}}"}}]}`,
			want: []string{
				`spec.objectLabels[a]: Duplicate value: "a": has another value in spec.objects[0].metadata.labels`,
				`spec.objectLabels: Forbidden: cannot be added to spec.objects[1].metadata.labels, which a parameter gives as a whole`,
			},
		},
		"a key that occurs twice": {
			spec: `objects: [{` + valid + `, data: {"$${A}": a, "$${A} ": b, "$${B}": c, "$${A}x": d}}, {apiVersion: v1, kind: Secret, metadata: {name: b}, data: {"${A}": a}}]`,
			want: []string{`spec.objects[1].data[${A}]: Invalid value: "${A}": no parameter is called A; declare it, or write $${ for a literal ${`},
		},
		"more than 32": {
			spec: `objects: [` + strings.Repeat(`{`+valid+`}, `, 33) + `]`,
			want: []string{`spec.objects: Invalid value: the list must be at most 32 objects, and is 33`},
		},
		"nested too deep": {
			spec: `objects: [{` + valid + `, data: ` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}]`,
			want: []string{`spec.objects[0]: Invalid value: the object must be at most 64 levels of lists and objects, and is 65`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := tc.spec
			if !strings.HasPrefix(spec, "{") {
				spec = "{" + spec + "}"
			}
			encoded, err := yaml.YAMLToJSON([]byte(spec))
			if err != nil {
				t.Fatal(err)
			}
			_, err = template.Compile(parse(t, `{"virtualMachine": {}, `+string(encoded[1:])))
			if diff := cmp.Diff(tc.want, causes(t, err)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjectsThatAreNotRendered(t *testing.T) {
	const parameters = `parameters: [{name: A}, {name: B}, {name: S, sensitive: true}]
virtualMachine: {}
`
	for name, tc := range map[string]struct {
		objects string
		values  map[string]string
		want    []string
	}{
		"names that become the same": {
			objects: `[{apiVersion: v1, kind: Secret, metadata: {name: "x${A}"}}, {apiVersion: v1, kind: Service, metadata: {name: "x${B}"}}, {apiVersion: v1, kind: Secret, metadata: {name: "x${B}"}}]`,
			values:  map[string]string{"A": "1", "B": "1"},
			want:    []string{`spec.objects[2]: Duplicate value: "Secret x1": has the kind and the name of spec.objects[0]`},
		},
		"sensitive names that become the same": {
			objects: `[{apiVersion: v1, kind: Secret, metadata: {name: "x${A}"}}, {apiVersion: v1, kind: Secret, metadata: {name: "x${S}"}}]`,
			values:  map[string]string{"A": "1", "S": "1"},
			want:    []string{`spec.objects[1]: Duplicate value: has the kind and the name of spec.objects[0]`},
		},
		"a name that is empty": {
			objects: `[{apiVersion: v1, kind: Secret, metadata: {name: "${A}${B}"}}]`,
			want:    []string{`spec.objects[0].metadata.name: Required value: ${A}${B} is empty`},
		},
		"keys that become the same": {
			objects: `[{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {"${A}": a, "${B}": b}}]`,
			values:  map[string]string{"A": "1", "B": "1"},
			want:    []string{`spec.objects[0].data: Duplicate value: "1": the keys ${A} and ${B} become the same`},
		},
		"a value that is nested too deep": {
			objects: `[{apiVersion: v1, kind: Secret, metadata: {name: a}, data: "${{A}}"}]`,
			values:  map[string]string{"A": strings.Repeat("[", 64) + strings.Repeat("]", 64)},
			want:    []string{`spec.objects[0].data: Invalid value: the value of A, with what is around it, must be at most 64 levels of lists and objects, and is 65`},
		},
		"objects that are too large together": {
			objects: `[{apiVersion: v1, kind: Secret, metadata: {name: a}, data: "${A}"}, {apiVersion: v1, kind: Secret, metadata: {name: b}, data: "${A}"}]`,
			values:  map[string]string{"A": strings.Repeat("x", template.MaxRenderedBytes/2)},
			want:    []string{`spec.objects: Invalid value: the list of the rendered objects must be at most 1048576 bytes of JSON, and is 1048717`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(parse(t, parameters+"objects: "+tc.objects), tc.values)
			if diff := cmp.Diff(tc.want, causes(t, err)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjectsHaveTheNamespaceThatAParameterGivesTheVirtualMachine(t *testing.T) {
	rendered, err := render(parse(t, `
parameters: [{name: NS, value: shop}]
virtualMachine: {metadata: {name: a, namespace: "${NS}"}}
objects:
- {apiVersion: v1, kind: Secret, metadata: {name: a}}
- {apiVersion: v1, kind: Secret, metadata: {name: b, namespace: "${NS}"}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"shop"}},{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b","namespace":"shop"}}]`
	if diff := cmp.Diff(want, string(rendered.Objects())); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestObjectsCountForTheSizeOfATemplate(t *testing.T) {
	object := raw(`{}`)
	for i := range 2 {
		secret := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s%d"},"data":{"a":%q}}`, i, strings.Repeat("x", template.MaxTemplateBytes/2))
		object.Spec.Objects = append(object.Spec.Objects, runtime.RawExtension{Raw: []byte(secret)})
	}
	_, err := template.Compile(object)
	if got := causes(t, err); len(got) != 1 || !strings.HasPrefix(got[0], "spec: Invalid value: the template must be at most 524288 bytes of JSON, and is 5") {
		t.Errorf("got %v", got)
	}
}

func TestObjectLabelsAreAddedToSelectorsOfTheVirtualMachine(t *testing.T) {
	const (
		service = `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: %s}}`
		network = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: %s}}`
	)
	for name, tc := range map[string]struct{ object, selector, want string }{
		"a label of the VirtualMachine":                      {object: service, selector: `{app: shop}`, want: `{"app":"shop","team":"blue"}`},
		"an object label":                                    {object: service, selector: `{team: "${TEAM}"}`, want: `{"team":"blue"}`},
		"the name of the VirtualMachine":                     {object: service, selector: `{vm.kubevirt.io/name: "${NAME}"}`, want: `{"team":"blue","vm.kubevirt.io/name":"web"}`},
		"the name of another VirtualMachine":                 {object: service, selector: `{vm.kubevirt.io/name: "${NAME}-db"}`, want: `{"vm.kubevirt.io/name":"web-db"}`},
		"another value":                                      {object: service, selector: `{app: db}`, want: `{"app":"db"}`},
		"another value of an object label":                   {object: service, selector: `{team: red}`, want: `{"team":"red"}`},
		"one label of the VirtualMachine and another":        {object: service, selector: `{app: shop, tier: back}`, want: `{"app":"shop","tier":"back"}`},
		"a key by a parameter":                               {object: service, selector: `{"${KEY}": shop}`, want: `{"app":"shop"}`},
		"nothing":                                            {object: service, selector: `{}`, want: `{}`},
		"a NetworkPolicy for the VirtualMachine":             {object: network, selector: `{matchLabels: {app: shop}}`, want: `{"matchLabels":{"app":"shop","team":"blue"}}`},
		"a NetworkPolicy for all pods":                       {object: network, selector: `{}`, want: `{}`},
		"a NetworkPolicy by expressions":                     {object: network, selector: `{matchExpressions: []}`, want: `{"matchExpressions":[]}`},
		"a whole selector by a parameter":                    {object: service, selector: `"${{SELECTOR}}"`, want: `{"app":"shop"}`},
		"a kind whose selector is not one of pods by labels": {object: `{apiVersion: example.com/v1, kind: Service, metadata: {name: a}, spec: {selector: %s}}`, selector: `{app: shop}`, want: `{"app":"shop"}`},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(parse(t, `{parameters: [{name: NAME, value: web}, {name: TEAM, value: blue}, {name: KEY, value: app}, {name: SELECTOR, value: '{"app":"shop"}'}], objectLabels: {team: "${TEAM}"},
				virtualMachine: {metadata: {name: "${NAME}"}, spec: {template: {metadata: {labels: {app: shop}}}}}, objects: [`+fmt.Sprintf(tc.object, tc.selector)+`]}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(rendered.Objects()); !strings.Contains(got, `elector":`+tc.want+`}}]`) {
				t.Errorf("got %s, want the selector %s", got, tc.want)
			}
		})
	}
}
