package source_test

import (
	"errors"
	"testing"

	"sigs.k8s.io/json"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
)

func TestUnknownFieldsHaveSuggestions(t *testing.T) {
	for name, tc := range map[string]struct{ document, want string }{
		"a field of the spec":    {`{"spec":{"enforcment":"Warn"}}`, `unknown field "spec.enforcment"; did you mean enforcement?`},
		"a field in a list":      {`{"spec":{"tests":[{"nmae":"a"}]}}`, `unknown field "spec.tests[0].nmae"; did you mean name?`},
		"a field of an input":    {`{"spec":{"tests":[{"input":{"request":{"userinfo":{}}}}]}}`, `unknown field "spec.tests[0].input.request.userinfo"; did you mean userInfo?`},
		"a field of metadata":    {`{"metadata":{"lables":{}}}`, `unknown field "metadata.lables"; did you mean labels?`},
		"a field of the object":  {`{"sepc":{}}`, `unknown field "sepc"; did you mean spec?`},
		"a field like no other":  {`{"spec":{"zzzzzzz":1}}`, `unknown field "spec.zzzzzzz"`},
		"a field below a scalar": {`{"spec":{"rego":"x"},"a.b":1}`, `unknown field "a.b"`},
	} {
		policy := &v1alpha1.VirtualMachinePolicy{}
		unknown, err := json.UnmarshalStrict([]byte(tc.document), policy)
		if err != nil || len(unknown) != 1 {
			t.Fatalf("%s: %v, %v", name, unknown, err)
		}
		if got := source.Suggesting(unknown[0], policy).Error(); got != tc.want {
			t.Errorf("%s: %s\nwant %s", name, got, tc.want)
		}
	}
	if err := errors.New("something else"); !errors.Is(source.Suggesting(err, &v1alpha1.VirtualMachinePolicy{}), err) {
		t.Error("another error has changed")
	}
}
