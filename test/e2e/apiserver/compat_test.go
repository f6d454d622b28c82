package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/controlplane"
)

// in converts a YAML body to a form, JSON or YAML, and requests the response in the same form.
func (r request) in(t *testing.T, form string) request {
	t.Helper()
	r.contentType, r.accept = "application/"+strings.ToLower(form), "application/"+strings.ToLower(form)
	if form == "JSON" {
		body, err := yaml.YAMLToJSON([]byte(r.body))
		if err != nil {
			t.Fatal(err)
		}
		r.body = string(body)
	}
	return r
}

// everyForm runs a test in both versions and both forms.
func everyForm(t *testing.T, test func(t *testing.T, version, form string)) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, form := range []string{"JSON", "YAML"} {
			t.Run(version+" "+form, func(t *testing.T) { test(t, version, form) })
		}
	}
}

// asJSON returns the response as JSON.
func (a answer) asJSON(t *testing.T) string {
	t.Helper()
	if a.header.Get("Content-Type") != "application/yaml" {
		return a.body
	}
	body, err := yaml.YAMLToJSON([]byte(a.body))
	if err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return string(body)
}

// TestEveryInput is the table of requests by clients of the published API, in both versions and forms, by users with and without permissions. ada,
// bob and carl may read no template.
func TestEveryInput(t *testing.T) {
	decode(t, creation(t, ada, "box", "parameters: {NAME: web-there}").do(t))
	for _, tc := range []struct {
		name     string
		as       *controlplane.User
		method   string
		template string
		verb     string
		query    string
		// body is YAML; literally is sent as it is, in every form.
		body, literally string
		wantCode        int
		want            []string
		wantNot         string
		wantWarning     string
	}{
		{name: "a template without required parameters takes an empty body", as: bob, template: "crate", literally: " ", wantCode: 200, want: []string{`"generateName":"crate-"`}},
		{name: "and an empty object", as: bob, template: "crate", body: "{}", wantCode: 200, want: []string{`"generateName":"crate-"`, `"kind":"ProcessedVirtualMachineTemplate"`, `"apiVersion":"kubevirt.io/v1"`}},
		{name: "a right of one template", as: carl, verb: "create", query: "?dryRun=All", body: "parameters: {NAME: web-9}", wantCode: 200, want: []string{`"template.kubevirt.io/created-by":"carl"`}},
		{name: "an empty body creates", as: ada, template: "crate", verb: "create", query: "?dryRun=All", literally: " ", wantCode: 200, want: []string{`"name":"crate-`}},
		{name: "a number is kept as it is written", as: bob, literally: "{parameters: {NAME: web-9, NUMBER: 1.10}}", wantCode: 200, want: []string{`"number":"1.10"`}},
		{name: "and so is a truth", as: bob, body: "parameters: {NAME: web-9, NUMBER: true}", wantCode: 200, want: []string{`"number":"true"`}},
		{name: "also what is created", as: ada, verb: "create", query: "?dryRun=All", literally: "{parameters: {NAME: web-9, NUMBER: 1.10}}", wantCode: 200, want: []string{`"number":"1.10"`}},
		{name: "a parameter without effect is warned of", as: bob, body: "parameters: {NAME: web-9, UNUSED: x}", wantCode: 200, wantWarning: "parameter UNUSED has no effect"},
		{name: "when it creates, too", as: ada, verb: "create", query: "?dryRun=All", body: "parameters: {NAME: web-9, UNUSED: x}", wantCode: 200, wantWarning: "parameter UNUSED has no effect"},
		{name: "rules that came with the template are satisfied", as: bob, template: "ruled", body: "{}", wantCode: 200},
		{name: "a rule warns", as: bob, template: "ruled", body: "parameters: {MEMORY: 128Mi}", wantCode: 200, wantWarning: "it is slow"},
		{name: "a rule warns of what is created", as: ada, template: "ruled", verb: "create", query: "?dryRun=All", body: "parameters: {MEMORY: 128Mi}", wantCode: 200, wantWarning: "it is slow"},
		{name: "a rule refuses", as: bob, template: "ruled", body: "parameters: {MEMORY: 64Mi}", wantCode: 422, want: []string{`"field":"spec.virtualMachine.spec.template.spec.domain.memory.guest"`, "too little"}},
		{name: "a rule refuses to create", as: ada, template: "ruled", verb: "create", body: "parameters: {MEMORY: 64Mi}", wantCode: 403, want: []string{"too little", `"field":"spec.template.spec.domain.memory.guest"`}},

		{name: "malformed", as: bob, literally: "parameters:\n  NAME: a: b\n", wantCode: 400, want: []string{"line 2, column 3"}},
		{name: "malformed JSON", as: bob, literally: "{\n\"parameters\": {\"NAME\": }\n", wantCode: 400, want: []string{"line "}},
		{name: "malformed, to create", as: ada, verb: "create", literally: "parameters:\n  NAME: a: b\n", wantCode: 400, want: []string{"line 2, column 3"}},
		{name: "a misspelled field", as: bob, body: `{"params":{}}`, wantCode: 400, want: []string{`no field \"params\"; did you mean parameters?`}},
		{name: "an unknown field", as: bob, body: `{"fieldManager":"me","parameters":{"NAME":"web-9"}}`, wantCode: 200, wantWarning: `unknown field \"fieldManager\"`},
		{name: "the kind that kubernetes-mcp-server sends", as: bob, body: `{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","parameters":{"NAME":"web-9"}}`, wantCode: 200, want: []string{`"name":"web-9"`}},
		{name: "and to create", as: ada, verb: "create", query: "?dryRun=All", body: `{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","parameters":{"NAME":"web-9"}}`, wantCode: 200, want: []string{`"name":"web-9"`}},
		{name: "a dry run that would be none", as: ada, verb: "create", body: `{"kind":"CreateOptions","dryRun":["All"],"parameters":{"NAME":"web-9"}}`, wantCode: 400, want: []string{`?dryRun=All`}},
		{name: "a misspelled field, to create", as: ada, verb: "create", body: `{"params":{}}`, wantCode: 400, want: []string{`no field \"params\"; did you mean parameters?`}},
		{name: "an unknown parameter", as: bob, body: "parameters: {NAME: a, COREZ: 1}", wantCode: 422, want: []string{"parameters[COREZ]", "did you mean CORES?"}},
		{name: "an unknown parameter, to create", as: ada, verb: "create", body: "parameters: {NAME: a, COREZ: 1}", wantCode: 422, want: []string{"parameters[COREZ]", "did you mean CORES?"}},
		{name: "a missing parameter", as: bob, body: "{}", wantCode: 422, want: []string{"parameters[NAME]", `"causes":[`}},
		{name: "a bad value does not show the others", as: bob, body: "parameters: {NAME: a, CORES: many, PASSWORD: hunter2hunter}", wantCode: 422, want: []string{"parameters[CORES]", `"causes":[`}, wantNot: "hunter2"},
		{name: "nor when it creates", as: ada, verb: "create", body: "parameters: {NAME: a, CORES: many, PASSWORD: hunter2hunter}", wantCode: 422, want: []string{"parameters[CORES]", `"causes":[`}, wantNot: "hunter2"},
		{name: "a missing template", as: bob, template: "gone", body: "{}", wantCode: 404, want: []string{"not found"}},
		{name: "a missing template, to create", as: ada, template: "gone", verb: "create", body: "{}", wantCode: 404, want: []string{"not found"}},
		{name: "too much", as: bob, literally: strings.Repeat(" ", 1<<20+2), wantCode: 413},
		{name: "a VM that exists", as: ada, verb: "create", body: "parameters: {NAME: web-there}", wantCode: 409, want: []string{`"reason":"AlreadyExists"`, `virtualmachines.kubevirt.io \"web-there\" already exists`}},
		{name: "a name that can be none", as: ada, verb: "create", body: "parameters: {NAME: Web_4}", wantCode: 422, want: []string{`"field":"metadata.name"`}},
		{name: "another dryRun", as: ada, verb: "create", query: "?dryRun=Some", body: "parameters: {NAME: web-9}", wantCode: 422, want: []string{"Some"}},
		{name: "GET process", method: http.MethodGet, body: "{}", wantCode: 405},
		{name: "PUT process", method: http.MethodPut, body: "{}", wantCode: 405},
		{name: "GET create", method: http.MethodGet, verb: "create", body: "{}", wantCode: 405},
		{name: "PUT create", method: http.MethodPut, verb: "create", body: "{}", wantCode: 405},
		{name: "process without a right", as: dora, body: "{}", wantCode: 403, want: []string{"virtualmachinetemplates/process"}},
		{name: "process by somebody who may create only", as: carl, body: "{}", wantCode: 403, want: []string{"virtualmachinetemplates/process"}},
		{name: "create without a right, for an owner of VirtualMachines too", as: dora, verb: "create", body: "{}", wantCode: 403, want: []string{"virtualmachinetemplates/create"}},
		{name: "create by somebody who may process only", as: bob, verb: "create", body: "{}", wantCode: 403, want: []string{"virtualmachinetemplates/create"}},
		{name: "create from another template than one's own", as: carl, template: "crate", verb: "create", body: "{}", wantCode: 403, want: []string{`\"crate\"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.template == "" {
				tc.template = "box"
			}
			if tc.verb == "" {
				tc.verb = "process"
			}
			everyForm(t, func(t *testing.T, version, form string) {
				sent := request{as: tc.as, method: tc.method, path: subresource(t, version, tc.template, tc.verb) + tc.query, body: tc.body}
				if tc.literally == "" {
					sent = sent.in(t, form)
				} else {
					sent.body, sent.contentType, sent.accept = strings.TrimPrefix(tc.literally, " "), "application/"+strings.ToLower(form), "application/"+strings.ToLower(form)
				}
				got := sent.do(t)
				if got.code != tc.wantCode {
					t.Errorf("%d, want %d: %s", got.code, tc.wantCode, got.body)
				}
				if request := "application/" + strings.ToLower(form); len(tc.want) > 0 && got.header.Get("Content-Type") != request {
					t.Errorf("Content-Type %s, want %s", got.header.Get("Content-Type"), request)
				}
				body := got.asJSON(t)
				for _, want := range tc.want {
					if !strings.Contains(body, want) {
						t.Errorf("%s does not say %s", body, want)
					}
				}
				if tc.wantNot != "" && strings.Contains(body, tc.wantNot) {
					t.Errorf("%s says %s", body, tc.wantNot)
				}
				if tc.wantWarning != "" && (len(got.warnings) != 1 || !strings.Contains(got.warnings[0], tc.wantWarning)) {
					t.Errorf("warnings %q", got.warnings)
				}
			})
		})
	}
	if out := mustKubectl(t, "", "get", "virtualmachines", "--namespace="+shop(t), "-o", "name"); strings.Contains(out, "web-9") || strings.Contains(out, "crate-") {
		t.Errorf("something was stored: %s", out)
	}
	for _, user := range []*controlplane.User{ada, bob, carl} {
		if out := kubectl(t, user, "", "auth", "can-i", "get", "virtualmachinetemplates.template.kubevirt.io/box", "--namespace="+shop(t)); out.Code == 0 {
			t.Errorf("%s may read the template", user.Name)
		}
	}
}
