package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// checkSteps verifies that a comparison took no more steps than its input allows; size is that of the template and the
// VirtualMachine in bytes.
func checkSteps(tb testing.TB, found *template.Match, size int) {
	tb.Helper()
	const each, any = 200, 1 << 18
	if most := each*size + any; found.Steps() > most {
		tb.Errorf("%d steps for %d bytes, want at most %d", found.Steps(), size, most)
	}
}

// hard is a kind of comparison with the maximum amount of work, of any size.
type hard struct {
	name string

	// problem returns a template and a VirtualMachine with a total size of about size bytes.
	problem func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any)
	matches bool
}

// letters declares parameters named P0, P1 and so on.
func letters(count int, each v1beta1.Parameter) []v1beta1.Parameter {
	parameters := make([]v1beta1.Parameter, count)
	for i := range parameters {
		parameters[i] = each
		parameters[i].Name = fmt.Sprintf("P%d", i)
	}
	return parameters
}

// references returns placeholders for P0 up to count-1, with text between them.
func references(count int, between string) string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf("${P%d}", i)
	}
	return strings.Join(all, between)
}

// hostname returns a problem of one text.
func hostname(parameters []v1beta1.Parameter, pattern, text string) (*v1beta1.VirtualMachineTemplate, map[string]any) {
	object := raw(fmt.Sprintf(`{"spec":{"template":{"spec":{"hostname":%q}}}}`, pattern))
	object.Spec.Parameters = parameters
	return object, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"hostname": text}}}}
}

var hardest = []hard{
	{
		name: "many placeholders in a long text",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			return hostname(letters(200, v1beta1.Parameter{}), references(200, "a"), strings.Repeat("a", size))
		},
		matches: true,
	},
	{
		name: "many placeholders, and an end that does not fit",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			return hostname(letters(200, v1beta1.Parameter{}), references(200, "a")+"b", strings.Repeat("a", size))
		},
	},
	{
		name: "placeholders side by side whose values are restricted",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			return hostname(letters(8, v1beta1.Parameter{Pattern: "[^b]*b|a"}), references(8, ""), strings.Repeat("a", size))
		},
	},
	{
		name: "placeholders that occur twice",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			twice := references(6, "")
			return hostname(letters(6, v1beta1.Parameter{}), twice+"b"+twice+"b"+twice, strings.Repeat("a", size/3)+"b"+strings.Repeat("a", size/3)+"b"+strings.Repeat("a", size/3-1))
		},
	},
	{
		name: "encoded placeholders side by side",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			pattern := strings.Repeat("${P0|base64}${P1|sh}${P2}", 20) + "${P3|base64}${P4|base64}b"
			return hostname(letters(5, v1beta1.Parameter{}), pattern, strings.Repeat("YWFh", size/8)+strings.Repeat(`'a'\\''`, size/16))
		},
	},
	{
		name: "a long value with several encoders, many times",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			object, vm := hostname(letters(1, v1beta1.Parameter{}), strings.Repeat("${P0|base64}${P0|sh}${P0|yaml}", size/60), strings.Repeat("YWFh", size/8))
			vm["metadata"] = map[string]any{"annotations": map[string]any{"parameter.template.kubevirt.io/P0": strings.Repeat("a", size/2)}}
			return object, vm
		},
	},
	{
		name: "one value with several encoders whose end is open",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			return hostname(letters(1, v1beta1.Parameter{}), "${P0}${P0|base64}${P0|yaml}", strings.Repeat("a", size))
		},
	},
	{
		name: "texts that have to agree",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			object := raw(`{"metadata":{"annotations":{"a":"${P0}a${P1}","b":"${P1}a${P0}"}}}`)
			object.Spec.Parameters = letters(2, v1beta1.Parameter{})
			text := strings.Repeat("a", size/2)
			return object, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": text, "b": text + "b"}}}
		},
	},
	{
		name: "keys that are parameters, among many keys",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			labels := map[string]any{}
			for i := range size / 20 {
				labels[fmt.Sprintf("a%010d", i)] = "aaaaaaaa"
			}
			object := raw(`{"metadata":{"labels":{"a${P0}":"${P1}b","a${P1}":"${P2}b","a${P2}":"${P0}b"}}}`)
			object.Spec.Parameters = letters(3, v1beta1.Parameter{})
			return object, map[string]any{"metadata": map[string]any{"labels": labels}}
		},
	},
	{
		name: "items that are parameters, among many items",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			var networks []any
			for i := range size / 60 {
				networks = append(networks, map[string]any{"name": fmt.Sprintf("%010d", i)})
			}
			object := raw(`{"spec":{"template":{"spec":{"networks":["${{P0}}",{"name":"${P1}0"},{"name":"${P2}${P1}"},"${{P3}}"]}}}}`)
			object.Spec.Parameters = letters(4, v1beta1.Parameter{Required: true, Pattern: ".*5.?4|.name.*"})
			return object, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"networks": networks}}}}
		},
	},
	{
		name: "one large object in many places",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			const places = 64
			labels, spec := map[string]any{}, map[string]any{}
			for i := range size / places / 20 {
				labels[fmt.Sprintf("%010d", i)] = "aaaaaaaa"
			}
			var volumes []string
			var items []any
			for i := range places {
				volumes = append(volumes, fmt.Sprintf(`{"name":"%d","containerDisk":"${{P0}}"}`, i))
				items = append(items, map[string]any{"name": fmt.Sprint(i), "containerDisk": labels})
			}
			object := raw(`{"spec":{"template":{"spec":{"volumes":[` + strings.Join(volumes, ",") + `]}}}}`)
			object.Spec.Parameters = letters(1, v1beta1.Parameter{})
			spec["volumes"] = items
			return object, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}
		},
		matches: true,
	},
	{
		name: "a list with many items that may be left out",
		problem: func(size int) (*v1beta1.VirtualMachineTemplate, map[string]any) {
			count := size / 50
			template, items := make([]string, count), make([]any, count/2)
			for i := range template {
				template[i] = fmt.Sprintf(`"${{P%d}}"`, i%200)
			}
			for i := range items {
				items[i] = map[string]any{"key": fmt.Sprint(i % 7)}
			}
			object := raw(`{"spec":{"template":{"spec":{"tolerations":[` + strings.Join(template, ",") + `,{"key":"a"}]}}}}`)
			object.Spec.Parameters = letters(200, v1beta1.Parameter{})
			return object, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"tolerations": items}}}}
		},
	},
}

// TestMatchIsLinear verifies that the work of the hardest comparisons grows no faster than their input.
func TestMatchIsLinear(t *testing.T) {
	const smallest, largest = 1 << 12, 1 << 18
	for _, tc := range hardest {
		t.Run(tc.name, func(t *testing.T) {
			var perByte []float64
			for size := smallest; size <= largest; size *= 4 {
				object, vm := tc.problem(size)
				compiled := mustCompile(t, object)
				found := matched(t, compiled, vm)
				if found.Matches() != tc.matches {
					t.Errorf("%d bytes: matches: %v, want %v: %v", size, found.Matches(), tc.matches, found.Differences())
				}
				checkSteps(t, found, size)
				perByte = append(perByte, float64(found.Steps())/float64(size))
			}
			t.Logf("steps per byte: %.1f", perByte)
			if first, last := perByte[0], perByte[len(perByte)-1]; last > first*1.5+5 {
				t.Errorf("%.1f steps per byte for %d bytes, and %.1f for %d", first, smallest, last, largest)
			}
		})
	}
}
