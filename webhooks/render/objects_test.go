package render_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/objects"
	"github.com/vmstencil/stencil/webhooks/render"
)

const (
	pendingAt     = "/metadata/annotations/objects.template.kubevirt.io~1pending"
	annotationsAt = "/spec/template/metadata/annotations"
	recordAt      = "/metadata/annotations/template.kubevirt.io~1rendered"
)

// boxWithObjects is a template with three objects, whose VM does not show the password.
var boxWithObjects = strings.Replace(box, "password: ${PASSWORD}", "none", 1) + `  objects:
  - {apiVersion: v1, kind: Secret, metadata: {name: "${NAME}-db"}, stringData: {password: "${PASSWORD}"}}
  - {apiVersion: v1, kind: Service, metadata: {name: "${NAME}"}, spec: {ports: [{port: 5432}]}}
  - {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: "${NAME}"}, spec: {podSelector: {}}}
`

var sealed = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// mayCreate is a user who may use the template and create these resources in team-a.
func mayCreate(user string, resources ...string) rights {
	r := rights{granted: map[string]bool{"use box": true, "get box": true}}
	for _, each := range resources {
		r.granted[user+" create "+each+" in team-a"] = true
	}
	return r
}

var allObjects = []string{"secrets", "services", "networkpolicies"}

// objectsOf are dependencies for templates with other objects, which permit these resources.
func objectsOf(resources ...string) (*render.Objects, objects.Keys) {
	core, networking := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(core.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(core.WithKind("Service"), meta.RESTScopeNamespace)
	mapper.AddSpecific(networking.WithKind("NetworkPolicy"), networking.WithResource("networkpolicies"), networking.WithResource("networkpolicy"), meta.RESTScopeNamespace)
	mapper.Add(core.WithKind("Namespace"), meta.RESTScopeRoot)
	keys, _ := objects.Keys(nil).Renewed(sealed.Add(-time.Hour), func(string) bool { return false })
	if len(resources) == 0 {
		resources = []string{"secrets", "services", "networkpolicies.networking.k8s.io"}
	}
	return &render.Objects{
		Kinds: objects.NewKinds(mapper, resources, []string{"secrets"}), Keys: func() objects.Keys { return keys }, Now: func() time.Time { return sealed },
		Try:            func(context.Context, schema.GroupVersionResource, string, []byte) error { return nil },
		VirtualMachine: func(context.Context, string, string) (map[string]any, error) { return nil, nil },
	}, keys
}

func objectsHandler(t *testing.T, template string, o render.Options) *render.Handler {
	t.Helper()
	s := &fakeTemplates{}
	s.put(t, template, 7)
	o.Templates, o.Approvals = s, governing()
	o.Suffix = func() string { return "abcde" }
	return render.New(o)
}

// opened returns the objects in the annotation of a VM.
func opened(t *testing.T, keys objects.Keys, vm map[string]any) objects.Pending {
	t.Helper()
	text, _ := lookup(vm, pendingAt).(string)
	name, _ := lookup(vm, "/metadata/name").(string)
	record, _ := lookup(vm, recordAt).(string)
	pending, err := objects.Open(keys, objects.Binding{Namespace: "team-a", Name: name, Record: record}, text, sealed.Add(time.Second))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return pending
}

func TestObjectsOfATemplateAreStoredInTheVM(t *testing.T) {
	const hold = "objects.template.kubevirt.io/hold"
	vm := func(annotations, rest string) string {
		return "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box, parameter.template.kubevirt.io/PASSWORD: open-sesame" + annotations + "}}" + rest
	}
	for _, tc := range []struct {
		name, object string
		dryRun       bool
		template     string // a change of boxWithObjects
		wantName     string
		wantHold     any
	}{
		{name: "without a spec", object: vm("", "")},
		{name: "with a null spec", object: vm("", "\nspec: null")},
		{name: "with the user's spec", object: vm("", "\nspec: {runStrategy: Always}")},
		{name: "with the user's metadata of the template", object: vm("", "\nspec: {template: {metadata: {labels: {a: b}}}}")},
		{name: "with the user's annotations", object: vm("", "\nspec: {template: {metadata: {annotations: {a: b}}}}"), wantHold: map[string]any{"a": "b", hold: "objects"}},
		{name: "with empty annotations of the user", object: vm("", "\nspec: {template: {metadata: {annotations: {}}}}")},
		{name: "with null annotations of the user", object: vm("", "\nspec: {template: {metadata: {annotations: null}}}")},
		{name: "with the hold as null", object: vm("", "\nspec: {template: {metadata: {annotations: {objects.template.kubevirt.io/hold: null}}}}")},
		{name: "with a hold of the user", object: vm("", "\nspec: {template: {metadata: {annotations: {objects.template.kubevirt.io/hold: mine}}}}"), wantHold: map[string]any{hold: "mine"}},
		{
			name: "with annotations of the template", object: vm("", ""), template: "metadata: {annotations: {c: d}}",
			wantHold: map[string]any{"c": "d", hold: "objects"},
		},
		{
			name: "with annotations of both", object: vm("", "\nspec: {template: {metadata: {annotations: {a: b}}}}"), template: "metadata: {annotations: {c: d}}",
			wantHold: map[string]any{"a": "b", "c": "d", hold: "objects"},
		},
		{name: "the user's own objects are overwritten", object: vm(", objects.template.kubevirt.io/pending: mine", "")},
		{name: "a name that is generated", object: strings.Replace(vm("", ""), "name: web-1", "generateName: web-", 1), wantName: "web-abcde"},
		{name: "a dry run", object: vm("", ""), dryRun: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dependencies, keys := objectsOf()
			template := boxWithObjects
			if tc.template != "" {
				template = strings.Replace(template, "      template:\n", "      template:\n        "+tc.template+"\n", 1)
			}
			h := objectsHandler(t, template, render.Options{Permissions: mayCreate("ada", allObjects...), Objects: dependencies})
			request := create(t, tc.object)
			request.DryRun = &tc.dryRun
			response := h.Handle(t.Context(), request)
			got := apply(t, request, response)
			if tc.wantName == "" {
				tc.wantName = "web-1"
			}
			if tc.wantHold == nil {
				tc.wantHold = map[string]any{hold: "objects"}
			}
			if diff := cmp.Diff(tc.wantHold, lookup(got, annotationsAt)); diff != "" {
				t.Errorf("annotations of the template (-want +got):\n%s", diff)
			}
			if name := lookup(got, "/metadata/name"); name != tc.wantName {
				t.Errorf("name %v", name)
			}
			var manifests []string
			pending := opened(t, keys, got)
			for _, each := range pending.Objects {
				manifests = append(manifests, fmt.Sprintf("%s %s %s %s", each.Group, each.Version, each.Resource, each.Manifest))
			}
			want := []string{
				` v1 secrets {"apiVersion":"v1","kind":"Secret","metadata":{"labels":{"size":"small"},"name":"web-1-db"},"stringData":{"password":"open-sesame"}}`,
				` v1 services {"apiVersion":"v1","kind":"Service","metadata":{"labels":{"size":"small"},"name":"web-1"},"spec":{"ports":[{"port":5432}]}}`,
				`networking.k8s.io v1 networkpolicies {"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"labels":{"size":"small"},"name":"web-1"},"spec":{"podSelector":{}}}`,
			}
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "web-1", tc.wantName)
			}
			if diff := cmp.Diff(want, manifests); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"open-sesame"}, pending.Sensitive); diff != "" {
				t.Errorf("sensitive values (-want +got):\n%s", diff)
			}
			if !pending.Sealed.Equal(sealed) {
				t.Errorf("encrypted at %s", pending.Sealed)
			}
			if strings.Contains(string(response.Patch), "open-sesame") {
				t.Errorf("the patch shows the password: %s", response.Patch)
			}
			if len(response.Warnings) > 0 {
				t.Errorf("warnings %q", response.Warnings)
			}
		})
	}
}

func TestATemplateWithoutObjects(t *testing.T) {
	dependencies, _ := objectsOf()
	h := objectsHandler(t, box, render.Options{Permissions: everything, Objects: dependencies})
	request := create(t, "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box, objects.template.kubevirt.io/pending: mine}}")
	got := apply(t, request, h.Handle(t.Context(), request))
	if pending := lookup(got, pendingAt); pending != nil {
		t.Errorf("the user's objects are stored: %v", pending)
	}
	if annotations := lookup(got, annotationsAt); annotations != nil {
		t.Errorf("it is held back: %v", annotations)
	}
}

// failing is a permission checker that fails for some users and actions.
type failing struct{ rights }

func (f failing) May(context.Context, authenticationv1.UserInfo, permission.Action) (bool, error) {
	return false, errors.New("connection refused")
}

// unmapped are kinds that cannot be found.
type unmapped struct{}

func (unmapped) Resource(string, string) (schema.GroupVersionResource, error) {
	return schema.GroupVersionResource{}, errors.New("finding the resource: connection refused")
}

func (unmapped) Lent(schema.GroupResource) objects.Denied { return "" }

// taken denies Services.
func taken(_ context.Context, resource schema.GroupVersionResource, _ string, _ []byte) error {
	if resource.Resource == "services" {
		return objects.Denied("it exists")
	}
	return nil
}

// The answer is that of the API server. It is a denial: the VM may be deleted before the API server stores the new one, whose objects the user may
// not create.
func TestTheObjectsOfAVMThatExists(t *testing.T) {
	for name, tc := range map[string]struct {
		permissions render.Permissions
		try         func(context.Context, schema.GroupVersionResource, string, []byte) error
		want        string
	}{
		"its objects exist too":       {permissions: mayCreate("ada", allObjects...), try: taken, want: `virtualmachines.kubevirt.io "web-1" already exists`},
		"the user may not create any": {permissions: mayCreate("ada"), want: `virtualmachines.kubevirt.io "web-1" already exists`},
		"its objects do not exist":    {permissions: mayCreate("ada", allObjects...)},
	} {
		t.Run(name, func(t *testing.T) {
			dependencies, _ := objectsOf()
			if tc.try != nil {
				dependencies.Try = tc.try
			}
			dependencies.VirtualMachine = func(_ context.Context, namespace, name string) (map[string]any, error) {
				if namespace != "team-a" || name != "web-1" {
					t.Errorf("it reads VM %s/%s", namespace, name)
				}
				return map[string]any{}, nil
			}
			h := objectsHandler(t, boxWithObjects, render.Options{Permissions: tc.permissions, Objects: dependencies})
			response := h.Handle(t.Context(), create(t, "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box}}"))
			if tc.want == "" {
				if !response.Allowed {
					t.Errorf("%+v", response.Result)
				}
				return
			}
			if response.Allowed || response.Result.Code != 409 || response.Result.Reason != metav1.StatusReasonAlreadyExists || response.Result.Message != tc.want {
				t.Errorf("allowed %v: %+v", response.Allowed, response.Result)
			}
		})
	}
}

func TestATemplateLendsTheRightToCreateAnObject(t *testing.T) {
	dependencies, keys := objectsOf()
	lends := strings.Replace(boxWithObjects, "{apiVersion: v1, kind: Secret,", "{apiVersion: v1, rights: Template, kind: Secret,", 1)
	h := objectsHandler(t, lends, render.Options{Permissions: mayCreate("ada", "services", "networkpolicies"), Objects: dependencies})
	request := create(t, "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box}}")
	pending := opened(t, keys, apply(t, request, h.Handle(t.Context(), request)))
	if len(pending.Objects) != 3 || strings.Contains(string(pending.Objects[0].Manifest), "rights") {
		t.Errorf("objects %s", pending.Objects)
	}
}

func TestDenialsOfObjects(t *testing.T) {
	const (
		invalid = `VirtualMachine.kubevirt.io "web-1" is invalid: `
		at      = "template[golden/box].spec.objects"
		secret  = at + `[0]: Forbidden: Secret ${NAME}-db: `
		service = at + `[1]: Forbidden: Service ${NAME}: `
		network = at + `[2]: Forbidden: NetworkPolicy ${NAME}: `
		may     = `user "ada" may not create %[1]s in namespace "team-a"; ask for verb "create" on %[1]s there`
		permit  = "templates create no %s in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.resources"
	)
	for _, tc := range []struct {
		name        string
		resources   []string
		permissions render.Permissions
		change      func(*render.Objects)
		template    string
		password    string
		wantCode    int32
		want        string
	}{
		{name: "one permission is missing", permissions: mayCreate("ada", "services", "networkpolicies"), wantCode: 422, want: invalid + secret + fmt.Sprintf(may, "secrets")},
		{
			name: "all permissions are missing", permissions: mayCreate("ada"), wantCode: 422,
			want: invalid + "[" + secret + fmt.Sprintf(may, "secrets") + ", " + service + fmt.Sprintf(may, "services") + ", " + network + fmt.Sprintf(may, "networkpolicies.networking.k8s.io") + "]",
		},
		{name: "another user has them", permissions: mayCreate("eve", allObjects...), resources: []string{"secrets"}, wantCode: 422,
			want: invalid + "[" + secret + fmt.Sprintf(may, "secrets") + ", " + service + fmt.Sprintf(permit, "services") + ", " + network + fmt.Sprintf(permit, "networkpolicies.networking.k8s.io") + "]"},
		{name: "one kind is not permitted", resources: []string{"secrets", "services"}, permissions: mayCreate("ada", allObjects...), wantCode: 422, want: invalid + network + fmt.Sprintf(permit, "networkpolicies.networking.k8s.io")},
		{
			name: "a right that templates may not lend, which the user has", permissions: mayCreate("ada", allObjects...), template: "{apiVersion: v1, kind: Service, metadata: {name: w}, rights: Template}", wantCode: 422,
			want: invalid + at + "[3]: Forbidden: Service w: templates lend no right to create services in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.lentResources",
		},
		{
			name: "a right that is lent for a kind that is not permitted", resources: []string{"services", "networkpolicies.networking.k8s.io"}, permissions: mayCreate("ada", allObjects...), template: "{apiVersion: v1, kind: Secret, metadata: {name: w}, rights: Template}", wantCode: 422,
			want: invalid + "[" + secret + fmt.Sprintf(permit, "secrets") + ", " + at + "[3]: Forbidden: Secret w: " + fmt.Sprintf(permit, "secrets") + "]",
		},
		{
			name: "a kind is not served", permissions: mayCreate("ada", allObjects...), template: "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}", wantCode: 422,
			want: invalid + at + "[3]: Forbidden: Widget w: this cluster does not serve kind Widget in apiVersion example.com/v1",
		},
		{
			name: "a kind without a namespace", permissions: mayCreate("ada", allObjects...), template: "{apiVersion: v1, kind: Namespace, metadata: {name: w}}", wantCode: 422,
			want: invalid + at + "[3]: Forbidden: Namespace w: kind Namespace has no namespace, and a VirtualMachine owns objects of its namespace only",
		},
		{
			name: "the permission cannot be checked", permissions: failing{everything}, wantCode: 503,
			want: "whether the objects of the template can be created could not be checked; try again in a moment: connection refused",
		},
		{
			name: "the kind cannot be found", permissions: mayCreate("ada", allObjects...), change: func(o *render.Objects) { o.Kinds = unmapped{} }, wantCode: 503,
			want: "whether the objects of the template can be created could not be checked; try again in a moment: finding the resource: connection refused",
		},
		{
			name: "an object cannot be created", permissions: mayCreate("ada", allObjects...), change: func(o *render.Objects) { o.Try = taken }, wantCode: 422,
			want: invalid + service + "it exists",
		},
		{
			name: "an object cannot be created, and whether the VM exists cannot be read", permissions: mayCreate("ada", allObjects...), wantCode: 422,
			change: func(o *render.Objects) {
				o.Try = taken
				o.VirtualMachine = func(context.Context, string, string) (map[string]any, error) { return nil, errors.New("x") }
			},
			want: invalid + service + "it exists",
		},
		{
			name: "whether an object can be created cannot be checked", permissions: mayCreate("ada", allObjects...), wantCode: 503,
			change: func(o *render.Objects) {
				o.Try = func(context.Context, schema.GroupVersionResource, string, []byte) error {
					return errors.New("connection refused")
				}
			},
			want: "whether the objects of the template can be created could not be checked; try again in a moment: connection refused",
		},
		{
			name: "there is no key yet", permissions: mayCreate("ada", allObjects...), change: func(o *render.Objects) { o.Keys = func() objects.Keys { return nil } }, wantCode: 503,
			want: "the objects of the template could not be encrypted; try again in a moment: there is no key to encrypt the objects of the template with",
		},
		{
			name: "the objects are too large", permissions: mayCreate("ada", allObjects...), password: strings.Repeat("x", 100<<10), wantCode: 422,
			want: invalid + at + ": Invalid value: the rendered objects have 273974 bytes when they are encrypted, and at most 131072 are possible",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dependencies, _ := objectsOf(tc.resources...)
			if tc.change != nil {
				tc.change(dependencies)
			}
			template := boxWithObjects
			if tc.template != "" {
				template += "  - " + tc.template + "\n"
			}
			if tc.password == "" {
				tc.password = "open-sesame"
			}
			h := objectsHandler(t, template, render.Options{Permissions: tc.permissions, Objects: dependencies})
			object := "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box, parameter.template.kubevirt.io/PASSWORD: " + tc.password + "}}"
			for _, dryRun := range []bool{false, true} {
				request := create(t, object)
				request.DryRun = &dryRun
				response := h.Handle(t.Context(), request)
				if response.Allowed || response.Patch != nil || response.Result.Code != tc.wantCode || response.Result.Message != tc.want {
					t.Errorf("dry run %v: allowed %v\ngot  %+v\nwant %d %s", dryRun, response.Allowed, response.Result, tc.wantCode, tc.want)
				}
			}
		})
	}
}

// A request that is denied for another reason is not checked for objects.
func TestObjectsOfADeniedVMAreNotChecked(t *testing.T) {
	dependencies, _ := objectsOf()
	h := objectsHandler(t, strings.Replace(boxWithObjects, "{name: UNUSED}", "{name: UNUSED, required: true}", 1), render.Options{Permissions: failing{everything}, Objects: dependencies})
	response := h.Handle(t.Context(), create(t, "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box}}"))
	if response.Allowed || response.Result.Code != 422 || !strings.Contains(response.Result.Message, "UNUSED") {
		t.Errorf("%+v", response.Result)
	}
}

// The server itself may create no Secrets, and the user whom it names may.
func TestTheRequestingUserNeedsThePermissionForObjects(t *testing.T) {
	for _, tc := range []struct {
		name, who, want string
	}{
		{name: "the user has it", who: "ada"},
		{name: "only the server has it", who: server, want: `VirtualMachine.kubevirt.io "box-wxyz" is invalid: [` +
			`template[golden/box].spec.objects[0]: Forbidden: Secret ${NAME}-db: user "ada" may not create secrets in namespace "team-a"; ask for verb "create" on secrets there, ` +
			`template[golden/box].spec.objects[1]: Forbidden: Service ${NAME}: user "ada" may not create services in namespace "team-a"; ask for verb "create" on services there, ` +
			`template[golden/box].spec.objects[2]: Forbidden: NetworkPolicy ${NAME}: user "ada" may not create networkpolicies.networking.k8s.io in namespace "team-a"; ask for verb "create" on networkpolicies.networking.k8s.io there]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &fakeTemplates{}
			s.put(t, boxWithObjects, 7)
			compiled, err := s.templates["golden/box"].Compiled()
			if err != nil {
				t.Fatal(err)
			}
			dependencies, keys := objectsOf()
			h := render.New(render.Options{Templates: s, Permissions: mayCreate(tc.who, allObjects...), Approvals: governing(), Server: server, Objects: dependencies})
			request := create(t, serverCreates(t, compiled.Digest(), ""))
			request.UserInfo = forAda
			response := h.Handle(t.Context(), request)
			if tc.want != "" {
				if response.Allowed || response.Result.Message != tc.want {
					t.Errorf("allowed %v\ngot  %v\nwant %s", response.Allowed, response.Result, tc.want)
				}
				return
			}
			pending := opened(t, keys, apply(t, request, response))
			if len(pending.Objects) != 3 || !strings.Contains(string(pending.Objects[0].Manifest), `"password":"generated"`) {
				t.Errorf("the values that the server has bound were not used: %s", pending.Objects[0].Manifest)
			}
		})
	}
}

func TestACopyHasNoObjectsOfItsOwn(t *testing.T) {
	h := render.New(render.Options{Templates: &fakeTemplates{}, Permissions: rights{}, Approvals: governing(), Exempt: exemption.Users{copier}})
	for _, tc := range []struct {
		name, annotations string
		want              any
	}{
		{"the hold was the only annotation", "{objects.template.kubevirt.io/hold: objects}", map[string]any{}},
		{"there are others", "{objects.template.kubevirt.io/hold: objects, a: b}", map[string]any{"a": "b"}},
		{"it was not held back", "{a: b}", map[string]any{"a": "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := create(t, strings.NewReplacer("    parameter", "    objects.template.kubevirt.io/pending: text\n    parameter",
				"template: {spec:", "template: {metadata: {annotations: "+tc.annotations+"}, spec:").Replace(restored))
			request.UserInfo.Username = copier
			got := apply(t, request, h.Handle(t.Context(), request))
			if pending := lookup(got, pendingAt); pending != nil {
				t.Errorf("it waits for %v", pending)
			}
			if diff := cmp.Diff(tc.want, lookup(got, annotationsAt)); diff != "" {
				t.Errorf("annotations of the template (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpdatesOfAVMWithPendingObjects(t *testing.T) {
	const (
		waiting = "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box, template.kubevirt.io/rendered: '{}', objects.template.kubevirt.io/pending: text}}\n" +
			"spec: {runStrategy: Halted, template: {metadata: {annotations: {objects.template.kubevirt.io/hold: objects, a: b}}, spec: {}}}"
		released = "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box, template.kubevirt.io/rendered: '{}'}}\n" +
			"spec: {runStrategy: Halted, template: {metadata: {annotations: {a: b}}, spec: {}}}"
		short = "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box}}"
	)
	h := objectsHandler(t, box, render.Options{Permissions: everything})
	for _, tc := range []struct{ name, sent, stored, want string }{
		{name: "the objects are omitted", sent: strings.Replace(waiting, ", objects.template.kubevirt.io/pending: text", "", 1), stored: waiting, want: waiting},
		{name: "the objects are changed", sent: strings.Replace(waiting, "pending: text", "pending: other", 1), stored: waiting, want: waiting},
		{name: "the objects are emptied", sent: strings.Replace(waiting, "pending: text", `pending: ""`, 1), stored: waiting, want: waiting},
		{name: "a short manifest", sent: short, stored: waiting, want: waiting},
		{name: "a short manifest with a part of the spec", sent: short + "\nspec: {runStrategy: Halted}", stored: waiting, want: waiting},
		{name: "something else changes", sent: strings.Replace(waiting, "Halted", "Always", 1), stored: waiting, want: strings.Replace(waiting, "Halted", "Always", 1)},
		// The admission policy denies it.
		{name: "the hold is omitted", sent: strings.Replace(waiting, "objects.template.kubevirt.io/hold: objects, ", "", 1), stored: waiting, want: strings.Replace(waiting, "objects.template.kubevirt.io/hold: objects, ", "", 1)},
		{name: "both are sent again after the release", sent: waiting, stored: released, want: released},
		{name: "the hold is sent again", sent: strings.Replace(waiting, ", objects.template.kubevirt.io/pending: text", "", 1), stored: released, want: released},
		{name: "the objects are sent again", sent: strings.Replace(released, "'{}'", "'{}', objects.template.kubevirt.io/pending: text", 1), stored: released, want: released},
		{name: "a short manifest with the hold", sent: short + "\nspec: {template: {metadata: {annotations: {objects.template.kubevirt.io/hold: objects}}}}", stored: released,
			want: short + "\nspec: {template: {metadata: {annotations: {}}}}"},
		{name: "a short manifest after the release", sent: short, stored: released, want: released},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request, old := create(t, tc.sent), create(t, tc.stored)
			request.Operation, request.OldObject = "UPDATE", old.Object
			got := apply(t, request, h.Handle(t.Context(), request))
			var want map[string]any
			if err := json.Unmarshal(fixture.JSON(t, tc.want), &want); err != nil {
				t.Fatal(err)
			}
			// The record is another matter.
			for _, object := range []map[string]any{got, want} {
				if annotations, is := lookup(object, "/metadata/annotations").(map[string]any); is {
					delete(annotations, "template.kubevirt.io/rendered")
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
