package validate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	"github.com/vmstencil/stencil/webhooks/validate"
)

// onlySmall resolves only the instance type small, of 1 GiB.
type onlySmall struct{}

func (onlySmall) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	if r.Name != "small" {
		return nil, errors.New("it does not exist")
	}
	return map[string]any{"spec": map[string]any{"cpu": map[string]any{"guest": 1}, "memory": map[string]any{"guest": "1Gi"}}}, nil
}

const atLeast = `[{"name": "memory", "rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "min": 2147483648, "message": "it needs 2 GiB"}]`

// uses permits this one of use, process and create.
type uses string

func (u uses) Allowed(_ context.Context, _ authenticationv1.UserInfo, verb permission.Verb, namespace, name string) (bool, error) {
	if namespace != "golden" || name != "box" {
		return false, errors.New("asked about something else")
	}
	return string(verb) == string(u), nil
}

func (u uses) May(_ context.Context, _ authenticationv1.UserInfo, action permission.Action) (bool, error) {
	if action.String() != "create virtualmachinetemplates/"+action.Subresource+" golden/box" {
		return false, errors.New("asked about something else")
	}
	return action.Subresource == string(u), nil
}

func ruled(t *testing.T, rules string, may uses) (*validate.Handler, *templatecache.Template) {
	t.Helper()
	all, found := templates(t, func(object *v1beta1.VirtualMachineTemplate) {
		object.Annotations = map[string]string{"validations": rules}
	})
	return validate.New(validate.Options{Templates: all, Permissions: may, Approvals: govern{}, Sizes: onlySmall{}}), found
}

func TestRulesOfTheTemplate(t *testing.T) {
	h, found := ruled(t, atLeast, "use")
	vm := stored(t, found)
	// The template has a sensitive parameter, so the message must not contain the value of the VM.
	check(t, h.Handle(t.Context(), request(admissionv1.Create, vm, nil)), []string{"rule memory of template golden/box: it needs 2 GiB at spec.template.spec.domain.memory.guest"}, "1Gi")

	h, found = ruled(t, strings.Replace(atLeast, "}", `, "justWarning": true}`, 1), "use")
	response := h.Handle(t.Context(), request(admissionv1.Create, stored(t, found), nil))
	if !response.Allowed || len(response.Warnings) != 1 || !strings.HasPrefix(response.Warnings[0], "rule memory of template golden/box: it needs 2 GiB") {
		t.Errorf("%+v", response)
	}
}

// A VirtualMachine of a template may be changed by users who may not use the template. They are not shown what is in it.
func TestRulesOfATemplateAreShownToItsUsersOnly(t *testing.T) {
	h, found := ruled(t, atLeast, "")
	vm := stored(t, found)
	const want = "the rules of template golden/box: the VirtualMachine violates one; which one is shown to users of the template only at spec"
	for _, content := range []string{"2 GiB", "memory", "2147483648"} {
		check(t, h.Handle(t.Context(), request(admissionv1.Create, vm, nil)), []string{want}, content)
	}

	h, found = ruled(t, strings.Replace(atLeast, "}", `, "justWarning": true}`, 1), "")
	if response := h.Handle(t.Context(), request(admissionv1.Create, stored(t, found), nil)); !response.Allowed || len(response.Warnings) != 0 {
		t.Errorf("%+v", response)
	}

	// stencil-apiserver shows it to them anyway.
	for _, subresource := range []uses{"process", "create"} {
		h, found := ruled(t, atLeast, subresource)
		check(t, h.Handle(t.Context(), request(admissionv1.Create, stored(t, found), nil)), []string{"rule memory of template golden/box: it needs 2 GiB"}, "")
	}
}

func TestRulesOfAMachineWithoutATemplate(t *testing.T) {
	h := validate.New(validate.Options{Templates: fakeTemplates{}, Approvals: govern{}, Sizes: onlySmall{}})
	machine := func(guest, more string) []byte {
		return []byte(`{"metadata":{"name":"web-1","annotations":{"vm.kubevirt.io/validations":` + quote(atLeast) + more + `}},"spec":{"template":{"spec":{"domain":{"memory":{"guest":"` + guest + `"}}}}}}`)
	}
	const denial = "rule memory of annotation vm.kubevirt.io/validations: it needs 2 GiB (1Gi is less than 2147483648) at spec.template.spec.domain.memory.guest"
	for _, tc := range []struct {
		name    string
		request admission.Request
		want    []string
	}{
		{name: "one that satisfies them", request: request(admissionv1.Create, machine("2Gi", ""), nil)},
		{name: "one that does not", request: request(admissionv1.Create, machine("1Gi", ""), nil), want: []string{denial}},
		{name: "one whose rules are left out", request: request(admissionv1.Create, machine("1Gi", `,"vm.kubevirt.io/skip-validations":"true"`), nil)},
		{name: "a change for the worse", request: request(admissionv1.Update, machine("1Gi", ""), machine("2Gi", "")), want: []string{denial}},
		{name: "what was never satisfied stands in nobody's way", request: request(admissionv1.Update, machine("512Mi", ""), machine("1Gi", ""))},
	} {
		t.Run(tc.name, func(t *testing.T) { check(t, h.Handle(t.Context(), tc.request), tc.want, "") })
	}
}

func TestATemplateThatIsAnotherOneByNowHasNoRulesForTheMachine(t *testing.T) {
	h, found := ruled(t, atLeast, "use")
	old := stored(t, found)
	found.UID = "another"
	now := stored(t, found, func(_, spec map[string]any) { spec["runStrategy"] = "Always" })
	check(t, h.Handle(t.Context(), request(admissionv1.Update, now, old)), nil, "")
}

func quote(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }
