package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

func inParenthesesOf(vm string, spec v1beta1.VirtualMachineTemplateSpec) *v1beta1.VirtualMachineTemplate {
	spec.Syntax, spec.VirtualMachine = v1beta1.SyntaxParentheses, &runtime.RawExtension{Raw: []byte(vm)}
	return &v1beta1.VirtualMachineTemplate{Spec: spec}
}

// TestParenthesesAreTheSameTemplate compares a template with the same one in braces.
func TestParenthesesAreTheSameTemplate(t *testing.T) {
	parameters := []v1beta1.Parameter{{Name: "NAME"}, {Name: "CORES", Value: "2"}}
	written := inParenthesesOf(`{"metadata": {"name": "vm-$(NAME)", "labels": {"$(NAME)/a": "$$(NAME) ${NAME} $((NAME)) $(a-b) $"}},
		"spec": {"template": {"spec": {"domain": {"cpu": {"cores": "$((CORES))"}}}}}}`, v1beta1.VirtualMachineTemplateSpec{
		Parameters: parameters, Message: "$(NAME) costs $5", ObjectLabels: map[string]string{"team": "$(NAME)"},
		Objects: []runtime.RawExtension{{Raw: []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "$(NAME)"}, "data": {"n": "$(CORES)"}}`)}},
	})
	braces := &v1beta1.VirtualMachineTemplate{Spec: v1beta1.VirtualMachineTemplateSpec{
		VirtualMachine: &runtime.RawExtension{Raw: []byte(`{"metadata": {"name": "vm-${NAME}", "labels": {"${NAME}/a": "$(NAME) $${NAME} ${NAME} $(a-b) $"}},
		"spec": {"template": {"spec": {"domain": {"cpu": {"cores": "${{CORES}}"}}}}}}`)},
		Parameters: parameters, Message: "${NAME} costs $5", ObjectLabels: map[string]string{"team": "${NAME}"},
		Objects: []runtime.RawExtension{{Raw: []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${NAME}"}, "data": {"n": "${CORES}"}}`)}},
	}}
	before := written.DeepCopy()
	got, err := template.Compile(written)
	if err != nil {
		t.Fatal(err)
	}
	want, err := template.Compile(braces)
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest() != want.Digest() || got.NamePattern() != want.NamePattern() {
		t.Errorf("digest %s and name %s, in braces %s and %s", got.Digest(), got.NamePattern(), want.Digest(), want.NamePattern())
	}
	if diff := cmp.Diff(before, written); diff != "" {
		t.Errorf("the template was changed:\n%s", diff)
	}
	if template.Braces(braces) != braces {
		t.Error("a template in braces was copied")
	}
}

func TestParenthesesAreReportedAsWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		vm   string
		keep v1beta1.UndefinedReferencesPolicy
		want string
	}{
		"undefined": {vm: `{"metadata": {"labels": {"a": "$(NAMES)"}}}`,
			want: `spec.virtualMachine.metadata.labels[a]: Invalid value: "$(NAMES)": no parameter is called NAMES; did you mean NAME?`},
		"undefined, whole": {vm: `{"metadata": {"labels": {"a": "$((X))"}}}`,
			want: `spec.virtualMachine.metadata.labels[a]: Invalid value: "$((X))": no parameter is called X; declare it, or write $$( for a literal $(`},
		"encoder": {vm: `{"metadata": {"labels": {"a": "$(NAME|yml)"}}}`,
			want: `spec.virtualMachine.metadata.labels[a]: Invalid value: "$(NAME|yml)": line 1, column 1: no such encoder; write $(NAME) or $(NAME|ENCODER), where ENCODER is base64, json, sh or yaml`},
		"key": {vm: `{"metadata": {"labels": {"$((NAME))": "a"}}}`,
			want: `spec.virtualMachine.metadata.labels[$((NAME))]: Invalid value: "$((NAME))": a key is always text: write $(NAME)`},
		"not JSON": {vm: `{"metadata": `, want: "spec.virtualMachine: Invalid value: not JSON"},
		"kept":     {vm: `{"metadata": {"labels": {"a": "$(HOST) $((I)) $(NAME)"}}}`, keep: v1beta1.UndefinedReferencesKeep},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, err := template.Compile(inParenthesesOf(tc.vm, v1beta1.VirtualMachineTemplateSpec{Parameters: []v1beta1.Parameter{{Name: "NAME", Value: "x"}}, UndefinedReferences: tc.keep}))
			if tc.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
					t.Fatalf("got %v, want %s", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			binding, err := compiled.Bind(nil)
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := compiled.Render(binding)
			if err != nil || !strings.Contains(string(rendered.JSON()), `"$(HOST) $((I)) x"`) {
				t.Errorf("%s, %v", rendered.JSON(), err)
			}
		})
	}
	_, err := template.Compile(&v1beta1.VirtualMachineTemplate{Spec: v1beta1.VirtualMachineTemplateSpec{Syntax: "Brackets", VirtualMachine: &runtime.RawExtension{Raw: []byte(`{}`)}}})
	if want := `spec.syntax: Unsupported value: "Brackets": must be one of "Braces", "Parentheses"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
