package validate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/exemption"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/webhooks/validate"
)

type fakeTemplates map[string]*templatecache.Template

func (s fakeTemplates) Wait(_ context.Context, namespace, name string, _ time.Duration) *templatecache.Template {
	return s[namespace+"/"+name]
}

type govern struct {
	approvals []*approval.Approval
	unsynced  bool
}

func (g govern) Synced() bool                             { return !g.unsynced }
func (g govern) ApprovalsFor(string) []*approval.Approval { return g.approvals }

const box = `
spec:
  parameters:
  - {name: NAME}
  - {name: SIZE, value: small}
  - {name: PASSWORD, generate: expression, from: "[a-z]{8}", sensitive: true}
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      instancetype: {name: "${SIZE}"}
      template:
        spec:
          domain: {devices: {}}
          volumes:
          - {name: init, cloudInitNoCloud: {userData: "password: ${PASSWORD}"}}
`

func templates(t *testing.T, changes ...func(*v1beta1.VirtualMachineTemplate)) (fakeTemplates, *templatecache.Template) {
	t.Helper()
	var object v1beta1.VirtualMachineTemplate
	if err := yaml.UnmarshalStrict([]byte(box), &object); err != nil {
		t.Fatal(err)
	}
	object.Namespace, object.Name, object.UID, object.Generation = "golden", "box", "uid", 7
	for _, change := range changes {
		change(&object)
	}
	compiled := templatecache.Compile(&object)
	return fakeTemplates{"golden/box": compiled}, compiled
}

func approve(t *testing.T, spec string) []*approval.Approval {
	t.Helper()
	if spec == "" {
		return nil
	}
	object := v1alpha1.TemplateApproval{}
	object.Name = "team"
	if err := yaml.UnmarshalStrict([]byte(spec), &object.Spec); err != nil {
		t.Fatal(err)
	}
	compiled, err := approval.Compile(&object)
	if err != nil {
		t.Fatal(err)
	}
	return []*approval.Approval{compiled}
}

// stored returns a VM as it is stored after rendering and KubeVirt's defaults; edits modify it.
func stored(t *testing.T, found *templatecache.Template, edits ...func(metadata, spec map[string]any)) []byte {
	t.Helper()
	compiled, err := found.Compiled()
	if err != nil {
		t.Fatal(err)
	}
	vm := fmt.Sprintf(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"web-1","namespace":"team-a",
		"labels":{"vm.kubevirt.io/template":"box","vm.kubevirt.io/template.namespace":"golden","vm.kubevirt.io/template.revision":"7"},
		"annotations":{"template.kubevirt.io/template-ref":"golden/box",
			"template.kubevirt.io/rendered":"{\"namespace\":\"golden\",\"name\":\"box\",\"uid\":\"uid\",\"generation\":7,\"digest\":\"%s\"}"}},
		"spec":{"runStrategy":"Halted","instancetype":{"name":"small"},"template":{"metadata":{"annotations":{"kubevirt.io/pci-topology-version":"v3"}},
			"spec":{"architecture":"amd64","domain":{"devices":{},"machine":{"type":"q35"},"firmware":{"uuid":"u"}},
			"volumes":[{"name":"init","cloudInitNoCloud":{"userData":"password: abcdefgh"}}]}}}}`, compiled.Digest())
	var object map[string]any
	if err := json.Unmarshal([]byte(vm), &object); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(object["metadata"].(map[string]any), object["spec"].(map[string]any))
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func request(operation admissionv1.Operation, object, old []byte) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation,
		Name:      "web-1",
		Namespace: "team-a",
		Resource:  metav1.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"},
		UserInfo:  authenticationv1.UserInfo{Username: "mallory"},
		Object:    runtime.RawExtension{Raw: object},
		OldObject: runtime.RawExtension{Raw: old},
	}}
}

const approved = "{namespaces: [team-a], templates: [{namespace: golden, name: box}], overrides: [spec.runStrategy]%s}"

func podSpec(spec map[string]any) map[string]any {
	return spec["template"].(map[string]any)["spec"].(map[string]any)
}

func TestCreateWithUserDataInASecret(t *testing.T) {
	shelf, found := templates(t, func(t *v1beta1.VirtualMachineTemplate) { t.Spec.Secretize = true })
	for _, tc := range []struct {
		name, source string
		want         []string
	}{
		{name: "the Secret of the machine", source: `{"secretRef": {"name": "web-1-init"}}`},
		{name: "another Secret", source: `{"secretRef": {"name": "mine"}}`, want: []string{`spec.template.spec.volumes[name=init].cloudInitNoCloud.secretRef.name`, `the template has "web-1-init" here, the VM "mine", and the approval lists no override for it`}},
		{name: "user data", source: `{"userData": "#cloud-config"}`, want: []string{`spec.template.spec.volumes[name=init].cloudInitNoCloud.secretRef`, `the template has an object here, the VM nothing, and the approval lists no override for it`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			vm := stored(t, found, func(_, spec map[string]any) {
				var source map[string]any
				if err := json.Unmarshal([]byte(tc.source), &source); err != nil {
					t.Fatal(err)
				}
				podSpec(spec)["volumes"] = []any{map[string]any{"name": "init", "cloudInitNoCloud": source}}
			})
			h := validate.New(validate.Options{Templates: shelf, Approvals: govern{approvals: approve(t, strings.Replace(approved, "%s", "", 1))}})
			check(t, h.Handle(t.Context(), request(admissionv1.Create, vm, nil)), tc.want, "")
		})
	}
}

func TestCreate(t *testing.T) {
	for _, tc := range []struct {
		name     string
		approval string
		edit     func(metadata, spec map[string]any)
		want     []string // texts of the denial; none if the request is allowed
		wantNot  string
	}{
		{name: "what was rendered and defaulted is approved", approval: strings.Replace(approved, "%s", "", 1)},
		{name: "nothing governs the namespace", approval: ""},
		{
			name: "an override is not compared", approval: strings.Replace(approved, "%s", "", 1),
			edit: func(_, spec map[string]any) { spec["runStrategy"] = "Always" },
		},
		{
			name: "another value than the template's is denied where it stands", approval: strings.Replace(approved, "%s", "", 1),
			edit: func(_, spec map[string]any) {
				podSpec(spec)["volumes"] = []any{map[string]any{"name": "init", "containerDisk": map[string]any{"image": "evil"}}}
			},
			want: []string{"spec.template.spec.volumes[name=init]", `approval "team"`},
		},
		{
			name: "a bound value outside the approval is denied", approval: strings.Replace(approved, "%s", ", parameters: [{name: SIZE, allowed: [small]}]", 1),
			edit: func(_, spec map[string]any) { spec["instancetype"] = map[string]any{"name": "huge"} },
			want: []string{"SIZE", "small"},
		},
		{
			name: "a value of a parameter that the approval does not list is denied", approval: strings.Replace(approved, "%s", "", 1),
			edit: func(_, spec map[string]any) { spec["instancetype"] = map[string]any{"name": "huge"} },
			want: []string{`parameters[SIZE]: Invalid value: "huge": must be "small", the default of the template, because the approval does not list this parameter`},
		},
		{
			name: "unless any value is approved", approval: strings.Replace(approved, "%s", ", parameters: [{name: SIZE, anyValue: true}]", 1),
			edit: func(_, spec map[string]any) { spec["instancetype"] = map[string]any{"name": "huge"} },
		},
		{
			name: "what was given for a parameter that the template generates is denied and not shown", approval: strings.Replace(approved, "%s", "", 1),
			edit: func(metadata, spec map[string]any) {
				annotations := metadata["annotations"].(map[string]any)
				annotations["template.kubevirt.io/rendered"] = strings.TrimSuffix(annotations["template.kubevirt.io/rendered"].(string), "}") + `,"sensitive":["PASSWORD"]}`
				podSpec(spec)["volumes"] = []any{map[string]any{"name": "init", "cloudInitNoCloud": map[string]any{"userData": "password: OPEN-SESAME"}}}
			},
			want: []string{"parameters[PASSWORD]: Invalid value: must be left to the template, which generates it"}, wantNot: "OPEN-SESAME",
		},
		{
			name: "a sensitive value that the generator could not have made is denied and not shown", approval: strings.Replace(approved, "%s", "", 1),
			edit: func(_, spec map[string]any) {
				podSpec(spec)["volumes"] = []any{map[string]any{"name": "init", "cloudInitNoCloud": map[string]any{"userData": "password: OPEN-SESAME\nrun: me"}}}
			},
			want: []string{"spec.template.spec.volumes[name=init].cloudInitNoCloud.userData"}, wantNot: "OPEN-SESAME",
		},
		{
			name: "a record of another template is denied, governed or not", approval: "",
			edit: func(metadata, _ map[string]any) {
				metadata["annotations"].(map[string]any)["template.kubevirt.io/rendered"] = `{"namespace":"golden","name":"other"}`
			},
			want: []string{"metadata.annotations[template.kubevirt.io/rendered]", "golden/other"},
		},
		{
			name: "a record of another version is denied", approval: "",
			edit: func(metadata, _ map[string]any) {
				metadata["annotations"].(map[string]any)["template.kubevirt.io/rendered"] = `{"namespace":"golden","name":"box","uid":"uid","generation":7,"digest":"sha256:other"}`
			},
			want: []string{"create the VM again"},
		},
		{
			name: "a label that names another template is denied", approval: "",
			edit: func(metadata, _ map[string]any) {
				metadata["labels"].(map[string]any)["vm.kubevirt.io/template"] = "other"
			},
			want: []string{"label vm.kubevirt.io/template does not name the template"},
		},
		{
			name: "no reference where one is asked for", approval: strings.Replace(approved, "%s", "", 1),
			edit: func(metadata, _ map[string]any) { delete(metadata, "annotations") },
			want: []string{"metadata.annotations[template.kubevirt.io/template-ref]"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fakeTemplates, found := templates(t)
			edit := tc.edit
			if edit == nil {
				edit = func(_, _ map[string]any) {}
			}
			h := validate.New(validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: approve(t, tc.approval)}})
			check(t, h.Handle(t.Context(), request(admissionv1.Create, stored(t, found, edit), nil)), tc.want, tc.wantNot)
		})
	}
}

func check(t *testing.T, response admission.Response, want []string, wantNot string) {
	t.Helper()
	if response.Allowed != (want == nil) {
		t.Fatalf("allowed %v: %v", response.Allowed, response.Result)
	}
	for _, text := range want {
		if !strings.Contains(response.Result.Message, text) {
			t.Errorf("the denial lacks %q: %s", text, response.Result.Message)
		}
	}
	if wantNot != "" && strings.Contains(response.Result.Message, wantNot) {
		t.Errorf("the denial shows %q: %s", wantNot, response.Result.Message)
	}
}

func withoutMachine(spec map[string]any) {
	delete(podSpec(spec)["domain"].(map[string]any), "machine")
}

// claimed returns managedFields of a client that has set a field of the spec.
func claimed(path ...string) []any {
	fields := map[string]any{}
	for _, key := range slices.Backward(path) {
		fields = map[string]any{"f:" + key: fields}
	}
	return []any{map[string]any{"manager": "kubectl", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": fields}}}
}

func TestUpdate(t *testing.T) {
	governed := strings.Replace(approved, "%s", "", 1)
	for _, tc := range []struct {
		name     string
		approval string
		before   func(metadata, spec map[string]any)
		edit     func(metadata, spec map[string]any)
		want     []string
	}{
		{name: "nothing changes", approval: governed},
		{name: "nothing governs the namespace", edit: func(_, spec map[string]any) { podSpec(spec)["hostname"] = "h" }},
		{name: "an override changes", approval: governed, edit: func(_, spec map[string]any) { spec["runStrategy"] = "Always" }},
		{
			name: "another field changes", approval: governed,
			edit: func(_, spec map[string]any) { podSpec(spec)["hostname"] = "h" },
			want: []string{"spec.template.spec.hostname", "these may: spec.runStrategy"},
		},
		{
			name: "a value of a parameter that the approval does not list stays", approval: governed,
			before: func(_, spec map[string]any) { spec["instancetype"] = map[string]any{"name": "huge"} },
			edit: func(_, spec map[string]any) {
				spec["instancetype"] = map[string]any{"name": "huge"}
				spec["runStrategy"] = "Always"
			},
		},
		{
			name: "what such a parameter sets changes", approval: governed,
			edit: func(_, spec map[string]any) { spec["instancetype"] = map[string]any{"name": "huge"} },
			want: []string{"spec.instancetype.name"},
		},
		{
			name: "a label that no override lists changes", approval: governed,
			edit: func(metadata, _ map[string]any) { metadata["labels"].(map[string]any)["owner"] = "mallory" },
			want: []string{"metadata.labels.owner"},
		},
		{
			name: "finalizers and owners are no change", approval: governed,
			edit: func(metadata, _ map[string]any) {
				metadata["finalizers"] = []any{"kubevirt.io/x"}
				metadata["resourceVersion"] = "7"
			},
		},
		{
			name: "a VM that does not match its template any more keeps its overrides", approval: governed,
			before: func(_, spec map[string]any) { podSpec(spec)["volumes"] = []any{} },
			edit: func(_, spec map[string]any) {
				podSpec(spec)["volumes"] = []any{}
				spec["runStrategy"] = "Always"
			},
		},
		{
			name: "what KubeVirt adds to a VM that is older is no change of its user", approval: governed,
			before: func(_, spec map[string]any) { withoutMachine(spec) },
			edit: func(metadata, spec map[string]any) {
				metadata["managedFields"] = claimed("runStrategy")
				spec["runStrategy"] = "Always"
			},
		},
		{
			name: "a user who sets the same field changes it", approval: governed,
			before: func(_, spec map[string]any) { withoutMachine(spec) },
			edit: func(metadata, _ map[string]any) {
				metadata["managedFields"] = claimed("template", "spec", "domain", "machine", "type")
			},
			want: []string{"spec.template.spec.domain.machine.type"},
		},
		{
			name: "what KubeVirt adds to a VM without a template is no change either", approval: governed,
			before: func(metadata, spec map[string]any) {
				delete(metadata, "annotations")
				withoutMachine(spec)
			},
			edit: func(metadata, _ map[string]any) {
				metadata["annotations"] = map[string]any{"note": "a"}
				metadata["managedFields"] = claimed("runStrategy")
			},
		},
		{
			name: "the spec of a VM without a template is frozen", approval: governed,
			before: func(metadata, _ map[string]any) { delete(metadata, "annotations") },
			edit: func(metadata, spec map[string]any) {
				delete(metadata, "annotations")
				spec["runStrategy"] = "Always"
			},
			want: []string{"metadata.annotations[template.kubevirt.io/template-ref]"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fakeTemplates, found := templates(t)
			nothing := func(_, _ map[string]any) {}
			before, edit := tc.before, tc.edit
			if before == nil {
				before = nothing
			}
			if edit == nil {
				edit = nothing
			}
			additions, err := approval.ClusterAdditions()
			if err != nil {
				t.Fatal(err)
			}
			h := validate.New(validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: approve(t, tc.approval)}, Additions: additions})
			check(t, h.Handle(t.Context(), request(admissionv1.Update, stored(t, found, edit), stored(t, found, before))), tc.want, "")
		})
	}
}

func TestWhoIsNotEvaluated(t *testing.T) {
	fakeTemplates, found := templates(t)
	change := func(_, spec map[string]any) { podSpec(spec)["hostname"] = "h" }
	governed := strings.Replace(approved, "%s", "", 1)
	for _, tc := range []struct {
		name    string
		options validate.Options
		edit    func(*admission.Request)
		code    int32
	}{
		{
			name:    "an exempt user of the installation",
			options: validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: approve(t, governed)}, Exempt: exemption.Users{"mallory"}},
		},
		{
			name:    "an exempt subject of the approval",
			options: validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: approve(t, strings.Replace(approved, "%s", ", exemptSubjects: [{kind: User, name: mallory}]", 1))}},
		},
		{
			name:    "a status update",
			options: validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: approve(t, governed)}},
			edit:    func(r *admission.Request) { r.SubResource = "status" },
		},
		{
			name:    "everybody is, before the approvals are read",
			options: validate.Options{Templates: fakeTemplates, Approvals: govern{unsynced: true}},
			code:    503,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := request(admissionv1.Update, stored(t, found, change), stored(t, found))
			if tc.edit != nil {
				tc.edit(&r)
			}
			response := validate.New(tc.options).Handle(t.Context(), r)
			var code int32
			if response.Result != nil && !response.Allowed {
				code = response.Result.Code
			}
			if diff := cmp.Diff(tc.code, code); diff != "" {
				t.Errorf("code (-want +got):\n%s", diff)
			}
		})
	}
}

// council is a fake of the policies.
type council struct {
	decision policyset.Decision
	err      error
	asked    int
}

func (c *council) Evaluate(context.Context, admission.Request, map[string]any) (policyset.Decision, error) {
	c.asked++
	return c.decision, c.err
}

func TestPolicies(t *testing.T) {
	const user, controller, api = "mallory", "system:serviceaccount:kubevirt:kubevirt-controller", "system:serviceaccount:kubevirt:kubevirt-apiserver"
	tooLarge := policyset.Decision{Denials: []policyset.Violation{{Policy: "sizes", Severity: rego.SeverityHigh, Finding: rego.Finding{Message: "too large"}}}}
	unreferenced := func(metadata, _ map[string]any) { delete(metadata, "annotations") }
	always := func(_, spec map[string]any) { spec["runStrategy"] = "Always" }
	for _, tc := range []struct {
		name        string
		operation   admissionv1.Operation
		user        string
		approval    string
		decision    policyset.Decision
		err         error
		object, old func(metadata, spec map[string]any)
		wantAsked   int
		want        []string
	}{
		{name: "a new machine is shown to the policies", operation: admissionv1.Create, user: user, decision: tooLarge, wantAsked: 1, want: []string{"policy sizes (high): too large"}},
		{
			name: "what the approvals and the policies have against it comes back together", operation: admissionv1.Create, user: user, decision: tooLarge,
			approval: "{namespaces: [team-a], templates: [{namespace: golden, name: box}]}", object: always,
			wantAsked: 1, want: []string{"\n- it is not approved in namespace \"team-a\"", "spec.runStrategy", "\n- policy sizes (high): too large"},
		},
		{
			name: "a change too, in one denial", operation: admissionv1.Update, user: user, decision: tooLarge,
			approval: "{namespaces: [team-a], templates: [{namespace: golden, name: box}]}", object: always,
			wantAsked: 1, want: []string{"\n- it is not approved", "\n- policy sizes (high): too large"},
		},
		{name: "nothing governs, nobody objects", operation: admissionv1.Update, user: user, wantAsked: 1},
		{name: "who cannot decide denies", operation: admissionv1.Create, user: user, err: errors.New("the policies have not been compiled yet"), wantAsked: 1, want: []string{"the policies have not been compiled yet; try again in a moment"}},
		{name: "so is one without a reference", operation: admissionv1.Create, user: user, object: unreferenced, decision: tooLarge, wantAsked: 1, want: []string{"too large"}},
		{name: "and a change of one", operation: admissionv1.Update, user: user, object: unreferenced, old: unreferenced, wantAsked: 1},
		{name: "to take the reference away is no way around them", operation: admissionv1.Update, user: user, object: unreferenced, decision: tooLarge, wantAsked: 1, want: []string{"too large"}},
		{name: "what KubeVirt's controllers create is shown to the policies", operation: admissionv1.Create, user: controller, decision: tooLarge, wantAsked: 1, want: []string{"too large"}},
		{name: "and not to the approvals", operation: admissionv1.Create, user: controller, approval: "{namespaces: [team-a], templates: [{namespace: golden, name: other}]}", wantAsked: 1},
		{
			name: "what KubeVirt's API server changes for a user is shown to the policies alone", operation: admissionv1.Update, user: api, decision: tooLarge,
			approval: "{namespaces: [team-a], templates: [{namespace: golden, name: box}]}", object: always,
			wantAsked: 1, want: []string{`virtualmachines.kubevirt.io "web-1" is forbidden: policy sizes (high): too large`},
		},
		{name: "what they change is not shown to anybody", operation: admissionv1.Update, user: controller, decision: tooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fakeTemplates, found := templates(t)
			edit := func(change func(metadata, spec map[string]any)) []byte {
				if change == nil {
					return stored(t, found)
				}
				return stored(t, found, change)
			}
			var old []byte
			if tc.operation == admissionv1.Update {
				old = edit(tc.old)
			}
			asked := request(tc.operation, edit(tc.object), old)
			asked.UserInfo.Username = tc.user
			policies := &council{decision: tc.decision, err: tc.err}
			h := validate.New(validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: approve(t, tc.approval)}, Policies: policies, Exempt: exemption.Users{controller, api}})
			check(t, h.Handle(t.Context(), asked), tc.want, "")
			if policies.asked != tc.wantAsked {
				t.Errorf("asked %d times, want %d", policies.asked, tc.wantAsked)
			}
		})
	}
}
