package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emicklei/go-restful/v3"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/yaml"

	v1beta1sub "github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/delegation"
	"github.com/vmstencil/stencil/internal/objects"
)

const box = `
metadata: {name: box, namespace: shop, uid: uid, generation: 7}
spec:
  message: ${NAME} is ${SIZE}
  parameters:
  - {name: NAME, required: true}
  - {name: SIZE, value: small}
  - {name: PASSWORD, sensitive: true, pattern: "[a-z]{8,}"}
  - {name: UNUSED}
  virtualMachine:
    metadata: {name: "${NAME}", labels: {size: "${SIZE}"}}
    spec: {runStrategy: Halted, template: {spec: {hostname: "x${PASSWORD}", domain: {devices: {}}}}}
`

// fakeTemplates holds templates as the cache would.
type fakeTemplates struct {
	templates map[string]*templatecache.Template
	unsynced  bool
}

func (s fakeTemplates) Synced() bool { return !s.unsynced }

func (s fakeTemplates) Wait(_ context.Context, namespace, name string, _ time.Duration) *templatecache.Template {
	return s.templates[namespace+"/"+name]
}

func (s fakeTemplates) List() []*templatecache.Template {
	return slices.Collect(maps.Values(s.templates))
}

// recorder is a Creator that records its requests, and returns the failures first.
type recorder struct {
	failures  []error
	user      authenticationv1.UserInfo
	namespace string
	dryRun    []string
	sent      map[string]any
	asked     int
	// decisions are the result of a preview.
	decisions []v1beta1sub.Decision
}

func (r *recorder) Preview(_ context.Context, user authenticationv1.UserInfo, namespace string, vm []byte) ([]v1beta1sub.Decision, error) {
	r.asked++
	if len(r.failures) >= r.asked {
		return nil, r.failures[r.asked-1]
	}
	r.user, r.namespace = user, namespace
	return r.decisions, json.Unmarshal(vm, &r.sent)
}

func (r *recorder) Create(_ context.Context, user authenticationv1.UserInfo, namespace string, vm []byte, dryRun []string) ([]byte, []string, error) {
	r.asked++
	if len(r.failures) >= r.asked {
		return nil, nil, r.failures[r.asked-1]
	}
	r.user, r.namespace, r.dryRun = user, namespace, dryRun
	if err := json.Unmarshal(vm, &r.sent); err != nil {
		return nil, nil, err
	}
	return []byte(`{"kind":"VirtualMachine","stored":true}`), []string{"told by admission"}, nil
}

// warnings records the texts that would become headers.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

type fixture struct {
	creator  *recorder
	allow    func(authorizer.Attributes) bool
	unsynced bool
	warnings warnings
	// template is box if empty.
	template string
	// rules of the template.
	rules string
	// groups of the user, team-a if nil.
	groups []string
	// defaults are nil if they are not filled in.
	defaults  *Defaults
	approvals fakeApprovals
	// resources of the objects that the cluster creates.
	resources []string
	// broken makes permission checks fail.
	broken bool
}

// asAda returns a context with the user ada.
func asAda(t *testing.T, groups ...string) context.Context {
	t.Helper()
	return genericrequest.WithUser(t.Context(), &user.DefaultInfo{Name: "ada", UID: "7", Groups: groups, Extra: map[string][]string{"scope": {"all"}}})
}

func (f *fixture) do(t *testing.T, method, path, accept, sent string) *httptest.ResponseRecorder {
	t.Helper()
	template := f.template
	if template == "" {
		template = box
	}
	var object v1beta1.VirtualMachineTemplate
	if err := yaml.UnmarshalStrict([]byte(template), &object); err != nil {
		t.Fatal(err)
	}
	if f.rules != "" {
		object.Annotations = map[string]string{"validations": f.rules}
	}
	if f.creator == nil {
		f.creator = &recorder{}
	}
	_, codecs, err := Codecs()
	if err != nil {
		t.Fatal(err)
	}
	container := restful.NewContainer()
	for _, version := range versions {
		h := &handler{serializer: codecs, version: version, options: Options{
			Templates: fakeTemplates{templates: map[string]*templatecache.Template{"shop/box": templatecache.Compile(&object)}, unsynced: f.unsynced},
			Creator:   f.creator,
			Approvals: f.approvals, ObjectResources: objects.Resources(f.resources),
			Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if f.broken {
					return authorizer.DecisionNoOpinion, "", errors.New("the API server does not answer")
				}
				if f.allow != nil && f.allow(a) {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			}),
			Suffix:   func() string { return "abcde" },
			Defaults: f.defaults,
		}}
		container.Add(h.service(h.resources()))
	}
	groups := f.groups
	if groups == nil {
		groups = []string{"team-a"}
	}
	ctx := warning.WithWarningRecorder(asAda(t, groups...), &f.warnings)
	request := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(sent))
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	recorded := httptest.NewRecorder()
	container.ServeHTTP(recorded, request)
	return recorded
}

const base = "/apis/subresources.template.kubevirt.io/v1beta1/namespaces/shop/"

func TestProcess(t *testing.T) {
	var f fixture
	got := f.do(t, "POST", base+"virtualmachinetemplates/box/process", "", "parameters: {NAME: web-1, UNUSED: x, PASSWORD: longenough}")
	want := `{"kind":"ProcessedVirtualMachineTemplate","apiVersion":"subresources.template.kubevirt.io/v1beta1","templateRef":{"namespace":"shop","name":"box"},` +
		`"virtualMachine":{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"labels":{"size":"small"},"name":"web-1"},"spec":{"runStrategy":"Halted","template":{"spec":{"domain":{"devices":{}},"hostname":"xlongenough"}}}},"message":"web-1 is small"}`
	if got.Code != http.StatusOK || got.Body.String() != want {
		t.Errorf("%d\n%s\nwant\n%s", got.Code, got.Body, want)
	}
	if diff := cmp.Diff(warnings{"parameter UNUSED has no effect: the template declares it and never refers to it"}, f.warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if f.creator.asked > 0 {
		t.Error("something was created")
	}
}

// mayUse allows users to use templates, and nothing else.
func mayUse(a authorizer.Attributes) bool {
	return a.GetVerb() == "use" && a.GetAPIGroup() == "template.kubevirt.io" && a.GetResource() == "virtualmachinetemplates" && a.GetNamespace() == "shop" && a.GetName() == "box" && a.GetUser().GetName() == "ada"
}

func TestProcessRefersToATemplateThatTheUserMayUse(t *testing.T) {
	const with = "parameters: {NAME: web-1, SIZE: large, PASSWORD: longenough}"
	want := map[string]string{
		"template.kubevirt.io/template-ref": "shop/box", "parameter.template.kubevirt.io/NAME": "web-1", "parameter.template.kubevirt.io/SIZE": "large", "note": "of web-1",
	}
	annotated := strings.Replace(box, `labels: {size`, `annotations: {note: "of ${NAME}", parameter.template.kubevirt.io/OTHER: x, template.kubevirt.io/rendered: forged}, labels: {size`, 1)
	for name, tc := range map[string]struct {
		template, sent string
		allow          func(authorizer.Attributes) bool
		want           map[string]string
	}{
		"may use it":              {template: annotated, sent: with, allow: mayUse, want: want},
		"in a preview, too":       {template: annotated, sent: with + "\nexplain: true", allow: mayUse, want: want},
		"may not":                 {template: box, sent: with},
		"may only create from it": {template: box, sent: with, allow: func(a authorizer.Attributes) bool { return a.GetVerb() == "create" }},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture{template: tc.template, allow: tc.allow}
			got := f.do(t, "POST", base+"virtualmachinetemplates/box/process", "", tc.sent)
			var answer struct {
				VirtualMachine struct {
					Metadata struct {
						Name                string
						Annotations, Labels map[string]string
					}
					Spec struct{ RunStrategy string }
				}
			}
			if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil || got.Code != http.StatusOK {
				t.Fatalf("%v: %d %s", err, got.Code, got.Body)
			}
			annotations := answer.VirtualMachine.Metadata.Annotations
			if digest := annotations["template.kubevirt.io/processed"]; strings.HasPrefix(digest, "sha256:") != (tc.want != nil) {
				t.Errorf("the digest is %q", digest)
			}
			delete(annotations, "template.kubevirt.io/processed")
			if diff := cmp.Diff(tc.want, annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if answer.VirtualMachine.Metadata.Name != "web-1" || answer.VirtualMachine.Metadata.Labels["size"] != "large" || answer.VirtualMachine.Spec.RunStrategy != "Halted" {
				t.Errorf("%s", got.Body)
			}
		})
	}
}

func TestProcessOfATemplateWithObjects(t *testing.T) {
	const (
		hostname    = `"x${PASSWORD}"`
		secret      = "  objects:\n  - {apiVersion: v1, kind: Secret, metadata: {name: \"${NAME}-db\"}, stringData: {password: \"${PASSWORD}\"}}\n"
		byCluster   = "the cluster creates the other objects of the template together with the VirtualMachine (Secret ${NAME}-db)"
		byUser      = "the VirtualMachine does not refer to template shop/box, and an approval does not accept it: create its other objects, too (Secret ${NAME}-db), because "
		alternative = "; or let the cluster create all of them with the subresource create, or from a VirtualMachine without spec that refers to the template"
	)
	hidden := strings.Replace(box, hostname, "own", 1) + secret
	generated := strings.Replace(hidden, "sensitive: true,", "sensitive: true, generate: expression, from: '[a-z]{12}',", 1)
	for name, tc := range map[string]struct {
		template, sent, want string
		resources            []string
	}{
		"the VM shows what they contain":               {template: box + secret, sent: "PASSWORD: longenough", want: byCluster},
		"only they have a given secret":                {template: hidden, sent: "PASSWORD: longenough", want: byUser + "only they have the value of PASSWORD" + alternative},
		"only they have a generated secret":            {template: generated, want: byCluster},
		"the message shows a generated secret":         {template: strings.Replace(generated, "is ${SIZE}", "has ${PASSWORD}", 1), want: byUser + "only they have the value of PASSWORD" + alternative},
		"the cluster does not create objects":          {template: box + secret, sent: "PASSWORD: longenough", resources: []string{}, want: byUser + "the cluster creates no objects of kind Secret for a VirtualMachine" + alternative},
		"the cluster creates only those of other kind": {template: box + secret, sent: "PASSWORD: longenough", resources: []string{"services", "secrets.example.com"}, want: byUser + "the cluster creates no objects of kind Secret for a VirtualMachine" + alternative},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture{template: tc.template, allow: mayUse, resources: tc.resources}
			if f.resources == nil {
				f.resources = []string{"secrets"}
			}
			got := f.do(t, "POST", base+"virtualmachinetemplates/box/process", "", "parameters: {NAME: web-1, "+tc.sent+"}")
			if got.Code != http.StatusOK {
				t.Fatalf("%d %s", got.Code, got.Body)
			}
			if diff := cmp.Diff(warnings{tc.want}, f.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			refers := strings.Contains(got.Body.String(), `"template.kubevirt.io/template-ref":"shop/box"`)
			if returned := strings.Contains(got.Body.String(), `"objects":[{`); refers != (tc.want == byCluster) || returned == refers {
				t.Errorf("the VM refers to the template: %v, objects are returned: %v", refers, returned)
			}
		})
	}
}

func TestProcessReturnsTheOtherObjects(t *testing.T) {
	const objects = "  objects:\n  - {apiVersion: v1, kind: Secret, metadata: {name: \"${NAME}-db\"}, stringData: {password: \"${PASSWORD}\"}}\n"
	const want = `"objects":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web-1-db"},"stringData":{"password":"longenough"}}],"message":"web-1 is small"}`
	f := fixture{template: box + objects}
	got := f.do(t, "POST", base+"virtualmachinetemplates/box/process", "", "parameters: {NAME: web-1, PASSWORD: longenough}")
	if got.Code != http.StatusOK || !strings.HasSuffix(got.Body.String(), want) {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	sent := strings.NewReplacer("name: NAME, required: true", "name: NAME, value: web-1", "sensitive: true,", "sensitive: true, value: longenough,").Replace(box + objects)
	got = f.do(t, "POST", base+"processedtemplates", "", "apiVersion: template.kubevirt.io/v1beta1\nkind: VirtualMachineTemplate\n"+sent)
	if got.Code != http.StatusCreated || !strings.HasSuffix(got.Body.String(), want) {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestTheAnswerIsWhatTheClientTakes(t *testing.T) {
	for accept, want := range map[string]string{
		"":                            "application/json",
		"*/*":                         "application/json",
		"application/json, */*":       "application/json",
		"application/yaml":            "application/yaml",
		"application/yaml, */*;q=0.5": "application/yaml",
		"application/json;q=0.2, application/yaml":              "application/yaml",
		"application/vnd.kubernetes.protobuf, application/json": "application/json",
	} {
		var f fixture
		got := f.do(t, "POST", base+"virtualmachinetemplates/box/process", accept, `{"parameters":{"NAME":"web-1","PASSWORD":"longenough"}}`)
		if got.Code != http.StatusOK || got.Header().Get("Content-Type") != want {
			t.Errorf("Accept %q: %d %s, want %s", accept, got.Code, got.Header().Get("Content-Type"), want)
		}
		if want == "application/yaml" && !strings.HasPrefix(got.Body.String(), "apiVersion: ") {
			t.Errorf("this is not YAML: %s", got.Body)
		}
	}
}

func TestDenials(t *testing.T) {
	const process, create = "virtualmachinetemplates/box/process", "virtualmachinetemplates/box/create"
	for _, tc := range []struct {
		name, method, path, body string
		fixture                  fixture
		wantCode                 int
		want                     []string
		wantNot                  string
	}{
		{name: "malformed", path: process, body: "parameters: [", wantCode: 400, want: []string{"line 1, column 1"}},
		{name: "a misspelled field", path: process, body: "parms: {}", wantCode: 400, want: []string{`has no field \"parms\"; did you mean parameters?`}},
		{name: "an unknown parameter", path: process, body: "parameters: {NAM: a}", wantCode: 422, want: []string{"parameters[NAM]", "did you mean NAME?"}},
		{name: "a missing parameter", path: process, body: "", wantCode: 422, want: []string{"parameters[NAME]", `"reason":"Invalid"`}},
		{name: "a value that does not fit is not shown when it is sensitive", path: process, body: "parameters: {NAME: a, PASSWORD: Hunter2}", wantCode: 422, want: []string{"parameters[PASSWORD]"}, wantNot: "Hunter2"},
		{name: "a missing template", path: "virtualmachinetemplates/gone/process", wantCode: 404, want: []string{`virtualmachinetemplates.template.kubevirt.io \"gone\" not found`}},
		{name: "templates that have not been read", path: "virtualmachinetemplates/gone/process", fixture: fixture{unsynced: true}, wantCode: 503},
		{name: "a body that is too large", path: process, body: strings.Repeat(" ", maximumBody+1), wantCode: 413},
		{name: "GET", method: "GET", path: process, wantCode: 405},
		{name: "PUT", method: "PUT", path: create, wantCode: 405},
		{name: "another namespace without a right there", path: create, body: "parameters: {NAME: a, PASSWORD: longenough}\ntargetNamespace: floor", wantCode: 403,
			want: []string{`user \"ada\" may not create VirtualMachines from templates in namespace \"floor\"`, `"field":"targetNamespace"`}},
		{name: "another namespace that can be none", path: create, body: "targetNamespace: ../x", wantCode: 422, want: []string{"targetNamespace"}},
		{name: "what the API server denies comes back as it is", path: create, body: "parameters: {NAME: a, PASSWORD: longenough}",
			fixture:  fixture{creator: &recorder{failures: []error{&apierrors.StatusError{ErrStatus: metav1.Status{Code: 418, Reason: "Teapot", Message: "short and stout", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec.spout"}}}}}}}},
			wantCode: 418, want: []string{`"reason":"Teapot"`, "short and stout", "spec.spout"}},
		{name: "no template is sent", path: "processedtemplates", body: "kind: VirtualMachine", wantCode: 400, want: []string{"kind VirtualMachineTemplate"}},
		{name: "a template with an unknown field is sent", path: "processedtemplates", body: "apiVersion: template.kubevirt.io/v1beta1\nkind: VirtualMachineTemplate\nspec: {parametres: []}", wantCode: 400, want: []string{`unknown field \"spec.parametres\"`}},
		{name: "a template of another namespace is sent", path: "processedtemplates", body: "apiVersion: template.kubevirt.io/v1beta1\nkind: VirtualMachineTemplate\nmetadata: {namespace: other}", wantCode: 400, want: []string{`names namespace \"other\"`}},
		{name: "a template that does not compile is sent", path: "processedtemplates", body: "apiVersion: template.kubevirt.io/v1beta1\nkind: VirtualMachineTemplate\nspec: {virtualMachine: {spec: {running: \"${X}\"}}}", wantCode: 422, want: []string{"spec.virtualMachine.spec.running"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			method := tc.method
			if method == "" {
				method = "POST"
			}
			got := tc.fixture.do(t, method, base+tc.path, "", tc.body)
			if got.Code != tc.wantCode {
				t.Errorf("%d, want %d: %s", got.Code, tc.wantCode, got.Body)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Body.String(), want) {
					t.Errorf("%s does not say %s", got.Body, want)
				}
			}
			if tc.wantNot != "" && strings.Contains(got.Body.String(), tc.wantNot) {
				t.Errorf("%s says %s", got.Body, tc.wantNot)
			}
		})
	}
}

func TestCreateSendsWhatAUserWouldAndWhatItCameTo(t *testing.T) {
	var f fixture
	got := f.do(t, "POST", base+"virtualmachinetemplates/box/create?dryRun=All", "", "parameters: {NAME: web-1, PASSWORD: longenough}")
	if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"virtualMachine":{"kind":"VirtualMachine","stored":true},"message":"web-1 is small"`) {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	annotations := f.creator.sent["metadata"].(map[string]any)["annotations"].(map[string]any)
	bound, err := delegation.ParseBoundValues(annotations["delegation.template.kubevirt.io/bound-values"].(string))
	if err != nil || !strings.HasPrefix(bound.Digest, "sha256:") {
		t.Errorf("%+v, %v", bound, err)
	}
	if diff := cmp.Diff(map[string]string{"NAME": "web-1", "PASSWORD": "longenough", "SIZE": "small", "UNUSED": ""}, bound.Values); diff != "" {
		t.Errorf("bound (-want +got):\n%s", diff)
	}
	delete(annotations, "delegation.template.kubevirt.io/bound-values")
	want := map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{"name": "web-1", "annotations": map[string]any{
		"template.kubevirt.io/template-ref":       "shop/box",
		"parameter.template.kubevirt.io/NAME":     "web-1",
		"parameter.template.kubevirt.io/PASSWORD": "longenough",
	}}}
	if diff := cmp.Diff(want, f.creator.sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	wantPerson := authenticationv1.UserInfo{Username: "ada", UID: "7", Groups: []string{"team-a"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"all"}}}
	if diff := cmp.Diff(wantPerson, f.creator.user); diff != "" {
		t.Errorf("user (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"All"}, f.creator.dryRun); diff != "" || f.creator.namespace != "shop" {
		t.Errorf("namespace %s, dryRun (-want +got):\n%s", f.creator.namespace, diff)
	}
	if diff := cmp.Diff(warnings{"told by admission"}, f.warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestCreateInAnotherNamespaceTakesTheRightThereForAnyTemplate(t *testing.T) {
	f := fixture{allow: func(a authorizer.Attributes) bool {
		return a.GetUser().GetName() == "ada" && a.GetVerb() == "create" && a.GetNamespace() == "floor" && a.GetAPIGroup() == "subresources.template.kubevirt.io" &&
			a.GetResource() == "virtualmachinetemplates" && a.GetSubresource() == "create" && a.GetName() == "" && a.IsResourceRequest()
	}}
	got := f.do(t, "POST", base+"virtualmachinetemplates/box/create", "", "parameters: {NAME: web-1, PASSWORD: longenough}\ntargetNamespace: floor")
	if got.Code != http.StatusOK || f.creator.namespace != "floor" {
		t.Errorf("%d in %q: %s", got.Code, f.creator.namespace, got.Body)
	}
}

func TestATemplateThatChangesMeanwhileIsRenderedAgain(t *testing.T) {
	moved := apierrors.NewConflict(templateResource, "shop/box", errors.New("it changed"))
	// As the validating webhook returns it.
	record := apierrors.NewForbidden(templateResource, "web-1", errors.New("it is not approved"))
	record.ErrStatus.Details.Causes = []metav1.StatusCause{{Field: "metadata.annotations[template.kubevirt.io/rendered]"}}
	f := fixture{creator: &recorder{failures: []error{moved, record}}}
	if got := f.do(t, "POST", base+"virtualmachinetemplates/box/create", "", "parameters: {NAME: web-1, PASSWORD: longenough}"); got.Code != http.StatusOK || f.creator.asked != 3 {
		t.Errorf("%d after %d attempts: %s", got.Code, f.creator.asked, got.Body)
	}
	exists := apierrors.NewAlreadyExists(templateResource, "web-1")
	f = fixture{creator: &recorder{failures: []error{exists, exists}}}
	if got := f.do(t, "POST", base+"virtualmachinetemplates/box/create", "", "parameters: {NAME: web-1, PASSWORD: longenough}"); got.Code != http.StatusConflict || f.creator.asked != 1 {
		t.Errorf("%d after %d attempts: %s", got.Code, f.creator.asked, got.Body)
	}
}

func TestATemplateThatIsSent(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		var f fixture
		got := f.do(t, "POST", base+"processedtemplates", "", "apiVersion: template.kubevirt.io/"+version+"\nkind: VirtualMachineTemplate\n"+strings.Replace(box, "name: NAME, required: true", "name: NAME, value: web-9", 1))
		if got.Code != http.StatusCreated || !strings.Contains(got.Body.String(), `"name":"web-9"`) || !strings.Contains(got.Body.String(), "web-9 is small") {
			t.Errorf("%s: %d %s", version, got.Code, got.Body)
		}
	}
}
