package sources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhetherAPopulatorsObjectCanBeUsed(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       Object
	}{
		{"an object without a status", `{spec: {}}`, Object{Ready: true}},
		{"a status of another form", `{status: {observed: 1, ready: 7}}`, Object{Ready: true}},
		{"the condition is True", `{status: {conditions: [{type: Ready, status: "True"}], phase: Failed}}`, Object{Ready: true}},
		{
			"the condition is False, whatever the phase", `{status: {conditions: [{type: Ready, status: "False", reason: Empty, message: no milk}], phase: Ready}}`,
			Object{Reason: "Empty", Message: "no milk"},
		},
		{"the condition is Unknown without a reason", `{status: {conditions: [{type: Ready, status: Unknown}]}}`, Object{Reason: "NotReady", Message: "its condition Ready is not True"}},
		{"ready is true", `{status: {ready: true, phase: Failed}}`, Object{Ready: true}},
		{"ready is false", `{status: {ready: false}}`, Object{Reason: "NotReady", Message: "its status.ready is false"}},
		{"a phase that is good", `{status: {phase: Succeeded}}`, Object{Ready: true}},
		{"another phase", `{status: {phase: Pouring}}`, Object{Reason: "Pouring", Message: "its phase is Pouring"}},
		{
			"a long message", `{status: {conditions: [{type: Ready, status: "False", reason: R, message: ` + strings.Repeat("x", 1000) + `}]}}`,
			Object{Reason: "R", Message: strings.Repeat("x", 509) + "…"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reducePopulator(object(t, tc.text))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParsePopulator(t *testing.T) {
	got, err := ParsePopulator("Milk.v1alpha1.dairy.example.org/milks")
	want := Populator{schema.GroupVersionKind{Group: "dairy.example.org", Version: "v1alpha1", Kind: "Milk"}, "milks"}
	if err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "Milk", "Milk.example", "Milk.v1.example.org", "Milk.v1.example.org/", "/milks", ".v1.example.org/milks"} {
		if got, err := ParsePopulator(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
