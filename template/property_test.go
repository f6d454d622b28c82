package template_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	virtv1 "kubevirt.io/api/core/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"

	"github.com/vmstencil/stencil/template"
)

// filler fills Go values at random, so that their JSON is that of a possible VirtualMachine.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.2).NumElements(1, 2).MaxDepth(14).Funcs(
		func(s *string, c randfill.Continue) { *s = fmt.Sprintf("s%d-é\"\\\n", c.Intn(1000)) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(fmt.Sprintf("%dMi", c.Intn(5000)))
		},
		func(m *metav1.Time, c randfill.Continue) { m.Time = time.Unix(c.Int63n(4e9), 0).UTC() },
		func(i *intstr.IntOrString, c randfill.Continue) { *i = intstr.FromInt32(c.Int31()) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:a":{}}`) },
	)
}

// randomMachine returns a VirtualMachine with a random spec.
func randomMachine(seed int64) *virtv1.VirtualMachine {
	vm := &virtv1.VirtualMachine{}
	filler(seed).Fill(&vm.Spec)
	vm.Name, vm.Labels = fmt.Sprintf("vm-%d", seed), map[string]string{"a": "b"}
	return vm
}

// TestEveryVirtualMachineIsATemplate uses random VirtualMachines of KubeVirt's types, with all fields, as templates, and
// verifies that they are rendered unchanged.
func TestEveryVirtualMachineIsATemplate(t *testing.T) {
	for seed := range int64(50) {
		encoded := mustMarshal(t, randomMachine(seed))
		rendered, err := render(raw(string(encoded)), nil)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, encoded)
		}
		var want, got virtv1.VirtualMachine
		decodeStrictly(t, encoded, &want)
		decodeStrictly(t, rendered.JSON(), &got)
		want.TypeMeta, got.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
		if !equality.Semantic.DeepEqual(want, got) {
			t.Errorf("seed %d (-want +got):\n%s", seed, cmp.Diff(want, got))
		}
	}
}

func decodeStrictly(tb testing.TB, encoded []byte, into any) {
	tb.Helper()
	strict, err := kjson.UnmarshalStrict(encoded, into)
	if err != nil || len(strict) > 0 {
		tb.Fatalf("decoding strictly: %v %v\n%s", err, strict, encoded)
	}
}

// checkRendered verifies the general properties of every rendered VirtualMachine.
func checkRendered(tb testing.TB, rendered *template.Rendered) {
	tb.Helper()
	encoded := rendered.JSON()
	var vm virtv1.VirtualMachine
	decodeStrictly(tb, encoded, &vm)
	if vm.GroupVersionKind() != virtv1.VirtualMachineGroupVersionKind {
		tb.Errorf("got a %v", vm.GroupVersionKind())
	}
	if len(encoded) > template.MaxRenderedBytes {
		tb.Errorf("got %d bytes", len(encoded))
	}
	if canonical := canonical(tb, encoded); !bytes.Equal(canonical, encoded) {
		tb.Errorf("is not canonical: got\n%s\nwant\n%s", encoded, canonical)
	}
}

// canonical returns JSON as encoding/json writes it: sorted keys and no white space.
func canonical(tb testing.TB, encoded []byte) []byte {
	tb.Helper()
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		tb.Fatalf("%v: %s", err, encoded)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(tree); err != nil {
		tb.Fatal(err)
	}
	// encoding/json escapes these two for the sake of JavaScript, and uses short forms for two control characters.
	text := strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029", `\b`, `\u0008`, `\f`, `\u000c`).Replace(strings.TrimSuffix(out.String(), "\n"))
	return []byte(text)
}

// TestRenderingIsSubstitution compares the engine with a simple definition of its result, over random templates and values.
func TestRenderingIsSubstitution(t *testing.T) {
	pieces := []string{"${A}", "${B}", "$${", "$", "{", "}", "A", "${C", "\n", "\"", "é", "${{A}}", "$${A}", "\\"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var written, want strings.Builder
		values := map[string]string{}
		for _, name := range []string{"A", "B"} {
			for range random.IntN(3) {
				values[name] += pieces[random.IntN(len(pieces))]
			}
		}
		written.WriteString("_") // so that no text is a whole ${{A}}
		for range random.IntN(8) {
			written.WriteString(pieces[random.IntN(len(pieces))])
		}
		for rest := written.String(); rest != ""; {
			switch {
			case strings.HasPrefix(rest, "$${"):
				want.WriteString("${")
				rest = rest[3:]
			case strings.HasPrefix(rest, "${A}"), strings.HasPrefix(rest, "${B}"):
				want.WriteString(values[rest[2:3]])
				rest = rest[4:]
			default:
				want.WriteByte(rest[0])
				rest = rest[1:]
			}
		}

		vm := mustMarshal(t, map[string]any{"metadata": map[string]any{"name": written.String(), "labels": map[string]any{written.String(): "x"}}})
		object := raw(string(vm))
		object.Spec.UndefinedReferences = "Keep"
		object.Spec.Parameters = parse(t, `{parameters: [{name: A, multiline: true}, {name: B, multiline: true}], virtualMachine: {}}`).Spec.Parameters
		rendered, err := render(object, values)
		if err != nil {
			t.Fatalf("%q with %v: %v", written.String(), values, err)
		}
		checkRendered(t, rendered)
		metadata := rendered.Object()["metadata"].(map[string]any)
		if got := metadata["name"]; got != want.String() {
			t.Errorf("%q with %v: got %q, want %q", written.String(), values, got, want.String())
		}
		if _, found := metadata["labels"].(map[string]any)[want.String()]; !found {
			t.Errorf("%q with %v as a key: got %v, want %q", written.String(), values, metadata["labels"], want.String())
		}
	}
}

func TestObjectIsATreeOfItsOwn(t *testing.T) {
	object := raw(`{"metadata":{"name":"a"},"spec":{"running":true,"dataVolumeTemplates":[{"metadata":{"managedFields":[{"fieldsV1":
		{"int":9007199254740993,"min":-9223372036854775808,"big":18446744073709551616,"fraction":1.5,"long":1.10,"exponent":1e3,"null":null,"no":false,"list":[1,"a"]}}]}}]}}`)
	rendered, err := render(object, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"running": true, "dataVolumeTemplates": []any{map[string]any{"metadata": map[string]any{"managedFields": []any{
			map[string]any{"fieldsV1": map[string]any{
				"int": int64(9007199254740993), "min": int64(-9223372036854775808), "big": json.Number("18446744073709551616"),
				"fraction": 1.5, "long": json.Number("1.10"), "exponent": json.Number("1e3"), "null": nil, "no": false, "list": []any{int64(1), "a"},
			}}}}}}},
	}
	tree := rendered.Object()
	if diff := cmp.Diff(want, tree); diff != "" {
		t.Errorf("Object (-want +got):\n%s", diff)
	}
	tree["metadata"].(map[string]any)["name"] = "changed"
	if diff := cmp.Diff(want, rendered.Object()); diff != "" {
		t.Errorf("Object after a caller's change (-want +got):\n%s", diff)
	}
}

func TestEverythingIsSafeForConcurrentUse(t *testing.T) {
	compiled := compile(t, `
message: ${NAME} ${PASSWORD}
objectLabels: {"${LABEL}": "${NAME}"}
parameters:
- {name: NAME, generate: expression, from: "vm-[a-z0-9]{8}", pattern: "vm-.*"}
- {name: PASSWORD, generate: expression, from: "[\\A\\a]{12}", sensitive: true}
- {name: LABEL, value: team}
- {name: CORES, type: int}
virtualMachine: {metadata: {name: "${NAME}"}, spec: {template: {spec: {hostname: "${PASSWORD}", domain: {cpu: {cores: "${{CORES}}"}}}}}}
`)
	shared := bound(t, compiled, nil)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 100 {
				values := map[string]string{"CORES": fmt.Sprint(i), "NAME": fmt.Sprintf("vm-%d", i)}
				binding, err := compiled.Bind(values)
				if err != nil {
					t.Error(err)
					return
				}
				rendered, err := compiled.Render(binding)
				if err != nil {
					t.Error(err)
					return
				}
				if want := fmt.Sprintf(`"name":"vm-%d"`, i); !strings.Contains(string(rendered.JSON()), want) {
					t.Errorf("got %s, want %s in it", rendered.JSON(), want)
				}
				again, err := compiled.Render(shared)
				if err != nil || again.Message() == "" || again.Object() == nil {
					t.Error(err)
				}
				if bound, err := compiled.BindName("vm-x", nil); err != nil || bound["NAME"] != "vm-x" {
					t.Error(bound, err)
				}
				compiled.Parameters()
				compiled.Warnings()
			}
		})
	}
	group.Wait()
}
