package template_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// randomTemplate makes templates and values for them. Values and the text around them are short and use few letters, so that
// many comparisons are ambiguous.
type randomTemplate struct {
	*rand.Rand
	parameters []v1beta1.Parameter
	values     map[string]string
	texts      []string // the parameters that are text
	numbers    []string // those that are integers
	flags      []string // those that are true or false
	objects    []string // those that are objects with a name
}

func (r *randomTemplate) pick(from []string) string { return from[r.IntN(len(from))] }

// word returns a text of up to size letters.
func (r *randomTemplate) word(size int) string {
	var b strings.Builder
	for range r.IntN(size + 1) {
		b.WriteString(r.pick([]string{"a", "b", "-", "é", "'", `"`}))
	}
	return b.String()
}

// declare adds a parameter of a random kind, and a valid value for it, or none.
func (r *randomTemplate) declare(name string) {
	p := v1beta1.Parameter{Name: name}
	value := r.word(4)
	switch r.IntN(10) {
	case 0:
		p.Type, value = v1beta1.ParameterTypeInt, fmt.Sprint(r.IntN(300))
		r.numbers = append(r.numbers, name)
	case 1:
		p.Type, value = v1beta1.ParameterTypeBool, fmt.Sprint(r.IntN(2) == 0)
		r.flags = append(r.flags, name)
	case 2:
		value = fmt.Sprintf(`{"name":"o%d"}`, r.IntN(100))
		r.objects = append(r.objects, name)
	case 3:
		p.Enum = []string{"a", "ab", "b-", value + "ba"}
		value = r.pick(p.Enum)
	case 4:
		p.Pattern, value = "a[^é]*", "a"+strings.ReplaceAll(value, "é", "b")
	case 5:
		p.Generate, p.From, value = "expression", "v[a-b]{2}", ""
	}
	if p.Type == "" && !strings.HasPrefix(value, "{") {
		r.texts = append(r.texts, name)
	}
	switch r.IntN(5) {
	case 0:
		p.Required = p.Generate == "" && value != ""
	case 1:
		if p.Enum == nil && p.Pattern == "" && p.Type == "" && p.Generate == "" {
			p.Value = r.word(2)
		}
	case 2:
		p.Sensitive = true
	}
	if !p.Required && r.IntN(5) == 0 && p.Enum == nil && p.Pattern == "" {
		value = ""
	}
	if value != "" || p.Value != "" {
		r.values[name] = value
	}
	r.parameters = append(r.parameters, p)
}

// text returns a text with up to parts placeholders, some with encoders.
func (r *randomTemplate) text(parts int) string {
	return r.placeholders(parts, "", "", "", "|yaml", "|json", "|sh", "|base64")
}

// plain returns a text without encoders, which names do not permit.
func (r *randomTemplate) plain(parts int) string { return r.placeholders(parts, "") }

func (r *randomTemplate) placeholders(parts int, encoders ...string) string {
	text := r.word(2)
	for range r.IntN(parts + 1) {
		text += "${" + r.pick(append(r.numbers, r.texts...)) + r.pick(encoders) + "}" + r.word(1)
	}
	if r.IntN(10) == 0 {
		text += "$${A}"
	}
	return text
}

func (r *randomTemplate) labels() map[string]any {
	labels := map[string]any{}
	for range r.IntN(4) {
		labels[r.text(2)+fmt.Sprint(r.IntN(3))] = r.text(2)
	}
	return labels
}

// items returns objects with names, or given by parameters.
func (r *randomTemplate) items(more func() map[string]any) []any {
	var items []any
	for i := range r.IntN(4) {
		if len(r.objects) > 0 && r.IntN(3) == 0 {
			items = append(items, "${{"+r.pick(r.objects)+"}}")
			continue
		}
		item := more()
		item["name"] = fmt.Sprintf("%s%d", r.text(1), i)
		items = append(items, item)
	}
	return items
}

func (r *randomTemplate) machine() map[string]any {
	some := func(from []string, form, otherwise string) any {
		if len(from) == 0 || r.IntN(3) == 0 {
			var literal any
			_ = json.Unmarshal([]byte(otherwise), &literal)
			return literal
		}
		return fmt.Sprintf(form, r.pick(from))
	}
	spec := map[string]any{
		"hostname":                      r.text(3),
		"subdomain":                     some(r.texts, "${%s}", `"x"`),
		"terminationGracePeriodSeconds": some(r.numbers, "${{%s}}", `180`),
		"domain": map[string]any{
			"cpu":    map[string]any{"cores": some(r.numbers, "${{%s}}", `2`), "dedicatedCpuPlacement": some(r.flags, "${{%s}}", `false`)},
			"memory": map[string]any{"guest": some(r.numbers, "${%s}1Mi", `"1Gi"`)},
			"devices": map[string]any{
				"disks":                  r.items(func() map[string]any { return map[string]any{"serial": r.text(2), "disk": map[string]any{}} }),
				"autoattachPodInterface": some(r.flags, "${{%s}}", `true`),
			},
		},
		"networks": r.items(func() map[string]any { return map[string]any{"multus": map[string]any{"networkName": r.text(2)}} }),
		"volumes": r.items(func() map[string]any {
			return map[string]any{"cloudInitNoCloud": map[string]any{"userData": r.text(5)}}
		}),
		"tolerations": []any{
			map[string]any{"key": r.text(2), "value": r.text(2)},
			map[string]any{"key": r.text(1)},
		},
		"nodeSelector":  r.labels(),
		"startStrategy": some(r.texts, "${{%s}}", `"Paused"`),
	}
	metadata := map[string]any{"name": r.plain(3), "labels": r.labels(), "annotations": r.labels()}
	if r.IntN(4) == 0 {
		metadata["namespace"] = "n" + r.plain(1) + "${" + r.pick(r.texts) + "}"
	}
	return map[string]any{"metadata": metadata, "spec": map[string]any{"template": map[string]any{"spec": spec}}}
}

func newRandomTemplate(seed uint64) (*randomTemplate, *v1beta1.VirtualMachineTemplate) {
	r := &randomTemplate{Rand: rand.New(rand.NewPCG(seed, 0)), values: map[string]string{}}
	r.texts = append(r.texts, "A")
	r.parameters = append(r.parameters, v1beta1.Parameter{Name: "A"})
	r.values["A"] = r.word(3)
	for i := range 2 + r.IntN(6) {
		r.declare(fmt.Sprintf("P%d", i))
	}
	vm, err := json.Marshal(r.machine())
	if err != nil {
		panic(err)
	}
	object := raw(string(vm))
	object.Spec.Parameters = r.parameters
	if r.IntN(2) == 0 {
		object.Spec.ObjectLabels = map[string]string{"l" + r.text(1): r.text(1)}
	}
	return r, object
}

// contains reports whether a VirtualMachine equals the rendered one, or has additional fields.
func contains(tb testing.TB, vm map[string]any, rendered *template.Rendered) bool {
	tb.Helper()
	literal := mustCompile(tb, raw(strings.ReplaceAll(string(rendered.JSON()), "${", "$${")))
	found, err := literal.Match(vm)
	if err != nil {
		tb.Fatal(err)
	}
	return found.Matches()
}

// TestWhatIsRenderedMatches verifies, for random templates and values, that Match finds values with which the template makes
// the same VirtualMachine.
func TestWhatIsRenderedMatches(t *testing.T) {
	const seeds = 2000
	rendered, same, less := 0, 0, 0
	for seed := range uint64(seeds) {
		r, object := newRandomTemplate(seed)
		compiled, err := template.Compile(object)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		binding, err := compiled.Bind(r.values)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want, err := compiled.Render(binding)
		if err != nil {
			causes(t, err) // two keys became the same
			continue
		}
		rendered++
		found := matched(t, compiled, want.Object())
		if diff := cmp.Diff([]template.Difference(nil), found.Differences()); diff != "" {
			spec, _ := json.MarshalIndent(object.Spec, "", " ")
			t.Errorf("seed %d: differences %s\nwith %v of\n%s\n%s", seed, diff, binding.Values(), want.JSON(), spec)
			continue
		}
		values := found.Values()
		agree := true
		for name, value := range binding.Values() {
			if shown, is := values[name]; !is {
				values[name] = value
			} else if shown != value {
				agree = false
			}
		}
		if agree {
			same++
		}
		again, err := compiled.Bind(values)
		if err != nil {
			t.Errorf("seed %d: what was found cannot be bound: %v", seed, err)
			continue
		}
		got, err := compiled.Render(again)
		if err != nil {
			t.Errorf("seed %d: what was found cannot be rendered: %v", seed, err)
			continue
		}
		before, after := want.Object(), got.Object()
		forgetUnfitName(compiled, before, after)
		if diff := cmp.Diff(before, after); diff != "" && contains(t, before, got) {
			less++
		} else if diff != "" {
			t.Errorf("seed %d: rendered again with %v, and with %v before (-want +got):\n%s", seed, values, binding.Values(), diff)
		}
	}
	t.Logf("%d of %d rendered, and of these %d gave back their own values, and %d others that leave out an item", rendered, seeds, same, less)
	if rendered < seeds*9/10 || same < rendered*9/10 || less > rendered/1000 {
		t.Error("that is not what is expected")
	}
}

// TestSpoiltVirtualMachinesAreEvaluatedCorrectly changes random rendered VirtualMachines, and verifies that the template makes
// every one that still matches.
func TestSpoiltVirtualMachinesAreEvaluatedCorrectly(t *testing.T) {
	const seeds = 2000
	matched, differed := 0, 0
	for seed := range uint64(seeds) {
		r, object := newRandomTemplate(seed)
		compiled := mustCompile(t, object)
		binding := bound(t, compiled, r.values)
		rendered, err := compiled.Render(binding)
		if err != nil {
			continue
		}
		spoilt, is := mutator{r.Rand}.spoil(rendered.Object(), 0.01).(map[string]any)
		if !is {
			continue
		}
		found := checkMatch(t, compiled, spoilt, 1<<12, nil)
		if !found.Matches() {
			differed++
			continue
		}
		matched++
		if again, err := compiled.Bind(found.Values()); err == nil {
			if made, err := compiled.Render(again); err == nil {
				want := made.Object()
				delete(want, "apiVersion") // missing in items of a list
				delete(want, "kind")
				delete(want["metadata"].(map[string]any), "name") // which the user chooses
				if lack := lacking(want, spoilt); lack != "" {
					t.Errorf("seed %d: it matches, but lacks %s", seed, lack)
				}
			}
		}
	}
	t.Logf("%d still match, and %d differ", matched, differed)
	if matched < seeds/20 || differed < seeds/20 {
		t.Error("so few that the test says little")
	}
}

// lacking is a simple definition of what a VirtualMachine must have: every leaf that is not empty, in lists at its position
// or beside its name. It returns the first that is missing.
func lacking(want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for key, value := range want {
			if lack := lacking(value, object[key]); lack != "" && key != "guest" {
				return key + "." + lack
			}
		}
	case []any:
		list, _ := got.([]any)
		for i, item := range want {
			var found any
			if i < len(list) {
				found = list[i]
			}
			object, _ := item.(map[string]any)
			for _, candidate := range list {
				if other, is := candidate.(map[string]any); is && object["name"] != nil && other["name"] == object["name"] {
					found = candidate
				}
			}
			if lack := lacking(item, found); lack != "" {
				return fmt.Sprintf("%d.%s", i, lack)
			}
		}
	default:
		if want != nil && want != "" && want != false && want != int64(0) && fmt.Sprint(want) != fmt.Sprint(got) {
			return fmt.Sprint(want)
		}
	}
	return ""
}

// forgetUnfitName removes the names of two VirtualMachines if that of the first does not fit the template's, which happens
// if a parameter in it is empty: Match then ignores the name, as if a user had chosen it.
func forgetUnfitName(compiled *template.Compiled, a, b map[string]any) {
	before, after := a["metadata"].(map[string]any), b["metadata"].(map[string]any)
	if bound, err := compiled.BindName(before["name"].(string), nil); err != nil || bound == nil {
		delete(before, "name")
		delete(after, "name")
	}
}
