package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// raw returns a template with this VirtualMachine.
func raw(vm string) *v1beta1.VirtualMachineTemplate {
	object := &v1beta1.VirtualMachineTemplate{}
	object.Spec.VirtualMachine = &runtime.RawExtension{Raw: []byte(vm)}
	return object
}

func specSize(tb testing.TB, object *v1beta1.VirtualMachineTemplate) int {
	tb.Helper()
	encoded := mustMarshal(tb, object.Spec)
	return len(encoded)
}

func TestTemplateSizeIsLimited(t *testing.T) {
	build := func(padding int) *v1beta1.VirtualMachineTemplate {
		object := raw(`{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 1000) + `"}}}`)
		object.Spec.Message = strings.Repeat("m", padding)
		return object
	}
	full := build(template.MaxTemplateBytes - specSize(t, build(0)) - len(`"message":"",`))
	if size := specSize(t, full); size != template.MaxTemplateBytes {
		t.Fatalf("the test's template has %d bytes, want %d", size, template.MaxTemplateBytes)
	}
	if _, err := template.Compile(full); err != nil {
		t.Errorf("a template of the largest size: %v", err)
	}
	full.Spec.Message += "m"
	_, err := template.Compile(full)
	want := []string{"spec: Invalid value: the template must be at most 524288 bytes of JSON, and is 524289"}
	if diff := cmp.Diff(want, causes(t, err)); diff != "" {
		t.Errorf("causes of one byte more (-want +got):\n%s", diff)
	}
}

func TestNumberOfParametersIsLimited(t *testing.T) {
	object := raw(`{}`)
	for i := range template.MaxParameters {
		object.Spec.Parameters = append(object.Spec.Parameters, v1beta1.Parameter{Name: fmt.Sprintf("P%d", i)})
	}
	if _, err := template.Compile(object); err != nil {
		t.Errorf("256 parameters: %v", err)
	}
	object.Spec.Parameters = append(object.Spec.Parameters, v1beta1.Parameter{Name: "ONE_MORE"})
	_, err := template.Compile(object)
	want := []string{"spec.parameters: Invalid value: the list must be at most 256 parameters, and is 257"}
	if diff := cmp.Diff(want, causes(t, err)); diff != "" {
		t.Errorf("causes of one more (-want +got):\n%s", diff)
	}
}

func TestDepthIsLimited(t *testing.T) {
	// nested returns a VirtualMachine with this number of levels, in a place that permits anything.
	nested := func(levels int, innermost string) string {
		const before, after = `{"spec":{"dataVolumeTemplates":[{"metadata":{"managedFields":[{"fieldsV1":`, `}]}}]}}`
		inner := levels - strings.Count(before, "{") - strings.Count(before, "[")
		return before + strings.Repeat("[", inner) + innermost + strings.Repeat("]", inner) + after
	}
	if _, err := template.Compile(raw(nested(64, ""))); err != nil {
		t.Errorf("64 levels: %v", err)
	}
	for _, levels := range []int{65, 9000, 200_000} {
		_, err := template.Compile(raw(nested(levels, `"[\"{"`)))
		want := []string{fmt.Sprintf("spec.virtualMachine: Invalid value: the VirtualMachine must be at most 64 levels of lists and objects, and is %d", levels)}
		if diff := cmp.Diff(want, causes(t, err)); diff != "" {
			t.Errorf("causes of %d levels (-want +got):\n%s", levels, diff)
		}
	}

	for _, sensitive := range []bool{false, true} {
		object := raw(nested(60, `"${{DEEP}}"`))
		object.Spec.Parameters = []v1beta1.Parameter{{Name: "DEEP", Sensitive: sensitive}}
		if _, err := render(object, map[string]string{"DEEP": `[[[["["]]]]`}); err != nil {
			t.Errorf("60 levels and 4 more from a parameter: %v", err)
		}
		_, err := render(object, map[string]string{"DEEP": `[[{"a":[[0]]}]]`})
		place := "spec.virtualMachine.spec.dataVolumeTemplates[0].metadata.managedFields[0].fieldsV1" + strings.Repeat("[0]", 53)
		want := []string{place + ": Invalid value: the value of DEEP, with what is around it, must be at most 64 levels of lists and objects, and is 65"}
		if diff := cmp.Diff(want, causes(t, err)); diff != "" {
			t.Errorf("causes of 60 levels and 5 more from a parameter (-want +got):\n%s", diff)
		}
	}
}

func TestRenderedSizeIsLimited(t *testing.T) {
	object := raw(`{"metadata":{"annotations":{"a":"${A}","b":"${A}"}}}`)
	object.Spec.Parameters = []v1beta1.Parameter{{Name: "A"}}
	empty, err := render(object, nil)
	if err != nil {
		t.Fatal(err)
	}
	room := template.MaxRenderedBytes - len(empty.JSON())
	if room%2 != 0 {
		t.Fatalf("the test wants an even number of bytes left, and has %d", room)
	}
	full, err := render(object, map[string]string{"A": strings.Repeat("x", room/2)})
	if err != nil {
		t.Fatalf("a VirtualMachine of the largest size: %v", err)
	}
	if size := len(full.JSON()); size != template.MaxRenderedBytes {
		t.Errorf("got %d bytes, want %d", size, template.MaxRenderedBytes)
	}

	for name, tc := range map[string]struct {
		value string
		more  int
	}{
		"one character more":             {value: strings.Repeat("x", room/2+1), more: 2},
		"characters that need an escape": {value: strings.Repeat("\t", room/2), more: room},
		"far too much":                   {value: strings.Repeat("\"", 10*room), more: 39 * room},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(object, map[string]string{"A": tc.value})
			want := []string{fmt.Sprintf("spec.virtualMachine: Invalid value: the rendered VirtualMachine must be at most 1048576 bytes of JSON, and is %d", template.MaxRenderedBytes+tc.more)}
			if diff := cmp.Diff(want, causes(t, err)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderedSizeIsKnownBeforeItIsRendered(t *testing.T) {
	// 50 000 references to a value of 200 KiB would be 10 GB.
	object := raw(`{"metadata":{"annotations":{"a":"` + strings.Repeat("${A}", 50_000) + `","${A}":"${A}"}}}`)
	object.Spec.Parameters = []v1beta1.Parameter{{Name: "A"}}
	object.Spec.Message = strings.Repeat("${A}", 10_000)
	_, err := render(object, map[string]string{"A": strings.Repeat("x", 200<<10)})
	got := strings.Join(causes(t, err), "\n")
	want := fmt.Sprintf("and is %d", 50_002*(200<<10)+len(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"annotations":{"a":"","":"",}},"spec":{}}`))
	if !strings.Contains(got, want) || !strings.Contains(got, "spec.message: Invalid value: the rendered message must be at most 1048576 bytes, and is 2048000000") {
		t.Errorf("got %s", got)
	}
}

func TestGeneratorsAreLimited(t *testing.T) {
	object := raw(`{}`)
	object.Spec.Parameters = []v1beta1.Parameter{{Name: "A", Generate: "expression", From: strings.Repeat("[a]{255}", 5000)}}
	_, err := template.Compile(object)
	want := []string{"spec.parameters: Invalid value: what all generators make together must be at most 1048576 bytes, and is 1275000"}
	if diff := cmp.Diff(want, causes(t, err)); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

func TestPatternsAreLimited(t *testing.T) {
	object := raw(`{}`)
	for _, pattern := range []string{"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", strings.Repeat("[a-z]{1000}", 5)} {
		object.Spec.Parameters = append(object.Spec.Parameters, v1beta1.Parameter{Name: fmt.Sprintf("P%d", len(object.Spec.Parameters)), Pattern: pattern})
	}
	_, err := template.Compile(object)
	want := []string{"spec.parameters[1].pattern: Invalid value: the patterns of the template so far, repetitions unrolled, must be at most 10000 instructions, and is 15316"}
	if diff := cmp.Diff(want, causes(t, err)); diff != "" {
		t.Errorf("causes of a pattern that is short only as text (-want +got):\n%s", diff)
	}

	object.Spec.Parameters = object.Spec.Parameters[:1]
	_, err = render(object, map[string]string{"P0": strings.Repeat("x", template.MaxMatchedBytes+1)})
	want = []string{"parameters[P0]: Invalid value: a value with a pattern must be at most 16384 bytes, and is 16385"}
	if diff := cmp.Diff(want, causes(t, err)); diff != "" {
		t.Errorf("causes of a long value (-want +got):\n%s", diff)
	}
}

func TestCausesAreLimited(t *testing.T) {
	var vm strings.Builder
	vm.WriteString(`{"spec":{"a0":0`)
	for i := range 20_000 {
		fmt.Fprintf(&vm, `,"a%d":"${U%d}"`, i+1, i)
	}
	vm.WriteString(`}}`)
	_, err := template.Compile(raw(vm.String()))
	got := causes(t, err)
	if len(got) != 257 {
		t.Fatalf("got %d causes, want 256 and one that counts the rest", len(got))
	}
	if want := "spec: Too many: 39745 more causes are not listed"; got[256] != want {
		t.Errorf("got %q, want %q", got[256], want)
	}
}
