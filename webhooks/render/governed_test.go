package render_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/internal/fixture"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/render"
)

// govern holds the approvals that select every namespace.
type govern struct {
	approvals []*approval.Approval
	unsynced  bool
}

func governing(approvals ...*approval.Approval) govern { return govern{approvals: approvals} }

func (g govern) Synced() bool                             { return !g.unsynced }
func (g govern) ApprovalsFor(string) []*approval.Approval { return g.approvals }

func approve(t *testing.T, spec string) *approval.Approval {
	t.Helper()
	return fixture.Approval(t, "team", spec)
}

func TestCreateInAGovernedNamespace(t *testing.T) {
	const reference = "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box%s}}"
	vm := func(annotations, rest string) string {
		return strings.Replace(reference, "%s", annotations, 1) + rest
	}
	const approved = "{namespaces: [team-a], templates: [{namespace: golden, name: box}]%s}"
	spec := func(rest string) string { return strings.Replace(approved, "%s", rest, 1) }
	for _, tc := range []struct {
		name         string
		approval     string
		object       string
		exempt       []string
		want         []string // texts of the denial; none if the request is allowed
		wantNot      string
		wantWarnings []string
	}{
		{name: "the reference alone is approved", approval: spec(""), object: vm("", "")},
		{
			name: "a field beside the reference is denied by its path", approval: spec(""),
			object: vm("", "\nspec: {template: {spec: {nodeSelector: {a: b}, hostname: h}}}"),
			want:   []string{`it is not approved in namespace "team-a"`, "spec.template.spec.nodeSelector", "spec.template.spec.hostname", `approval "team"`},
		},
		{
			name: "an override may be written", approval: spec(", overrides: [spec.runStrategy, 'metadata.labels.*']"),
			object: vm("", "\nspec: {runStrategy: Always}"),
		},
		{
			name: "a label that no override lists is denied", approval: spec(""),
			object: strings.Replace(vm("", ""), "metadata: {", "metadata: {labels: {team: a}, ", 1),
			want:   []string{"metadata.labels.team"},
		},
		{
			name: "a value outside the approval is denied at its parameter", approval: spec(", parameters: [{name: SIZE, allowed: [small, medium]}]"),
			object: vm(", parameter.template.kubevirt.io/SIZE: huge", ""),
			want:   []string{"SIZE", "small"},
		},
		{
			name: "a sensitive value outside the approval is denied and not shown", approval: spec(", parameters: [{name: PASSWORD, pattern: '[0-9]+'}]"),
			object: vm(", parameter.template.kubevirt.io/PASSWORD: open-sesame", ""),
			want:   []string{"PASSWORD"}, wantNot: "open-sesame",
		},
		{
			name: "a parameter that the approval does not list keeps its default", approval: spec(""),
			object: vm(", parameter.template.kubevirt.io/SIZE: huge", ""),
			want:   []string{`parameters[SIZE]: Invalid value: "huge": must be "small", the default of the template, because the approval does not list this parameter; leave it out, or ask a cluster admin to list it (approval "team")`},
		},
		{name: "which may be given", approval: spec(""), object: vm(", parameter.template.kubevirt.io/SIZE: small", "")},
		{name: "unless any value is approved", approval: spec(", parameters: [{name: SIZE, anyValue: true}]"), object: vm(", parameter.template.kubevirt.io/SIZE: huge", "")},
		{
			name: "one that nothing refers to is no exception", approval: spec(""),
			object: vm(", parameter.template.kubevirt.io/UNUSED: x", ""),
			want:   []string{`parameters[UNUSED]: Invalid value: "x": must be empty as in the template`},
		},
		{
			name: "a sensitive parameter that the approval does not list stays as the template has it, and what was given is not shown", approval: spec(""),
			object: vm(", parameter.template.kubevirt.io/PASSWORD: open-sesame", ""),
			want:   []string{"parameters[PASSWORD]: Invalid value: must be empty as in the template, because the approval does not list this parameter"}, wantNot: "open-sesame",
		},
		{name: "the parameter that the name sets is free, given twice", approval: spec(""), object: vm(", parameter.template.kubevirt.io/NAME: web-1", "")},
		{
			name: "Warn lets a closed parameter pass and says so", approval: spec(", enforcement: Warn"),
			object:       vm(", parameter.template.kubevirt.io/SIZE: huge", ""),
			wantWarnings: []string{`not approved: parameters[SIZE]: Invalid value: "huge": must be "small", the default of the template, because the approval does not list this parameter; leave it out, or ask a cluster admin to list it (approval "team")`},
		},
		{
			name: "another template than the approved one is denied", approval: "{namespaces: [team-a], templates: [{namespace: golden, name: crate}]}",
			object: vm("", ""),
			want:   []string{"metadata.annotations[template.kubevirt.io/template-ref]: it does not approve template golden/box (approval \"team\")"},
		},
		{
			name: "a template whose content is not the pinned one is denied", approval: "{namespaces: [team-a], templates: [{namespace: golden, name: box, digest: 'sha256:" + strings.Repeat("0", 64) + "'}]}",
			object: vm("", ""),
			want:   []string{"sha256:"},
		},
		{
			name: "a user whom the approval does not serve is denied", approval: spec(", subjects: [{kind: User, name: bob}]"),
			object: vm("", ""),
			want:   []string{`does not serve user "ada"`},
		},
		{
			name: "a VM without a template is denied with the templates that may be used", approval: spec(""),
			object: "metadata: {name: web-1}\nspec: {runStrategy: Halted}",
			want:   []string{"name an approved template in annotation template.kubevirt.io/template-ref", "you may use: golden/box"},
		},
		{
			name: "an exempt subject of the approval is not evaluated", approval: spec(", exemptSubjects: [{kind: User, name: ada}]"),
			object: vm("", "\nspec: {template: {spec: {hostname: h}}}"),
		},
		{
			name: "nor is an exempt user of the installation", approval: spec(""), exempt: []string{"ada"},
			object: "metadata: {name: web-1}\nspec: {runStrategy: Halted}",
		},
		{
			name: "Warn lets it pass and says so", approval: spec(", enforcement: Warn"),
			object:       vm("", "\nspec: {template: {spec: {hostname: h}}}"),
			wantWarnings: []string{`not approved: spec.template.spec.hostname: may not be written or changed beside the template; no field may (approval "team")`},
		},
		{
			name: "Audit lets it pass in silence", approval: spec(", enforcement: Audit"),
			object: vm("", "\nspec: {template: {spec: {hostname: h}}}"),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &fakeTemplates{}
			s.put(t, box, 7)
			h := render.New(render.Options{Templates: s, Permissions: everything, Approvals: governing(approve(t, tc.approval)), Exempt: exemption.Users(tc.exempt)})
			response := h.Handle(t.Context(), create(t, tc.object))
			if response.Allowed != (tc.want == nil) {
				t.Fatalf("allowed %v: %v", response.Allowed, response.Result)
			}
			if diff := cmp.Diff(tc.wantWarnings, response.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			for _, want := range tc.want {
				if !strings.Contains(response.Result.Message, want) {
					t.Errorf("the denial lacks %q: %s", want, response.Result.Message)
				}
			}
			if tc.want != nil && (response.Result.Reason != "Forbidden" || response.Patch != nil) {
				t.Errorf("reason %s, patch %s", response.Result.Reason, response.Patch)
			}
			if tc.wantNot != "" && strings.Contains(response.Result.Message, tc.wantNot) {
				t.Errorf("the denial shows %q: %s", tc.wantNot, response.Result.Message)
			}
		})
	}
	t.Run("before the approvals are read nothing is decided", func(t *testing.T) {
		h := render.New(render.Options{Templates: &fakeTemplates{}, Permissions: everything, Approvals: govern{unsynced: true}})
		request := create(t, vm("", ""))
		request.Operation = admissionv1.Create
		if response := h.Handle(t.Context(), request); response.Allowed || response.Result.Code != 503 {
			t.Errorf("allowed %v, %v", response.Allowed, response.Result)
		}
	})
}

// foreseeing denies with the user, the run strategy and the labels of what it evaluates.
type foreseeing struct{}

func (foreseeing) Foresee(_ context.Context, request admission.Request, object map[string]any) policyset.Decision {
	vm, _ := machine.Read(object)
	_, rendered := vm.Annotations["template.kubevirt.io/rendered"]
	message := fmt.Sprintf("%s, %v, rendered %v", request.UserInfo.Username, vm.Spec["runStrategy"], rendered)
	return policyset.Decision{Denials: []policyset.Violation{{Policy: "p", Severity: rego.SeverityHigh, Finding: rego.Finding{Message: message}}}}
}

// A denial by approvals names what policies deny as well, as far as they can evaluate the VM.
func TestADenialHasThoseOfPoliciesToo(t *testing.T) {
	const approved = "{namespaces: [team-a], templates: [{namespace: golden, name: %s}], parameters: [{name: SIZE, allowed: [small, medium]}]}"
	const reference = "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box%s}}\n"
	for _, tc := range []struct {
		name, approves, object string
		want                   []string
		foreseen               string
	}{
		{
			name: "an override and a value", approves: "box", object: fmt.Sprintf(reference, ", parameter.template.kubevirt.io/SIZE: huge") + "spec: {runStrategy: Always}",
			want:     []string{"- it is not approved in namespace \"team-a\": ", "spec.runStrategy: may not be written", "parameters[SIZE]: Invalid value: \"huge\"", "\n- policies have evaluated it before KubeVirt adds its defaults"},
			foreseen: "- policy p (high): ada, Always, rendered true",
		},
		{
			name: "another template is approved", approves: "crate", object: fmt.Sprintf(reference, "") + "spec: {runStrategy: Always}",
			want: []string{"does not approve template golden/box"},
		},
		{
			name: "a complete VM", approves: "box", object: fmt.Sprintf(reference, ", template.kubevirt.io/processed: 'DIGEST'") + "spec: {runStrategy: Manual, template: {spec: {domain: {devices: {}}}}}",
			want:     []string{"it is not approved"},
			foreseen: "- policy p (high): ada, Manual, rendered false",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &fakeTemplates{}
			s.put(t, box, 7)
			compiled, err := s.templates["golden/box"].Compiled()
			if err != nil {
				t.Fatal(err)
			}
			h := render.New(render.Options{Templates: s, Permissions: everything, Approvals: governing(approve(t, fmt.Sprintf(approved, tc.approves))), Policies: foreseeing{}})
			response := h.Handle(t.Context(), create(t, strings.Replace(tc.object, "DIGEST", compiled.Digest(), 1)))
			if response.Allowed || response.Result.Reason != "Forbidden" {
				t.Fatalf("allowed %v: %v", response.Allowed, response.Result)
			}
			for _, want := range append(tc.want, tc.foreseen) {
				if !strings.Contains(response.Result.Message, want) {
					t.Errorf("the denial lacks %q: %s", want, response.Result.Message)
				}
			}
			if tc.foreseen == "" && strings.Contains(response.Result.Message, "policy") {
				t.Errorf("the denial is %s", response.Result.Message)
			}
		})
	}
}

// keyed has a required parameter without a value, and an image that depends on the name of the VM.
const keyed = `
spec:
  parameters:
  - {name: NAME, generate: expression, from: "vm-[a-z]{5}"}
  - {name: KEY, required: true}
  - {name: SIZE, value: small}
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      instancetype: {name: "${SIZE}"}
      template:
        spec:
          domain: {devices: {}}
          volumes:
          - {name: init, cloudInitNoCloud: {userData: "key: ${KEY}"}}
          - {name: root, containerDisk: {image: "registry.example.com/${NAME}"}}
`

func TestCreateFromATemplateWithARequiredParameter(t *testing.T) {
	const unlisted = "parameters[KEY]: Required value: the template has no value for it and the approval does not list it, so no VirtualMachine of this template is approved; " +
		`ask a cluster admin to list the parameter, with the values that are allowed or with anyValue: true (approval "team")`
	const nameless = "metadata: {annotations: {template.kubevirt.io/template-ref: golden/box%s}}"
	for _, tc := range []struct {
		name, parameters, object, annotations string
		want, wantNot                         string
	}{
		{name: "it is denied without a value, for what has to be done first", want: unlisted, wantNot: "annotation"},
		{name: "and with one", annotations: ", parameter.template.kubevirt.io/KEY: k", want: unlisted},
		{name: "another mistake comes with it", annotations: ", parameter.template.kubevirt.io/NOWHERE: k", want: unlisted},
		{name: "where it is listed the value is asked for", parameters: "{name: KEY, anyValue: true}", want: "metadata.annotations[parameter.template.kubevirt.io/KEY]: Required value: the template has no value for it"},
		{name: "and taken", parameters: "{name: KEY, anyValue: true}", annotations: ", parameter.template.kubevirt.io/KEY: k"},
		{
			name: "a name that chooses the image is closed", parameters: "{name: KEY, anyValue: true}", annotations: ", parameter.template.kubevirt.io/KEY: k",
			object: "metadata: {name: rootkit, annotations: {template.kubevirt.io/template-ref: golden/box%s}}",
			want:   `parameters[NAME]: Invalid value: "rootkit": must be left to the template, which generates it, because the approval does not list this parameter`,
		},
		{
			name: "also one that is generated from a prefix", parameters: "{name: KEY, anyValue: true}", annotations: ", parameter.template.kubevirt.io/KEY: k",
			object: "metadata: {generateName: vm-, annotations: {template.kubevirt.io/template-ref: golden/box%s}}",
			want:   `parameters[NAME]: Invalid value: "vm-abcde": must be left to the template, which generates it`,
		},
		{
			name: "unless it is listed", parameters: "{name: KEY, anyValue: true}, {name: NAME, pattern: 'fedora|ubuntu'}", annotations: ", parameter.template.kubevirt.io/KEY: k",
			object: "metadata: {name: fedora, annotations: {template.kubevirt.io/template-ref: golden/box%s}}",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &fakeTemplates{}
			s.put(t, keyed, 7)
			team := approve(t, "{namespaces: [team-a], templates: [{namespace: golden, name: box}], parameters: ["+tc.parameters+"]}")
			h := render.New(render.Options{Templates: s, Permissions: everything, Approvals: governing(team), Suffix: func() string { return "abcde" }})
			if tc.object == "" {
				tc.object = nameless
			}
			response := h.Handle(t.Context(), create(t, strings.Replace(tc.object, "%s", tc.annotations, 1)))
			if response.Allowed != (tc.want == "") {
				t.Fatalf("allowed %v: %v", response.Allowed, response.Result)
			}
			if tc.want != "" && !strings.Contains(response.Result.Message, tc.want) {
				t.Errorf("the denial lacks %q: %s", tc.want, response.Result.Message)
			}
			if tc.wantNot != "" && strings.Contains(response.Result.Message, tc.wantNot) {
				t.Errorf("the denial has %q: %s", tc.wantNot, response.Result.Message)
			}
		})
	}
}

// What an approval lists is known to those who may use it.
func TestADenialNamesTemplatesThatItsUserMayUse(t *testing.T) {
	s := &fakeTemplates{}
	s.put(t, box, 7)
	s.templates["golden/crate"] = templatecache.Compile(fixture.Template(t, "crate", `spec: {virtualMachine: {spec: {template: {spec: {domain: {devices: {}}}}}}}`))
	team := governing(approve(t, "{namespaces: [team-a], templates: [{namespace: golden, name: crate}, {namespace: golden, name: secret}]}"))
	for may, want := range map[bool]string{true: "you may use: golden/crate", false: ""} {
		for what, object := range map[string]string{"no template": "metadata: {name: web-1}\nspec: {runStrategy: Halted}", "another template": "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box}}"} {
			granted := maps.Clone(everything.granted)
			granted["use crate"] = may
			response := render.New(render.Options{Templates: s, Permissions: rights{granted: granted}, Approvals: team}).Handle(t.Context(), create(t, object))
			if response.Allowed || !strings.Contains(response.Result.Message, want) || strings.Contains(response.Result.Message, "secret") || !may && strings.Contains(response.Result.Message, "crate") {
				t.Errorf("%s, may use %v: %v", what, may, response.Result)
			}
		}
	}
}

func TestAllMistakesComeTogether(t *testing.T) {
	const vm = `metadata: {annotations: {template.kubevirt.io/template-ref: golden/box, parameter.template.kubevirt.io/SIZE: huge, parameter.template.kubevirt.io/NOWHERE: k}}
spec: {template: {spec: {nodeSelector: {disk: ssd}}}}`
	s := &fakeTemplates{}
	s.put(t, keyed, 7)
	listed := "{namespaces: [team-a], templates: [{namespace: golden, name: box}], parameters: [{name: KEY, anyValue: true}, {name: SIZE, allowed: [small]}]}"
	h := render.New(render.Options{Templates: s, Permissions: everything, Approvals: governing(approve(t, listed)), Suffix: func() string { return "abcde" }})
	response := h.Handle(t.Context(), create(t, vm))
	if response.Allowed {
		t.Fatal("it is allowed")
	}
	for _, want := range []string{
		`parameters[SIZE]: Invalid value: "huge": must be "small" (approval "team")`,
		"metadata.annotations[parameter.template.kubevirt.io/NOWHERE]: ",
		"metadata.annotations[parameter.template.kubevirt.io/KEY]: Required value",
		"spec.template.spec.nodeSelector.disk: may not be written",
	} {
		if !strings.Contains(response.Result.Message, want) {
			t.Errorf("the denial lacks %q: %s", want, response.Result.Message)
		}
	}
	if n := len(response.Result.Details.Causes); n != 4 {
		t.Errorf("%d causes: %v", n, response.Result.Details.Causes)
	}
}

// An admission policy denies these requests too; the message of the webhook is better.
func TestAChangeOfAMachineWithoutATemplateInAGovernedNamespace(t *testing.T) {
	const before, after = "metadata: {name: web-1}\nspec: {runStrategy: Halted}", "metadata: {name: web-1}\nspec: {runStrategy: Always}"
	const frozen = `metadata.annotations[template.kubevirt.io/template-ref]: the VirtualMachine names no template`
	for _, tc := range []struct {
		name        string
		approvals   govern
		exempt      []string
		want        string
		wantWarning string
	}{
		{name: "no approval covers the namespace", approvals: govern{}},
		{name: "it is denied", approvals: governing(approve(t, "{namespaces: [team-a], templates: [{namespace: golden, name: box}]}")), want: frozen},
		{name: "Warn lets it pass and says so", approvals: governing(approve(t, "{namespaces: [team-a], enforcement: Warn, templates: [{namespace: golden, name: box}]}")), wantWarning: "not approved: " + frozen},
		{name: "until approvals are read the policy decides alone", approvals: govern{unsynced: true}},
		{name: "an exempt user is not evaluated", approvals: governing(approve(t, "{namespaces: [team-a], templates: [{namespace: golden, name: box}]}")), exempt: []string{"ada"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := create(t, after)
			request.Operation, request.OldObject = admissionv1.Update, create(t, before).Object
			response := render.New(render.Options{Templates: &fakeTemplates{}, Permissions: everything, Approvals: tc.approvals, Exempt: exemption.Users(tc.exempt)}).Handle(t.Context(), request)
			if response.Allowed != (tc.want == "") || tc.want != "" && !strings.Contains(response.Result.Message, tc.want) {
				t.Errorf("allowed %v: %v", response.Allowed, response.Result)
			}
			if got := strings.Join(response.Warnings, "\n"); tc.wantWarning == "" && got != "" || !strings.Contains(got, tc.wantWarning) {
				t.Errorf("warnings %q", got)
			}
			if response.Patch != nil {
				t.Errorf("patch %s", response.Patch)
			}
		})
	}
}
