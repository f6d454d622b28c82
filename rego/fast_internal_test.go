package rego

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/rego/schema"
)

// libraryPolicy is a policy of the library as its file has it.
type libraryPolicy struct {
	Spec struct {
		Rego             string
		Parameters       map[string]any
		ParametersSchema map[string]any
		Match            struct{ Kinds []string }
		Tests            []struct {
			Parameters map[string]any
			Input      map[string]any
		}
	}
}

func libraryPolicies(tb testing.TB) map[string]libraryPolicy {
	tb.Helper()
	files, err := filepath.Glob("../charts/stencil/files/library/*.yaml")
	if err != nil || len(files) == 0 {
		tb.Fatalf("the library has %d policies: %v", len(files), err)
	}
	policies := map[string]libraryPolicy{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var policy libraryPolicy
		if err := yaml.Unmarshal(text, &policy); err != nil {
			tb.Fatal(err)
		}
		policies[strings.TrimSuffix(filepath.Base(file), ".yaml")] = policy
	}
	return policies
}

// documentOf returns the document of a test's input.
func documentOf(input map[string]any) Document {
	object := func(from map[string]any, name string) map[string]any {
		value, _ := from[name].(map[string]any)
		return value
	}
	text := func(from map[string]any, name string) string {
		value, _ := from[name].(string)
		return value
	}
	request := object(input, "request")
	user := object(request, "userInfo")
	d := Document{
		Request: Request{
			Operation: text(request, "operation"), Kind: KindVirtualMachine, Namespace: text(request, "namespace"), Name: text(request, "name"),
			UserInfo: UserInfo{Username: text(user, "username")},
		},
		Object: object(input, "object"), OldObject: object(input, "oldObject"), Instancetype: object(input, "instancetype"), Preference: object(input, "preference"),
		Namespace: Namespace{Name: text(request, "namespace")},
	}
	if d.Request.Operation == "" {
		d.Request.Operation = "CREATE"
	}
	groups, _ := user["groups"].([]any)
	for _, group := range groups {
		d.Request.UserInfo.Groups = append(d.Request.UserInfo.Groups, fmt.Sprint(group))
	}
	if template := object(input, "template"); template != nil {
		d.Template = &Template{Namespace: text(template, "namespace"), Name: text(template, "name")}
	}
	return d
}

// compared evaluates a policy by OPA with the whole input, by the fast path and by OPA with the fields that the policy reads, and fails unless all return
// the same. It reports whether the fast path decided it.
func compared(t *testing.T, policy *Policy, d Document) (decided bool) {
	t.Helper()
	whole, err := NewInput(d)
	if err != nil {
		t.Fatal(err)
	}
	in, err := NewInputOf(d, NewFields(policy))
	if err != nil {
		t.Fatal(err)
	}
	if in.weight != whole.weight || in.Digest() != whole.Digest() {
		t.Fatalf("the part of the input weighs %d and has digest %s, all of it %d and %s", in.weight, in.Digest(), whole.weight, whole.Digest())
	}
	slow, errSlow := policy.Complete(t.Context(), whole)
	part, errPart := policy.Complete(t.Context(), &Input{term: in.term, weight: in.weight})
	if fmt.Sprint(errPart) != fmt.Sprint(errSlow) || !reflect.DeepEqual(part, slow) {
		text, _ := json.Marshal(d)
		t.Fatalf("policy %s:\n%s\nparameters %v, input %s\nwhat it reads %v, %s\nwith that %+v, %v\nwith all  %+v, %v",
			policy.Name(), policy.program.source.text, policy.definition.Parameters, text, policy.program.reads, in.term, part, errPart, slow, errSlow)
	}
	policy.program.attempts.failed.Store(0)
	values, decided := policy.evaluateFast(t.Context(), in)
	var (
		fast    Result
		errFast error
	)
	if decided {
		fast, errFast = policy.result(values)
	} else {
		// The values of helpers that the attempt has computed must not change OPA's result.
		fast, errFast = policy.Complete(t.Context(), in)
	}
	if fmt.Sprint(errFast) != fmt.Sprint(errSlow) || !reflect.DeepEqual(fast, slow) {
		text, _ := json.Marshal(d)
		t.Fatalf("policy %s, decided %v:\n%s\nparameters %v, input %s\nwith the fast path %+v, %v\nwithout it         %+v, %v",
			policy.Name(), decided, policy.program.source.text, policy.definition.Parameters, text, fast, errFast, slow, errSlow)
	}
	return decided
}

// mutator changes documents at random: types, keys, lengths, and values that the policies are about.
type mutator struct {
	*rand.Rand
	keys []string
}

func newMutator(seed uint64) *mutator {
	return &mutator{rand.New(rand.NewPCG(seed, 1)), slices.Sorted(slices.Values(schema.FieldNames()))}
}

var interestingTexts = []string{
	"", "a", "team-a", "Always", "Halted", "true", "4", "4Gi", "100m", "quay.io/containerdisks/fedora:41", "docker://localhost:5000/x@sha256:" + "0123456789abcdef0123456789abcdef",
	"#cloud-config\npassword: secret\n", "#!/bin/sh", ": not yaml: [", "bridge", "networks/blue", "hooks.kubevirt.io/hookSidecars", `[{"image": "evil.io/x"}]`,
	"kubevirt.io/ignitiondata", "02:00:00:00:00:01", "virtualmachineinstancetype", "u1.large", "https://example.com/disk.qcow2", "http://[::1]:80/x", "hugepages-2Mi", "ünï",
}

var interestingKeys = []string{"running", "runStrategy", "instancetype", "kind", "name", "hostDisk", "gpus", "annotations", "labels", "owner", "tpm", "cpu", "memory", "guest", "limits", "requests", "secureBoot"}

func (m *mutator) value() any {
	switch m.IntN(10) {
	case 0:
		return nil
	case 1:
		return m.IntN(2) == 0
	case 2:
		return float64(m.IntN(9))
	case 3:
		return 1.5
	case 4:
		return []any{}
	case 5:
		return map[string]any{}
	case 6:
		return []any{m.value(), m.value()}
	case 7:
		return map[string]any{m.key(): m.value(), m.key(): m.value()}
	default:
		return interestingTexts[m.IntN(len(interestingTexts))]
	}
}

func (m *mutator) key() string {
	if m.IntN(2) == 0 {
		return interestingKeys[m.IntN(len(interestingKeys))]
	}
	return m.keys[m.IntN(len(m.keys))]
}

// mutate changes about one in so many values of a copy.
func (m *mutator) mutate(value any, oneIn int) any {
	if m.IntN(oneIn) == 0 {
		return m.value()
	}
	switch v := value.(type) {
	case map[string]any:
		changed := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if m.IntN(2*oneIn) == 0 {
				continue
			}
			changed[key] = m.mutate(v[key], oneIn)
		}
		if m.IntN(oneIn) == 0 {
			changed[m.key()] = m.value()
		}
		return changed
	case []any:
		var changed []any
		for _, element := range v {
			changed = append(changed, m.mutate(element, oneIn))
			if m.IntN(oneIn) == 0 {
				changed = append(changed, m.mutate(element, oneIn))
			}
		}
		return changed
	}
	return value
}

// document changes the objects of a document.
func (m *mutator) document(d Document, oneIn int) Document {
	for _, object := range []*map[string]any{&d.Object, &d.OldObject, &d.Instancetype, &d.Preference} {
		if *object == nil && m.IntN(oneIn) > 0 {
			continue
		}
		if *object == nil {
			*object = map[string]any{"spec": m.value()}
		}
		if changed, ok := m.mutate(*object, oneIn).(map[string]any); ok {
			*object = changed
		}
	}
	if m.IntN(oneIn) == 0 {
		d.Request.Operation = "UPDATE"
	}
	return d
}

func machineDocument(tb testing.TB) Document {
	tb.Helper()
	text, err := os.ReadFile("testdata/machine.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		tb.Fatal(err)
	}
	return Document{
		Request:    Request{Operation: "CREATE", Kind: KindVirtualMachine, Namespace: "team-a", Name: "web-1", UserInfo: UserInfo{Username: "jane", Groups: []string{"team-a"}}},
		Object:     object,
		Namespace:  Namespace{Name: "team-a", Labels: map[string]string{"team": "a"}},
		Parameters: map[string]string{"NAME": "web-1"},
	}
}

func TestTheFastPathEvaluatesTheLibraryAsOPADoes(t *testing.T) {
	changes := newMutator(1)
	machine := machineDocument(t)
	decided, all := 0, 0
	for name, file := range libraryPolicies(t) {
		policy, err := testCompiler.Compile(t.Context(), Definition{
			Name: name, Source: file.Spec.Rego, Kinds: file.Spec.Match.Kinds, Parameters: file.Spec.Parameters, Schema: file.Spec.ParametersSchema,
		})
		if err != nil {
			t.Fatal(err)
		}
		documents := []Document{machine}
		policies := []*Policy{policy}
		for _, test := range file.Spec.Tests {
			documents = append(documents, documentOf(test.Input))
			if other, err := policy.WithParameters(test.Parameters); err == nil {
				policies = append(policies, other)
			}
		}
		for _, policy := range policies {
			for _, d := range documents {
				for i := range 6 {
					if i > 0 {
						d = changes.document(d, 8*i)
					}
					all++
					if compared(t, policy, d) {
						decided++
					}
				}
			}
		}
	}
	t.Logf("%d of %d evaluations were decided without OPA", decided, all)
	if decided*100 < all*90 {
		t.Errorf("only %d of %d evaluations were decided without OPA", decided, all)
	}
}

// fragments are expressions of generated rules; each # is a number of its own, and %s a value of the ones before.
var fragments = []string{
	`v# := input.object.spec.template.spec.domain.cpu.cores`,
	`v# := input.object.metadata.name`,
	`some k#, v# in input.object.metadata.labels`,
	`some v# in input.object.spec.template.spec.volumes`,
	`some i#, d# in input.object.spec.template.spec.domain.devices.disks; v# := d#.name`,
	`v# := [n | some n in %s]`,
	`v# := {n | some n in [%s, "a", 1]}`,
	`v# := {k: n | some k, n in input.object.metadata.labels}`,
	`v# := {k: n | some k in ["a", "b"]; some n in [%s, 1]}`,
	`v# := count(%s)`,
	`not %s`,
	`not f(%s)`,
	`f(%s)`,
	`v# := g(%s)`,
	`v# := h(%s)`,
	`v# := default_one`,
	`v# := conflict`,
	`v# := fields.a`,
	`some k#, v# in fields`,
	`some v# in elements`,
	`elements[%s]`,
	`v# := dynamic[%s]`,
	`some k#, v# in dynamic`,
	`v# := object.get(input.object, ["spec", "running"], "none")`,
	`v# := object.get(input.object.metadata, "labels", {})`,
	`v# := sprintf("%%v/%%v", [%s, %s])`,
	`v# := concat("-", [%s, "x"])`,
	`[a#, v#] := split(%s, "-")`,
	`[v#, "a"] = [%s, "a"]`,
	`v# := to_number(%s)`,
	`v# := 10 / %s`,
	`v# := %s + 1`,
	`v# := lower(%s)`,
	`%s == %s`,
	`%s != %s`,
	`%s < %s`,
	`%s in ["a", "web-1", 1, true]`,
	`%s in {"a", "web-1", 1, true}`,
	`startswith(%s, "w")`,
	`is_string(%s)`,
	`every n in [%s, 1] { n != "a" }`,
	`every k, n in input.object.metadata.labels { is_string(k); n != %s }`,
	`walk(input.object.metadata, [p#, v#])`,
	`walk(%s, [_, v#])`,
	`v# := data.parameters[%s]`,
	`some k#, v# in data.parameters`,
	`v# := data.parameters.list[_]`,
	`some v# in lib.images`,
	`v# := lib.quantity(%s)`,
	`lib.matches_any(["web-*", "a"], %s)`,
	`v# := json.unmarshal(%s)`,
	`regex.match("^w", %s)`,
	`v# := input.object.metadata[%s]`,
	`v# := [%s, {"a": %s}]`,
	`v# := {"a": %s}; v#.a != 1`,
	`v# := {%s, %s}`,
	`v# := max([%s, 1])`,
	`v# := numbers.range(1, 3)[_]`,
	`input.object.metadata.labels[v#] = input.object.metadata.annotations[v#]`,
	`input.object.metadata.name = %s`,
	`same := [n | n := [%s, 1, "a"][_]; n == %s]; count(same) > 0`,
	`keyed# := [n.name | some n in input.object.spec.template.spec.volumes; n.name == %s]; v# := count(keyed#)`,
	`true`,
}

const generatedRules = `
f(x) if x == "web-1"
f(x) if is_number(x)
f(x) if { some n in x; n == "a" }
f("a")
g(x) := "one" if { x == 1 } else := "text" if { is_string(x) } else := x
h(x) := 1 if x != "a"
h(x) := 2 if x == "b"
h([x, _]) := x
default default_one := "one"
default_one := input.object.spec.runStrategy
conflict := 1 if input.object.spec.running
conflict := 2 if input.object.metadata.labels.app
fields["a"] := input.object.metadata.name
fields["b"] := 1 if input.object.spec.running
fields["b"] := 2 if input.object.metadata.labels.conflict
elements contains input.object.metadata.name
elements contains n if some n in data.parameters.list
dynamic[k] := n if some k, n in input.object.metadata.labels
matches if lib.glob("a*", "ab")
any := json.unmarshal(input.object.metadata.annotations.any)
`

// variables are the names that fragments declare.
var variables = regexp.MustCompile(`\b(?:some ([a-z]+#)|(?:some )?([a-z]+#), [a-z]+#|\[([a-z]+#),|, ([a-z]+#)\b|\b([a-z]+#) :=|\[(v#)\])`)

// generated returns the source of a policy of random rules.
func (m *mutator) generated() string {
	var source strings.Builder
	source.WriteString("package generated\n\nimport data.lib\n" + generatedRules)
	number := 0
	rule := func(head string) {
		values := []string{"any.text", "any.number", "any.list", "any.object", "any[_]", `"a"`, "1"}
		var body, used []string
		for range 1 + m.IntN(5) {
			number++
			fragment := fragments[m.IntN(len(fragments))]
			for _, found := range variables.FindAllStringSubmatch(fragment, -1) {
				for _, name := range found[1:] {
					if name != "" && name != "v#" {
						used = append(used, strings.ReplaceAll(name, "#", fmt.Sprint(number)))
					}
				}
			}
			fragment = strings.ReplaceAll(fragment, "#", fmt.Sprint(number))
			for strings.Contains(fragment, "%s") {
				fragment = strings.Replace(fragment, "%s", values[m.IntN(len(values))], 1)
			}
			body = append(body, strings.ReplaceAll(fragment, "%%", "%"))
			if made := fmt.Sprintf("v%d", number); strings.Contains(fragment, made) {
				values, used = append(values, made, made), append(used, made)
			}
		}
		terms := strings.Join(slices.Compact(used), ", ")
		fmt.Fprintf(&source, "%s contains sprintf(\"%%v\", [[%s]]) if {\n\t%s\n}\n", head, terms, strings.Join(body, "\n\t"))
	}
	rule("deny")
	for range m.IntN(3) {
		rule([]string{"deny", "warn"}[m.IntN(2)])
	}
	return source.String()
}

func TestTheFastPathEvaluatesGeneratedPoliciesAsOPADoes(t *testing.T) {
	changes := newMutator(2)
	machine := machineDocument(t)
	// The type checker accepts everything for values without a type.
	machine.Object["metadata"].(map[string]any)["annotations"].(map[string]any)["any"] = `{"text": "web-1", "number": 2, "list": ["a", 1], "object": {"a": "b"}}`
	const number = 500
	compiled, decided, all, failed := 0, 0, 0, 0
	for i := range number {
		policy, err := testCompiler.Compile(t.Context(), Definition{
			Name: fmt.Sprintf("generated-%d", i), Source: changes.generated(), Parameters: map[string]any{"list": []any{"a", "web-1"}, "a": 1},
		})
		if err != nil {
			continue // its types do not fit, or a variable is not used
		}
		compiled++
		for j := range 6 {
			d := machine
			if j > 0 {
				d = changes.document(machine, 2+3*j)
			}
			all++
			if compared(t, policy, d) {
				decided++
			}
			in, _ := NewInput(d)
			var problem *EvaluationError
			if _, err := policy.Evaluate(t.Context(), in); errors.As(err, &problem) {
				failed++
			}
		}
	}
	t.Logf("%d of %d policies compile; of %d evaluations, %d were decided without OPA, and %d failed", compiled, number, all, decided, failed)
	if compiled*5 < number || decided*4 < all || failed*100 < all {
		t.Errorf("the generated policies prove little: %d compile, %d of %d evaluations were decided without OPA, %d failed", compiled, decided, all, failed)
	}
}
