package render_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/vmstencil/stencil/internal/delegation"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/webhooks/render"
)

const server = "system:serviceaccount:stencil-system:stencil-apiserver"

var forAda = authenticationv1.UserInfo{Username: server, Extra: map[string]authenticationv1.ExtraValue{
	delegation.KeyUser: {"ada"}, delegation.KeyGroup: {"team-a"},
}}

// serverCreates returns a VM as the server creates it, with the values that it has bound.
func serverCreates(t *testing.T, digest string, more string) string {
	t.Helper()
	bound := delegation.BoundValues{Digest: digest, Values: map[string]string{"NAME": "box-wxyz", "SIZE": "small", "PASSWORD": "generated", "UNUSED": ""}}
	quoted, err := json.Marshal(bound.String())
	if err != nil {
		t.Fatal(err)
	}
	return "metadata:\n  name: box-wxyz\n  annotations:\n" + ref + more + "    delegation.template.kubevirt.io/bound-values: " + string(quoted) + "\n"
}

func delegatedHandler(t *testing.T) (*render.Handler, string) {
	t.Helper()
	s := &fakeTemplates{}
	s.put(t, box, 7)
	compiled, err := s.templates["golden/box"].Compiled()
	if err != nil {
		t.Fatal(err)
	}
	return render.New(render.Options{Templates: s, Permissions: everything, Approvals: governing(), Server: server}), compiled.Digest()
}

func TestTheServerCreatesForAPerson(t *testing.T) {
	h, digest := delegatedHandler(t)
	request := create(t, serverCreates(t, digest, "    template.kubevirt.io/created-by: eve\n    parameter.template.kubevirt.io/PASSWORD: generated\n"))
	request.UserInfo = forAda
	got := apply(t, request, h.Handle(t.Context(), request))
	metadata := got["metadata"].(map[string]any)
	annotations := metadata["annotations"].(map[string]any)
	delete(annotations, "template.kubevirt.io/rendered")
	want := map[string]any{"template.kubevirt.io/template-ref": "golden/box", "template.kubevirt.io/created-by": "ada", "note": "of box-wxyz"}
	if diff := gocmp.Diff(want, annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if raw, _ := json.Marshal(got["spec"]); !strings.Contains(string(raw), "password: generated") {
		t.Errorf("the values that the server has bound were not used: %s", raw)
	}
}

// The approvals evaluate only the user-specified values that the server passes on, and not those that it generated.
func TestClosedParametersOfWhatTheServerCreates(t *testing.T) {
	s := &fakeTemplates{}
	s.put(t, strings.Replace(box, "{name: PASSWORD, ", `{name: PASSWORD, generate: expression, from: "[a-z]{9}", `, 1), 7)
	compiled, err := s.templates["golden/box"].Compiled()
	if err != nil {
		t.Fatal(err)
	}
	team := approve(t, "{namespaces: [team-a], templates: [{namespace: golden, name: box}]}")
	h := render.New(render.Options{Templates: s, Permissions: everything, Approvals: governing(team), Server: server})
	for _, tc := range []struct {
		name, parameters string
		want             string // in the denial; empty if the request is allowed
	}{
		{"what was generated", "", ""},
		{"a name that was given", "    parameter.template.kubevirt.io/NAME: box-wxyz\n", ""},
		{"a password that was given", "    parameter.template.kubevirt.io/PASSWORD: generated\n", "parameters[PASSWORD]: Invalid value: must be left to the template"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := create(t, serverCreates(t, compiled.Digest(), tc.parameters))
			request.UserInfo = forAda
			response := h.Handle(t.Context(), request)
			if response.Allowed != (tc.want == "") || tc.want != "" && !strings.Contains(response.Result.Message, tc.want) {
				t.Errorf("allowed %v: %v", response.Allowed, response.Result)
			}
		})
	}
}

func TestValuesForAnotherVersionOfTheTemplateAreDenied(t *testing.T) {
	h, _ := delegatedHandler(t)
	request := create(t, serverCreates(t, "sha256:0", ""))
	request.UserInfo = forAda
	response := h.Handle(t.Context(), request)
	if response.Allowed || response.Result.Code != http.StatusConflict {
		t.Errorf("%+v", response.Result)
	}
}

func TestNobodyElseSaysForWhomTheyCreate(t *testing.T) {
	h, digest := delegatedHandler(t)
	forged := serverCreates(t, digest, "    template.kubevirt.io/created-by: ada\n")
	for _, tc := range []struct {
		name string
		user authenticationv1.UserInfo
	}{
		{name: "a user", user: authenticationv1.UserInfo{Username: "mallory"}},
		{name: "a user with the server's extra", user: authenticationv1.UserInfo{Username: "mallory", Extra: forAda.Extra}},
		{name: "a service account of the same name elsewhere", user: authenticationv1.UserInfo{Username: "system:serviceaccount:team-a:stencil-apiserver", Extra: forAda.Extra}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := create(t, forged)
			request.UserInfo = tc.user
			raw, _ := json.Marshal(apply(t, request, h.Handle(t.Context(), request)))
			for _, key := range []string{"created-by", "bound-values", "password: generated"} {
				if strings.Contains(string(raw), key) {
					t.Errorf("%s was believed: %s", key, raw)
				}
			}
		})
	}
	t.Run("the server that names nobody is denied", func(t *testing.T) {
		request := create(t, forged)
		request.UserInfo.Username = server
		if response := h.Handle(t.Context(), request); response.Allowed || response.Result.Code != http.StatusForbidden {
			t.Errorf("%+v", response)
		}
	})
}

func TestForWhomAVMWasCreatedStaysOnIt(t *testing.T) {
	h, _ := delegatedHandler(t)
	stored := "metadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/box, template.kubevirt.io/created-by: ada, template.kubevirt.io/rendered: '{}'}}\nspec: {runStrategy: Halted, template: {}}"
	for _, sent := range []string{strings.Replace(stored, ": ada", ": mallory", 1), strings.Replace(stored, "template.kubevirt.io/created-by: ada, ", "", 1)} {
		request := create(t, sent)
		old := create(t, stored)
		request.Operation, request.OldObject = "UPDATE", old.Object
		got := apply(t, request, h.Handle(t.Context(), request))
		if by := got["metadata"].(map[string]any)["annotations"].(map[string]any)["template.kubevirt.io/created-by"]; by != "ada" {
			t.Errorf("%s became %v", sent, by)
		}
	}
}

// The webhook that receives the complete VM evaluates the approvals for a preview.
func TestAPreviewIsRenderedAndNotEvaluated(t *testing.T) {
	for _, tc := range []struct {
		name        string
		extra, dry  bool
		wantAllowed bool
	}{
		{name: "a preview", extra: true, dry: true, wantAllowed: true},
		{name: "what is stored is no preview, whatever it is marked as", extra: true},
		{name: "another dry run is evaluated", dry: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &fakeTemplates{}
			s.put(t, box, 7)
			compiled, err := s.templates["golden/box"].Compiled()
			if err != nil {
				t.Fatal(err)
			}
			h := render.New(render.Options{Templates: s, Permissions: everything, Server: server,
				Approvals: governing(approve(t, "{namespaces: [team-a], templates: [{namespace: golden, name: other}]}"))})
			request := create(t, serverCreates(t, compiled.Digest(), ""))
			request.UserInfo = authenticationv1.UserInfo{Username: server, Extra: map[string]authenticationv1.ExtraValue{delegation.KeyUser: {"ada"}}}
			if tc.extra {
				request.UserInfo.Extra[delegation.KeyPreview] = authenticationv1.ExtraValue{"true"}
			}
			request.DryRun = &tc.dry
			if response := h.Handle(t.Context(), request); response.Allowed != tc.wantAllowed {
				t.Errorf("%+v", response)
			}
		})
	}
}

// The requests are some that stencil-apiserver never sends, but a client with a stolen token might.
func TestTheServerDoesNotUseThePowerOfOthers(t *testing.T) {
	const instead = ": send the VirtualMachine itself, with annotation template.kubevirt.io/template-ref"
	spec := "spec: {runStrategy: Halted, template: {spec: {hostname: mine}}}\n"
	for _, tc := range []struct {
		name, object, user string
		groups             []string
		dry                bool
		want               string
	}{
		{name: "a VM from the template"},
		{name: "a spec", object: spec,
			want: `VirtualMachine.kubevirt.io "box-wxyz" is invalid: spec: Forbidden: the API server for templates sends no spec, the template makes it: send a VirtualMachine with a spec as a user who may create VirtualMachines`},
		{name: "a spec in a dry run", object: spec, dry: true,
			want: `VirtualMachine.kubevirt.io "box-wxyz" is invalid: spec: Forbidden: the API server for templates sends no spec, the template makes it: send a VirtualMachine with a spec as a user who may create VirtualMachines`},
		{name: "an empty spec", object: "spec: {}\n",
			want: `VirtualMachine.kubevirt.io "box-wxyz" is invalid: spec: Forbidden: the API server for templates sends no spec, the template makes it: send a VirtualMachine with a spec as a user who may create VirtualMachines`},
		{name: "an exempt user", user: "system:serviceaccount:kubevirt:kubevirt-controller",
			want: `virtualmachines.kubevirt.io "box-wxyz" is forbidden: the API server for templates creates no VirtualMachines for user "system:serviceaccount:kubevirt:kubevirt-controller", who is exempt from TemplateApprovals` + instead},
		{name: "a service account in the namespace of an exempt user", groups: []string{"system:serviceaccounts:kubevirt"},
			want: `virtualmachines.kubevirt.io "box-wxyz" is forbidden: the API server for templates creates no VirtualMachines for members of group "system:serviceaccounts:kubevirt"` + instead},
		{name: "an exempt user in a dry run", user: "system:serviceaccount:kubevirt:kubevirt-controller", dry: true},
		{name: "a member of system:masters", groups: []string{"system:masters"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &fakeTemplates{}
			s.put(t, box, 7)
			compiled, err := s.templates["golden/box"].Compiled()
			if err != nil {
				t.Fatal(err)
			}
			h := render.New(render.Options{Templates: s, Permissions: everything, Approvals: governing(), Server: server,
				Exempt: exemption.Users{"system:serviceaccount:kubevirt:kubevirt-controller"}})
			request := create(t, serverCreates(t, compiled.Digest(), "")+tc.object)
			user := cmp.Or(tc.user, "ada")
			request.UserInfo = authenticationv1.UserInfo{Username: server, Extra: map[string]authenticationv1.ExtraValue{
				delegation.KeyUser: {user}, delegation.KeyGroup: tc.groups,
			}}
			request.DryRun = &tc.dry
			response, got := h.Handle(t.Context(), request), ""
			if !response.Allowed {
				got = response.Result.Message
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
