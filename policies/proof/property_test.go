package proof

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/fixture"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/policies/sample"
	"github.com/vmstencil/stencil/rego"
)

// randomParameter is a parameter with all values that its declaration accepts, as YAML and as given; nil does not give it.
type randomParameter struct {
	declared string
	values   []*string
}

func texts(values ...string) []*string {
	all := []*string{nil}
	for _, value := range values {
		all = append(all, &value)
	}
	return all
}

// declarations of parameters A, B and so on. All values are integers or empty.
var declarations = []randomParameter{
	{`type: int, value: "2", minimum: 0, maximum: 3`, texts("0", "1", "2", "3", "-0")},
	{`type: int, required: true, minimum: 1, maximum: 2`, texts("1", "2")},
	{`type: int, minimum: 1, maximum: 2`, texts("1", "2", "")},
	{`enum: ["1", "2"], value: "2"`, texts("1", "2")},
	{`enum: ["1", "2"]`, texts("1", "2", "")},
	{`enum: ["3", "1"], required: true`, texts("3", "1")},
	{`type: bool, value: "true"`, texts("true", "false", "")},
	{`value: "7"`, nil}, // closed, or listed by the approval
}

// places are where parameter %s may occur, and expressions that read them: one exactly, and one through a document around it.
var places = []struct{ vm, exact, around string }{
	{`metadata.labels.%s`, `input.object.metadata.labels.%s`, `object.get(input.object.metadata, ["labels", "%s"], "")`},
	{`metadata.annotations.%s`, `input.object.metadata.annotations.%s`, `input.object.metadata[["annotations"][_]]["%s"]`},
	{`spec.template.metadata.labels.%s`, `input.object.spec.template.metadata.labels.%s`, `read(input.object.spec, "%s")`},
	{``, `input.parameters.%s`, `input["parameters"].%s`},
	{``, `input.objects[_].data.%s`, `object.get(input.objects[0], ["data", "%s"], "")`},
}

// randomCase is a template, an approval and policies.
type randomCase struct {
	question   Question
	parameters []randomParameter
	described  string
}

func newRandomCase(t *testing.T, random *rand.Rand) randomCase {
	c := randomCase{}
	var declared, constraints, label, annotation, inner, data []string
	var atoms []string
	for i := range 1 + random.IntN(3) {
		name := string(rune('A' + i))
		p := declarations[random.IntN(len(declarations))]
		values := p.values
		if values == nil {
			// Whatever the approval lists.
			values = texts("", "-0", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "true")
		}
		c.parameters = append(c.parameters, randomParameter{name, values})
		declared = append(declared, fmt.Sprintf("{name: %s, %s}", name, p.declared))
		for _, into := range []*[]string{&label, &annotation, &inner, &data} {
			if random.IntN(2) == 0 {
				*into = append(*into, fmt.Sprintf(`%s: "x${%s}"`, name, name))
			}
		}
		for _, place := range places {
			value := "x"
			if strings.Contains(place.exact, "parameters") {
				value = ""
			}
			value += []string{"", "0", "1", "2", "3", "8", "true"}[random.IntN(7)]
			read := place.exact
			if random.IntN(2) == 0 {
				read = place.around
			}
			atoms = append(atoms, fmt.Sprintf(read+" %s %q", name, []string{"==", "!="}[random.IntN(2)], value))
		}
		switch random.IntN(6) {
		case 0: // closed
		case 1:
			constraints = append(constraints, fmt.Sprintf(`{name: %s, allowed: ["1", "8", "true", "3", ""]}`, name))
		case 2:
			constraints = append(constraints, fmt.Sprintf(`{name: %s, minimum: %d, maximum: 9}`, name, random.IntN(3)))
		case 3:
			constraints = append(constraints, fmt.Sprintf(`{name: %s, allowed: ["1", "2", "7", "8"], expression: "value != '1' || params.A != '2'"}`, name))
		case 4:
			constraints = append(constraints, fmt.Sprintf(`{name: %s, allowed: ["1", "2", "7", "true"], pattern: "[0-9]"}`, name))
		default:
			if p.values != nil {
				constraints = append(constraints, fmt.Sprintf(`{name: %s, anyValue: true}`, name))
			}
		}
	}
	if len(declared) > 1 && random.IntN(3) == 0 {
		annotation = append(annotation, `joined: "${A}${B}"`)
	}
	text := fmt.Sprintf(`
spec:
  parameters: [%s]
  virtualMachine:
    metadata: {name: box, labels: {%s}, annotations: {%s}}
    spec: {runStrategy: Halted, template: {metadata: {labels: {%s}}, spec: {domain: {devices: {}}}}}
  objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: box}, data: {%s}}]
`, strings.Join(declared, ", "), strings.Join(label, ", "), strings.Join(annotation, ", "), strings.Join(inner, ", "), strings.Join(data, ", "))
	spec := fmt.Sprintf("{namespaces: [team-a], templates: [{namespace: golden, name: box}], parameters: [%s]}", strings.Join(constraints, ", "))
	c.described = text + spec
	var entries []policyset.Entry
	for i := range 1 + random.IntN(3) {
		source := "package p\n\nread(spec, name) := spec.template.metadata.labels[name]\n\n"
		for range 1 + random.IntN(2) {
			random.Shuffle(len(atoms), func(i, j int) { atoms[i], atoms[j] = atoms[j], atoms[i] })
			source += "deny contains \"found\" if {\n\t" + strings.Join(atoms[:1+random.IntN(3)], "\n\t") + "\n}\n\n"
		}
		c.described += "\n" + source
		entries = append(entries, policyset.Entry{Policy: fixture.Policy(t, fmt.Sprintf("p%d", i), source), Timeout: time.Minute})
	}
	c.question = question(t, text, fixture.Approval(t, "box", spec), entries...)
	return c
}

// want is what a policy finds in all values, by trying each.
type want struct{ approved, denied int }

// tryAll tries all values of all parameters, of which each is given or not, without the code of this package. Values that equal the default are those of
// Prove when they are not given.
func (c *randomCase) tryAll(t *testing.T) []want {
	results := make([]want, c.question.Policies.Len())
	compiled, err := c.question.Template.Compiled()
	if err != nil {
		t.Fatal(err)
	}
	at := make([]int, len(c.parameters))
	seen := map[string]bool{}
	for {
		given := map[string]string{}
		for i, p := range c.parameters {
			if value := p.values[at[i]]; value != nil {
				given[p.declared] = *value
			}
		}
		c.try(t, compiled, given, seen, results)
		i := 0
		for ; i < len(at); i++ {
			if at[i]++; at[i] < len(c.parameters[i].values) {
				break
			}
			at[i] = 0
		}
		if i == len(at) {
			return results
		}
	}
}

func (c *randomCase) try(t *testing.T, compiled interface {
	approval.Declarations
	approval.ObjectDeclarations
	Digest() string
}, given map[string]string, seen map[string]bool, results []want,
) {
	vm, rejected := sample.With(c.question.Template, given)
	// A binding with a required parameter that sample assumes is that in which the value is given.
	if rejected != nil || len(vm.Given) != len(given) {
		return
	}
	from := approval.Template{Namespace: "golden", Name: "box", Digest: compiled.Digest()}
	allowed := approval.Evaluate([]*approval.Approval{c.question.Approval}, approval.Question{
		Anyone: true, Template: from, Declared: compiled, Values: vm.Values, Given: given, Objects: approval.ObjectsOf(from, compiled),
	})
	if !allowed.Allowed || allowed.Enforcement != v1alpha1.EnforcementDeny {
		return
	}
	// A value that is the default makes the same VirtualMachine whether it is given or not, but for an annotation that no policy here reads.
	key := fmt.Sprint(vm.Values)
	if seen[key] {
		return
	}
	seen[key] = true
	request := sample.Case(c.question.Template, vm, c.question.Namespace, c.question.Time)
	input, err := rego.NewInput(request.Document())
	if err != nil {
		t.Fatal(err)
	}
	for i, entry := range c.question.Policies.Entries() {
		found, err := entry.Policy.Evaluate(t.Context(), input)
		if err != nil {
			t.Fatal(err)
		}
		results[i].approved++
		if len(found.Deny) > 0 {
			results[i].denied++
		}
	}
}

func TestProveAgreesWithTryingAll(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 24))
		c := newRandomCase(t, random)
		wanted := c.tryAll(t)
		for _, limit := range []int{0, 2, 6} {
			c.question.Limit = limit
			found := prove(t, c.question)
			for i, r := range found.Policies {
				described := fmt.Sprintf("seed %d, limit %d, %s\n%s", seed, limit, text(r), c.described)
				w := wanted[i]
				kinds[fmt.Sprintf("%s, pruned %t, approved %t", r.Status, len(r.Unread) > 0, w.approved > 0)]++
				switch {
				case r.Status == Undecided && limit > 0:
					continue
				case r.Status == Undecided:
					// Without a list, a parameter is held at one value.
					if !slices.ContainsFunc(c.parameters, func(p randomParameter) bool { return len(p.values) == 14 }) {
						t.Fatalf("not decided: %s", described)
					}
				case (r.Status == Counterexample) != (w.denied > 0):
					t.Fatalf("want %+v: %s", w, described)
				case len(r.Unread) == 0 && (r.Approved != w.approved || r.Denied != w.denied):
					t.Fatalf("want %+v: %s", w, described)
				}
			}
		}
	}
	for _, kind := range []string{"holds, pruned false, approved true", "holds, pruned true, approved true", "holds, pruned false, approved false", "counterexample, pruned false, approved true", "counterexample, pruned true, approved true", "not decided, pruned false, approved true"} {
		if kinds[kind] == 0 {
			t.Errorf("no case: %s; there are %v", kind, kinds)
		}
	}
}
