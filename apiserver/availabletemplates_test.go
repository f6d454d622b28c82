package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/apiserver/body"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
)

// fakeApprovals select every namespace.
type fakeApprovals struct {
	approvals []*approval.Approval
	unsynced  bool
	// missing is a namespace that does not exist.
	missing string
}

func (f fakeApprovals) Synced() bool                             { return !f.unsynced }
func (f fakeApprovals) ApprovalsFor(string) []*approval.Approval { return f.approvals }

func (f fakeApprovals) Namespace(_ context.Context, name string) (labels, annotations map[string]string, found bool) {
	return nil, nil, name != f.missing
}

// approvalOf compiles an approval of template shop/box with these parameters.
func approvalOf(t *testing.T, name, parameters string) *approval.Approval {
	t.Helper()
	object := &v1alpha1.TemplateApproval{}
	text := "{namespaces: [team-a], templates: [{namespace: shop, name: box}], parameters: [" + parameters + "]}"
	if err := yaml.UnmarshalStrict([]byte(text), &object.Spec); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	object.Name = name
	compiled, err := approval.Compile(object)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// templateOf compiles template shop/box with these parameters.
func templateOf(t *testing.T, parameters string) *templatecache.Template {
	t.Helper()
	object := &templatev1beta1.VirtualMachineTemplate{}
	text := "{metadata: {name: box, namespace: shop}, spec: {parameters: [" + parameters + "], virtualMachine: {metadata: {generateName: x-}, spec: {template: {spec: {}}}}}}"
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	compiled := templatecache.Compile(object)
	if _, err := compiled.Compiled(); err != nil {
		t.Fatal(err)
	}
	return compiled
}

// described returns a template with its schema, for user ada in namespace team-a.
func described(t *templatecache.Template, approvals ...*approval.Approval) (v1beta1.AvailableTemplate, error) {
	a := &availability{target: "team-a", user: authenticationv1.UserInfo{Username: "ada"}, approvals: approvals}
	one := a.describe(t)
	return one, addSchema(&one)
}

// TestSchemasPermitWhatIsAllowed compares the schema with the template and its approvals, for values in each form.
func TestSchemasPermitWhatIsAllowed(t *testing.T) {
	values := []string{
		`""`, `"a"`, `"A"`, `"b"`, `"c"`, `"ab"`, `"abc"`, `"a b"`, `"a\tb"`, `"a\nb"`, `"a\u2028b"`, `"a\u0001"`, `"YQ=="`, `"YQ="`, `"YWJj"`, `"YWJj\n"`, `"é"`, `"true"`, `"1"`, `"10"`,
		`-1`, `0`, `1`, `2`, `7`, `8`, `9`, `10`, `99999999999999999999`, `true`, `false`, `"u1.small"`, `"u1xsmall"`,
	}
	for _, tc := range []struct {
		name, declared string
		approvals      []string
	}{
		{name: "any text", declared: "name: X"},
		{name: "any text in a governed namespace", declared: "name: X", approvals: []string{"name: X, anyValue: true"}},
		{name: "required", declared: "name: X, required: true"},
		{name: "required, with a default", declared: "name: X, required: true, value: a"},
		{name: "many lines", declared: "name: X, multiline: true"},
		{name: "a pattern", declared: "name: X, required: true, pattern: '[a-z]+'"},
		{name: "a pattern that ECMA-262 writes otherwise", declared: "name: X, value: a, pattern: '(?i)[[:alpha:]]'"},
		{name: "a pattern with a dot", declared: `name: X, value: u1.small, pattern: 'u1\.(small|large)'`},
		{name: "two patterns", declared: "name: X, value: ab, pattern: '.*b.*'", approvals: []string{"name: X, pattern: 'a.*'"}},
		{name: "a list", declared: "name: X, value: a, enum: [a, b]"},
		{name: "a list that an approval narrows", declared: "name: X, value: a, enum: [a, b]", approvals: []string{"name: X, allowed: [b, c]"}},
		{name: "a list of an approval", declared: "name: X, value: a", approvals: []string{"name: X, allowed: [a, b]"}},
		{name: "an integer", declared: "name: X, type: int, value: '1'"},
		{name: "an integer with bounds", declared: "name: X, type: int, value: '1', minimum: 1, maximum: 8"},
		{name: "an integer with narrower bounds", declared: "name: X, type: int, value: '1', minimum: 1, maximum: 8", approvals: []string{"name: X, minimum: 0, maximum: 2"}},
		{name: "an integer of a list", declared: "name: X, type: int, value: '1'", approvals: []string{"name: X, allowed: ['1', '8']"}},
		{name: "bounds of a text", declared: "name: X, value: '7'", approvals: []string{"name: X, minimum: 2, maximum: 8"}},
		{name: "a truth", declared: "name: X, type: bool, value: 'true'"},
		{name: "one truth", declared: "name: X, type: bool, value: 'true'", approvals: []string{"name: X, allowed: ['true']"}},
		{name: "base64", declared: "name: X, type: base64, value: YQ=="},
		{name: "a closed one", declared: "name: X, value: a", approvals: []string{""}},
		{name: "a closed integer", declared: "name: X, type: int, value: '8'", approvals: []string{""}},
		{name: "a closed one without a value", declared: "name: X", approvals: []string{""}},
		{name: "a closed one that is generated", declared: "name: X, generate: expression, from: '[a-z]{4}'", approvals: []string{""}},
		{name: "one that is generated", declared: "name: X, generate: expression, from: '[a-z]{3}', pattern: '[a-z]{3}'"},
		{name: "sensitive", declared: "name: X, sensitive: true, required: true"},
		{name: "several approvals", declared: "name: X, value: a", approvals: []string{"name: X, allowed: [a, b]", "", "name: X, pattern: 'ab+'"}},
		{name: "approvals that allow nothing, and one that does", declared: "name: X, value: a, enum: [a, b]", approvals: []string{"name: X, allowed: [c]", "name: X, allowed: [b]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var approvals []*approval.Approval
			for i, parameters := range tc.approvals {
				if parameters != "" {
					parameters = "{" + parameters + "}"
				}
				approvals = append(approvals, approvalOf(t, fmt.Sprint("a", i), parameters))
			}
			stored := templateOf(t, "{"+tc.declared+"}")
			one, err := described(stored, approvals...)
			if err != nil || !one.Allowed {
				t.Fatalf("%+v %v", one, err)
			}
			schema := compileSchema(t, one.Schema.Raw)
			bodies := []string{"{}", `{"X": "a", "Y": "b"}`}
			for _, value := range values {
				bodies = append(bodies, `{"X": `+value+`}`)
			}
			for _, sent := range bodies {
				value, err := jsonschema.UnmarshalJSON(strings.NewReader(sent))
				if err != nil {
					t.Fatal(err)
				}
				problem := schema.Validate(value)
				if want := isAllowed(t, stored, approvals, sent); (problem == nil) != want && !excepted(one, sent) {
					t.Errorf("%s: allowed is %t, and the schema answers %v\n%s", sent, want, problem, one.Schema.Raw)
				}
			}
		})
	}
}

// excepted reports whether the documentation excepts a request: an empty text in place of none, and values that are not written in their type.
func excepted(one v1beta1.AvailableTemplate, sent string) bool {
	if sent == `{"X": ""}` {
		return true
	}
	text := strings.HasPrefix(sent, `{"X": "`)
	return slices.ContainsFunc(one.Variants, func(variant v1beta1.TemplateVariant) bool {
		kind := variant.Parameters[0].Type
		return text == (kind == templatev1beta1.ParameterTypeInt || kind == templatev1beta1.ParameterTypeBool)
	})
}

// isAllowed reports whether the template binds the values and an approval allows them, as on creation.
func isAllowed(t *testing.T, stored *templatecache.Template, approvals []*approval.Approval, sent string) bool {
	t.Helper()
	options, _, err := body.Options([]byte(`{"parameters": ` + sent + `}`))
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := stored.Compiled()
	if err != nil {
		t.Fatal(err)
	}
	binding, err := compiled.Bind(options.Parameters)
	if err != nil {
		return false
	}
	return approval.Evaluate(approvals, approval.Question{
		User: authenticationv1.UserInfo{Username: "ada"}, Template: approval.Template{Namespace: "shop", Name: "box"},
		Values: binding.Values(), Given: options.Parameters, Sensitive: compiled.Sensitive, Declared: compiled,
	}).Allowed
}

func compileSchema(t *testing.T, raw []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("parameters.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("parameters.json")
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return schema
}

func TestTheSchemaOfATemplate(t *testing.T) {
	stored := templateOf(t, `{name: NAME, displayName: Name, description: Name of the machine., required: true, pattern: "[a-z]+"}, {name: CORES, type: int, value: "2"},
		{name: KEY, description: Public key, multiline: true}, {name: PASSWORD, sensitive: true, value: s3cret, enum: [s3cret, other]}, {name: ZONE, value: a}, {name: MADE, generate: expression, from: "[a-z]{4}"}`)
	a := approvalOf(t, "a", `{name: NAME, expression: "value.size() < 9", message: at most 8 letters}, {name: CORES, maximum: 4}, {name: KEY, anyValue: true}, {name: PASSWORD, anyValue: true}`)
	one, err := described(stored, a)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
		`"NAME":{"title":"Name","description":"Name of the machine. At most 8 letters","type":"string","pattern":"^[a-z]+$","minLength":1,"allOf":[{"pattern":"` + control(`\\x0A`) + `"}]},` +
		`"CORES":{"title":"CORES","type":"integer","maximum":4,"default":2},` +
		`"KEY":{"title":"KEY","description":"Public key","type":"string","pattern":"` + control(`\\x0B`) + `"},` +
		`"PASSWORD":{"title":"PASSWORD","description":"Must be one of the values that are listed","type":"string","pattern":"` + control(`\\x0A`) + `","writeOnly":true},` +
		`"ZONE":{"title":"ZONE","type":"string","const":"a","default":"a","readOnly":true}},` +
		`"required":["NAME"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(one.Schema.Raw)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(string(one.Schema.Raw), "s3cret") {
		t.Error("it shows a sensitive value")
	}
	compileSchema(t, one.Schema.Raw)
}

func control(from string) string {
	return `^[^\\x00-\\x08` + from + `-\\x1F\\x7F-\\x9F\u2028\u2029]*$`
}

// TestPermissionChecks counts them: one for each namespace, and one for each template of those of which the user may not use all.
func TestPermissionChecks(t *testing.T) {
	all := map[string]*templatecache.Template{}
	for _, name := range []string{"a/one", "a/two", "b/one", "b/two", "c/one"} {
		object := &templatev1beta1.VirtualMachineTemplate{}
		object.Namespace, object.Name, _ = strings.Cut(name, "/")
		all[name] = templatecache.Compile(object)
	}
	type check struct{ namespace, name string }
	for _, tc := range []struct {
		name   string
		may    []check
		want   string
		checks int
	}{
		{"all of each namespace", []check{{"a", ""}, {"b", ""}, {"c", ""}}, "a.one a.two b.one b.two c.one", 3},
		{"all of one, one of another", []check{{"a", ""}, {"b", "two"}}, "a.one a.two b.two", 6},
		{"none", nil, "", 8},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checks := make(chan check, 100)
			h := &handler{options: Options{
				Templates: fakeTemplates{templates: all}, Approvals: fakeApprovals{},
				Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
					if a.GetVerb() != "use" || a.GetResource() != "virtualmachinetemplates" || a.GetAPIGroup() != "template.kubevirt.io" || a.GetUser().GetName() != "ada" || !a.IsResourceRequest() {
						t.Errorf("%+v", a)
					}
					checks <- check{a.GetNamespace(), a.GetName()}
					if slices.Contains(tc.may, check{a.GetNamespace(), a.GetName()}) {
						return authorizer.DecisionAllow, "", nil
					}
					return authorizer.DecisionNoOpinion, "", nil
				}),
			}}
			found, err := h.available(asAda(t), "team-a", func(*templatecache.Template) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, item := range found.templates {
				got = append(got, availableName(item))
			}
			if strings.Join(got, " ") != tc.want || len(checks) != tc.checks {
				t.Errorf("%v after %d checks", got, len(checks))
			}
		})
	}
}

// TestAvailableTemplatesOverHTTP is about requests and faults; what is in an answer is the subject of the other tests.
func TestAvailableTemplatesOverHTTP(t *testing.T) {
	use := func(a authorizer.Attributes) bool { return a.GetVerb() == "use" }
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	for _, tc := range []struct {
		name, path, accept string
		unsynced, unknown  bool
		broken             bool
		wantCode           int
		want               string
	}{
		{name: "a list", path: "", wantCode: 200, want: `{"kind":"AvailableTemplateList","apiVersion":"subresources.template.kubevirt.io/v1beta1","items":[{"metadata":{"name":"shop.box","namespace":"shop"},`},
		{name: "YAML", path: "", accept: "application/yaml", wantCode: 200, want: "apiVersion: subresources.template.kubevirt.io/v1beta1\nitems:\n- allowed: true\n"},
		{name: "one", path: "/shop.box", wantCode: 200, want: `{"kind":"AvailableTemplate","apiVersion":"subresources.template.kubevirt.io/v1beta1","metadata":{"name":"shop.box",`},
		{name: "the schema of one", path: "/shop.box", wantCode: 200, want: `"schema":{"$schema":"https://json-schema.org/draft/2020-12/schema"`},
		{name: "none of that name", path: "/shop.none", wantCode: 404, want: `availabletemplates.subresources.template.kubevirt.io \"shop.none\" not found`},
		{name: "a table", path: "", accept: table, wantCode: 200, want: `"rows":[{"cells":["shop.box","","Unknown",true,"","NAME*,SIZE,PASSWORD,UNUSED","its readiness is not reported yet"],"object":{"kind":"PartialObjectMetadata"`},
		{name: "a table of one", path: "/shop.box", accept: table, wantCode: 200, want: `"kind":"Table"`},
		{name: "a table without objects", path: "?includeObject=None", accept: table, wantCode: 200, want: `"object":null}]`},
		{name: "a table with whole objects", path: "?includeObject=Object", accept: table, wantCode: 200, want: `"object":{"kind":"AvailableTemplate"`},
		{name: "a table with something else", path: "?includeObject=All", accept: table, wantCode: 400, want: `includeObject must be None, Metadata or Object, not \"All\"`},
		{name: "selected by labels", path: "?labelSelector=os%3Dlinux", wantCode: 200, want: `"items":[]}`},
		{name: "wrong labels", path: "?labelSelector=a%3D%3Db%3D%3Dc", wantCode: 400, want: "found '=='"},
		{name: "selected by name", path: "?fieldSelector=metadata.name%21%3Dshop.box", wantCode: 200, want: `"items":[]}`},
		{name: "selected by another field", path: "?fieldSelector=spec.x%3D1", wantCode: 400, want: "field selector spec.x is not supported: only metadata.name is"},
		{name: "a watch", path: "?watch=1", wantCode: 405, want: "watch is not supported on resources of kind"},
		{name: "templates are not synced", path: "", unsynced: true, wantCode: 503, want: "the caches of templates and approvals are not synced; try again in a moment"},
		{name: "approvals are not synced", path: "/shop.box", unknown: true, wantCode: 503, want: "the caches of templates and approvals are not synced; try again in a moment"},
		{name: "permissions cannot be checked", path: "", broken: true, wantCode: 503, want: "the permission check failed; try again in a moment"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fixture{allow: use, unsynced: tc.unsynced, approvals: fakeApprovals{unsynced: tc.unknown}, broken: tc.broken}
			got := f.do(t, http.MethodGet, base+"availabletemplates"+tc.path, tc.accept, "")
			if got.Code != tc.wantCode || !strings.Contains(got.Body.String(), tc.want) {
				t.Errorf("%d %s", got.Code, got.Body)
			}
		})
	}
	var f fixture
	if got := f.do(t, http.MethodGet, strings.Replace(base, "v1beta1", "v1alpha1", 1)+"availabletemplates", "", ""); got.Code != http.StatusNotFound {
		t.Errorf("v1alpha1: %d %s", got.Code, got.Body)
	}
}

func TestANamespaceThatDoesNotExist(t *testing.T) {
	for _, tc := range []struct {
		name  string
		allow func(authorizer.Attributes) bool
		want  string
	}{
		{name: "for a user who may get namespaces", want: `"message":"namespace \"shop\" does not exist"`, allow: func(a authorizer.Attributes) bool {
			return a.GetVerb() == "get" && a.GetResource() == "namespaces" && a.GetName() == "shop"
		}},
		{name: "for another user", want: `"message":"namespace \"shop\" does not exist, or you may not see it"`, allow: mayUse},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fixture{allow: tc.allow, approvals: fakeApprovals{missing: "shop"}}
			for _, path := range []string{"", "/shop.box"} {
				got := f.do(t, http.MethodGet, base+"availabletemplates"+path, "", "")
				if got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), tc.want) || !strings.Contains(got.Body.String(), `"kind":"namespaces"`) {
					t.Errorf("%d %s", got.Code, got.Body)
				}
			}
		})
	}
}

func TestATemplateThatDoesNotCompileIsNotAllowed(t *testing.T) {
	object := &templatev1beta1.VirtualMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "broken"}}
	object.Status.Conditions = []metav1.Condition{{Type: "Valid", Status: "False"}, {Type: "Ready", Status: "False", Reason: "InvalidConfiguration", Message: "it has no VirtualMachine"}}
	got, err := described(templatecache.Compile(object))
	want := v1beta1.AvailableTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "shop.broken", Namespace: "team-a"},
		Ready:      v1beta1.Readiness{Status: "False", Reason: "InvalidConfiguration", Message: "it has no VirtualMachine"},
		Reasons:    []string{"the template is invalid: its owner finds the reason in its condition Valid"},
	}
	want.TemplateRef.Namespace, want.TemplateRef.Name = "shop", "broken"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := json.Marshal(got); err != nil {
		t.Error(err)
	}
}

// TestRetainedDescriptions lists the same templates in different namespaces, before and after what they depend on has changed.
func TestRetainedDescriptions(t *testing.T) {
	h := &handler{version: versions[0]}
	stored := templateOf(t, "{name: X, value: a}")
	stored.UID, stored.ResourceVersion = "u", "1"
	later := *stored
	later.ResourceVersion = "2"
	list := func(t *testing.T, namespace string, stored *templatecache.Template, approvals ...*approval.Approval) string {
		t.Helper()
		a := &availability{target: namespace, user: authenticationv1.UserInfo{Username: "ada"}, approvals: approvals, templates: []*templatecache.Template{stored}}
		got, err := h.encode(a)
		if err != nil {
			t.Fatal(err)
		}
		one := a.describe(stored)
		if err := addSchema(&one); err != nil {
			t.Fatal(err)
		}
		want := v1beta1.AvailableTemplateList{Items: []v1beta1.AvailableTemplate{one}}
		want.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("AvailableTemplateList"))
		raw, err := json.Marshal(want)
		if err != nil || string(raw) != string(got) {
			t.Errorf("%s\nwant %s (%v)", got, raw, err)
		}
		return string(got)
	}
	for i, tc := range []struct {
		namespace   string
		stored      *templatecache.Template
		approvals   []*approval.Approval
		wantEntries int
	}{
		{"team-a", stored, nil, 1},
		{"team-b", stored, nil, 1},
		{"team-b", stored, []*approval.Approval{approvalOf(t, "a", "{name: X, allowed: [a]}")}, 2},
		{"team-a", &later, nil, 3},
		{"team-a", stored, nil, 3},
	} {
		list(t, tc.namespace, tc.stored, tc.approvals...)
		if len(h.descriptions.entries) != tc.wantEntries {
			t.Errorf("%d: %d descriptions are retained", i, len(h.descriptions.entries))
		}
	}
	huge := *stored
	huge.ResourceVersion = "huge"
	h.descriptions.put(descriptionKey{template: "u", version: "huge"}, make([]byte, maximumEncoded))
	tooMany := &availability{templates: slices.Repeat([]*templatecache.Template{&huge}, maximumList/maximumEncoded)}
	if _, err := h.encode(tooMany); !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "the list would be larger than 64 MiB: select some") {
		t.Errorf("a list beyond the limit: %v", err)
	}
	large := make([]byte, maximumEncoded)
	h.descriptions.put(descriptionKey{template: "large"}, large)
	if len(h.descriptions.entries) != 1 || h.descriptions.size != len(large) {
		t.Errorf("beyond the limit, %d of %d bytes are retained", len(h.descriptions.entries), h.descriptions.size)
	}
}

// TestPermissionChecksAreBounded lists templates page by page, for a user who may use few of them.
func TestPermissionChecksAreBounded(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		namespaces, templates int
		may                   []string
		wantPages             int
	}{
		{name: "one namespace without permission", namespaces: 1, templates: 417, wantPages: 5},
		{name: "one namespace, some templates", namespaces: 1, templates: 417, may: []string{"n000/t000", "n000/t098", "n000/t099", "n000/t416"}, wantPages: 5},
		{name: "one namespace, all templates", namespaces: 1, templates: 417, may: []string{"n000/"}, wantPages: 1},
		{name: "many namespaces without permission", namespaces: 120, templates: 1, wantPages: 3},
		{name: "many namespaces, all templates of some", namespaces: 120, templates: 3, may: []string{"n007/", "n049/", "n050/", "n119/", "n100/t001"}, wantPages: 7},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := map[string]*templatecache.Template{}
			want := map[string]int{}
			for n := range tc.namespaces {
				for i := range tc.templates {
					object := &templatev1beta1.VirtualMachineTemplate{}
					object.Namespace, object.Name = fmt.Sprintf("n%03d", n), fmt.Sprintf("t%03d", i)
					name := object.Namespace + "/" + object.Name
					all[name] = templatecache.Compile(object)
					if slices.Contains(tc.may, name) || slices.Contains(tc.may, object.Namespace+"/") {
						want[object.Namespace+"."+object.Name] = 1
					}
				}
			}
			var checks atomic.Int64
			h := &handler{version: versions[0], options: Options{
				Templates: fakeTemplates{templates: all}, Approvals: fakeApprovals{},
				Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
					checks.Add(1)
					if slices.Contains(tc.may, a.GetNamespace()+"/"+a.GetName()) {
						return authorizer.DecisionAllow, "", nil
					}
					return authorizer.DecisionNoOpinion, "", nil
				}),
			}}
			got, pages, token := map[string]int{}, 0, ""
			for pages == 0 || token != "" {
				checks.Store(0)
				page, err := h.available(asAda(t), "team-a", func(*templatecache.Template) bool { return true }, token)
				if err != nil {
					t.Fatal(err)
				}
				for _, item := range page.templates {
					got[availableName(item)]++
				}
				if made := checks.Load(); made > maximumReviews {
					t.Errorf("page %d took %d checks", pages, made)
				}
				encoded, err := h.encode(page)
				if err != nil {
					t.Fatal(err)
				}
				var list v1beta1.AvailableTemplateList
				if err := json.Unmarshal(encoded, &list); err != nil || list.Continue != page.next {
					t.Errorf("the list has continue %q, want %q (%v)", list.Continue, page.next, err)
				}
				made, err := page.table("None")
				if err != nil {
					t.Fatal(err)
				}
				if table, is := made.body.(*metav1.Table); !is || table.Continue != page.next {
					t.Errorf("the table has another continue than %q", page.next)
				}
				pages, token = pages+1, page.next
				for name := range all {
					if token != "" && strings.Contains(token, name) {
						t.Errorf("the token shows %s", name)
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if pages != tc.wantPages {
				t.Errorf("%d pages, want %d", pages, tc.wantPages)
			}
			_, err := h.available(asAda(t), "team-a", func(*templatecache.Template) bool { return true }, "unknown")
			if !apierrors.IsResourceExpired(err) || err.Error() != "the list has changed since the page before: list again without continue" {
				t.Errorf("a token of another list: %v", err)
			}
		})
	}
}
