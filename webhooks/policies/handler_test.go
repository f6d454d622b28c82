package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// engine is a fake that returns the same trial for every policy.
type engine struct {
	trial policycache.Trial
	err   error
	tried int
}

func (e *engine) Try(context.Context, *v1alpha1.VirtualMachinePolicy) (policycache.Trial, error) {
	e.tried++
	return e.trial, e.err
}

func policy(source string, labels map[string]string) runtime.RawExtension {
	return manifest(source, func(p *v1alpha1.VirtualMachinePolicy) { p.Labels = labels })
}

func manifest(source string, change func(*v1alpha1.VirtualMachinePolicy)) runtime.RawExtension {
	p := &v1alpha1.VirtualMachinePolicy{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: v1alpha1.VirtualMachinePolicySpec{Rego: source}}
	change(p)
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: raw}
}

func failedTest(i int) suite.Result {
	return suite.Result{Name: fmt.Sprint("t", i), Failure: "deny:\n  expected a\n  found b"}
}

func request(operation admissionv1.Operation, object, old runtime.RawExtension) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Object: object, OldObject: old}}
}

func many[T any](n int, make func(i int) T) []T {
	var list []T
	for i := range n {
		list = append(list, make(i))
	}
	return list
}

func TestHandle(t *testing.T) {
	create := request(admissionv1.Create, policy("x", nil), runtime.RawExtension{})
	status := create
	status.SubResource = "status"
	problem := rego.Problem{Code: rego.CodeType, Row: 3, Column: 7, Line: "\tinput.objekt", Message: "undefined ref: input.objekt"}
	long := rego.Problem{Row: 1, Column: 1, Line: strings.Repeat("é", 300), Message: "too long"}
	cases := map[string]struct {
		request admission.Request
		engine  engine
		code    int32 // 0 if the request is allowed
		message string
		causes  []metav1.StatusCause
		warns   []string
		untried bool
	}{
		"a good policy": {request: create},
		"one that does not compile is denied with place and line": {
			request: create, engine: engine{trial: policycache.Trial{Problems: []rego.Problem{problem, {Message: "rule deny or warn is missing"}}}},
			code: 422,
			message: "VirtualMachinePolicy \"one\" does not compile:\nspec.rego: 3:7: undefined ref: input.objekt, in: input.objekt\n" +
				"spec.rego: rule deny or warn is missing",
			causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.rego", Message: "3:7: undefined ref: input.objekt, in: input.objekt"},
				{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.rego", Message: "rule deny or warn is missing"},
			},
		},
		"parameters that violate their schema are denied with their path": {
			request: create, engine: engine{trial: policycache.Trial{Problems: []rego.Problem{{Field: "parameters.networks[0]", Message: "must be a string"}, {Field: "spec.tests[0].input.object", Message: "must be a JSON object"}}}},
			code:    422,
			message: "VirtualMachinePolicy \"one\" does not compile:\nspec.parameters.networks[0]: must be a string\nspec.tests[0].input.object: must be a JSON object",
			causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.parameters.networks[0]", Message: "must be a string"},
				{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.tests[0].input.object", Message: "must be a JSON object"},
			},
		},
		"a long line is cut between characters": {
			request: create, engine: engine{trial: policycache.Trial{Problems: []rego.Problem{long}}},
			code: 422, message: "VirtualMachinePolicy \"one\" does not compile:\nspec.rego: 1:1: too long, in: " + strings.Repeat("é", 98) + "…",
		},
		"of many problems the first are told": {
			request: create, engine: engine{trial: policycache.Trial{Problems: many(22, func(int) rego.Problem { return rego.Problem{Message: "p"} })}},
			code: 422, message: "VirtualMachinePolicy \"one\" does not compile:\n" + strings.Repeat("spec.rego: p\n", 20) + "and 2 more problems",
		},
		"failing tests are warnings while another version is active": {
			request: create, engine: engine{trial: policycache.Trial{Active: &policyset.Entry{}, Tests: 8, Failed: many(6, failedTest)}},
			warns: append([]string{"6 of 8 tests fail, so this version of the policy is stored but does not take effect"},
				many(5, func(i int) string { return fmt.Sprintf(`test "t%d": deny: expected a found b`, i) })...),
		},
		"a first version with failing tests is denied": {
			request: create, engine: engine{trial: policycache.Trial{Tests: 2, Failed: many(1, failedTest)}},
			code: 422,
			message: "VirtualMachinePolicy \"one\" fails:\nspec.tests: 1 of 2 tests fail, and no earlier version is active\nspec.tests: test \"t0\": deny: expected a found b\n" +
				"metadata.annotations: to store it all the same, set stencil.kubevirt.io/store-failing to \"true\"",
			causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.tests", Message: "1 of 2 tests fail, and no earlier version is active"},
				{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.tests", Message: `test "t0": deny: expected a found b`},
				{Type: metav1.CauseTypeFieldValueInvalid, Field: "metadata.annotations", Message: `to store it all the same, set stencil.kubevirt.io/store-failing to "true"`},
			},
		},
		"one with the annotation is stored": {
			request: request(admissionv1.Create, manifest("x", func(p *v1alpha1.VirtualMachinePolicy) {
				p.Annotations = map[string]string{v1alpha1.AnnotationStoreFailing: "true"}
			}), runtime.RawExtension{}),
			engine: engine{trial: policycache.Trial{Tests: 2, Failed: many(1, failedTest)}},
			warns:  []string{"1 of 2 tests fail, and no earlier version is active", `test "t0": deny: expected a found b`},
		},
		"one that only warns is stored": {
			request: request(admissionv1.Create, manifest("x", func(p *v1alpha1.VirtualMachinePolicy) { p.Spec.Enforcement = v1alpha1.EnforcementWarn }), runtime.RawExtension{}),
			engine:  engine{trial: policycache.Trial{Tests: 2, Failed: many(1, failedTest)}},
			warns:   []string{"1 of 2 tests fail, so this version of the policy is stored but does not take effect", `test "t0": deny: expected a found b`},
		},
		"a change of labels is nobody's business": {
			request: request(admissionv1.Update, policy("x", map[string]string{"a": "b"}), policy("x", nil)),
			engine:  engine{trial: policycache.Trial{Problems: []rego.Problem{problem}}}, untried: true,
		},
		"a change of the module is": {
			request: request(admissionv1.Update, policy("y", nil), policy("x", nil)),
			engine:  engine{trial: policycache.Trial{Problems: []rego.Problem{{Message: "no"}}}},
			code:    422, message: "VirtualMachinePolicy \"one\" does not compile:\nspec.rego: no",
		},
		"a status passes":   {request: status, untried: true},
		"a deletion passes": {request: request(admissionv1.Delete, runtime.RawExtension{}, policy("x", nil)), untried: true},
		"what cannot be decoded is denied": {
			request: request(admissionv1.Create, runtime.RawExtension{Raw: []byte(`{"spec":1}`)}, runtime.RawExtension{}), untried: true,
			code: 400, message: "decoding the policy: json: cannot unmarshal number into Go struct field VirtualMachinePolicy.spec of type v1alpha1.VirtualMachinePolicySpec",
		},
		"no time is a reason to try again": {
			request: create, engine: engine{err: context.DeadlineExceeded},
			code: 504, message: "Timeout: the policy could not be compiled in time; try again",
		},
		"a failure of ours is no fault of the policy's": {
			request: create, engine: engine{err: errors.New("oh")},
			code: 500, message: "Internal error occurred: compiling the policy: oh",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := New(Options{Policies: &tc.engine}).Handle(t.Context(), tc.request)
			if got.Allowed != (tc.code == 0) {
				t.Fatalf("allowed %v: %+v", got.Allowed, got.Result)
			}
			if tc.untried != (tc.engine.tried == 0) {
				t.Errorf("the engine was asked %d times", tc.engine.tried)
			}
			if diff := cmp.Diff(tc.warns, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if tc.code == 0 {
				return
			}
			if got.Result.Code != tc.code {
				t.Errorf("code %d, want %d", got.Result.Code, tc.code)
			}
			if diff := cmp.Diff(tc.message, got.Result.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if tc.causes == nil {
				return
			}
			if diff := cmp.Diff(tc.causes, got.Result.Details.Causes); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}
