package template_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/template"
)

// example is a template in the language reference, with the blocks up to the next template block.
type example struct {
	line   int
	blocks map[string]string
}

// examples reads the fenced blocks of a document with a second word in the info string, such as "yaml renders".
func examples(tb testing.TB, file string) []example {
	tb.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var all []example
	lines := strings.Split(string(content), "\n")
	for i := 0; i < len(lines); i++ {
		info, found := strings.CutPrefix(lines[i], "```")
		_, what, isExample := strings.Cut(info, " ")
		if !found || !isExample {
			continue
		}
		start := i + 1
		for i = start; lines[i] != "```"; i++ {
		}
		if what == "template" {
			all = append(all, example{line: start, blocks: map[string]string{}})
		}
		all[len(all)-1].blocks[what] = strings.Join(lines[start:i], "\n")
	}
	return all
}

// TestTheLanguageReferenceIsTrue renders every example of the reference.
func TestTheLanguageReferenceIsTrue(t *testing.T) {
	all := examples(t, filepath.Join("..", "docs", "template-language.md"))
	const least = 30
	if len(all) < least {
		t.Fatalf("found %d examples, want %d at least", len(all), least)
	}
	for _, e := range all {
		t.Run(fmt.Sprintf("line %d", e.line), e.check)
	}
}

func (e example) check(t *testing.T) {
	values := map[string]string{}
	if err := yaml.UnmarshalStrict([]byte(e.blocks["values"]), &values); err != nil {
		t.Fatal(err)
	}
	var seed [32]byte
	compiled, err := template.Compile(parse(t, e.blocks["template"]), template.WithRandom(rand.NewChaCha8(seed)))
	var rendered *template.Rendered
	if _, compiledOnly := e.blocks["warns"]; err == nil && !compiledOnly {
		rendered, err = e.render(t, compiled, values)
	}
	if diff := cmp.Diff(e.blocks["refused"], strings.Join(causes(t, err), "\n")); diff != "" {
		t.Errorf("causes (-documented +actual):\n%s", diff)
	}
	if err != nil {
		return
	}
	claims := 0
	if want, claimed := e.blocks["renders"]; claimed {
		claims++
		if diff := cmp.Diff(fullMachine(t, want), string(rendered.JSON())); diff != "" {
			t.Errorf("VirtualMachine (-documented +actual):\n%s", diff)
		}
	}
	if want, claimed := e.blocks["objects"]; claimed {
		claims++
		encoded, err := yaml.YAMLToJSONStrict([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(canonical(t, encoded)), string(rendered.Objects())); diff != "" {
			t.Errorf("objects (-documented +actual):\n%s", diff)
		}
	}
	if want, claimed := e.blocks["says"]; claimed {
		claims++
		if diff := cmp.Diff(want, rendered.Message()); diff != "" {
			t.Errorf("message (-documented +actual):\n%s", diff)
		}
	}
	if want, claimed := e.blocks["warns"]; claimed {
		claims++
		if diff := cmp.Diff(want, strings.Join(compiled.Warnings(), "\n")); diff != "" {
			t.Errorf("warnings (-documented +actual):\n%s", diff)
		}
	}
	if _, claimed := e.blocks["binds"]; claimed {
		claims++
	}
	if claims == 0 {
		t.Error("the example says nothing of what comes out")
	}
}

// render binds and renders. If the example has a name, it binds that first.
func (e example) render(t *testing.T, compiled *template.Compiled, values map[string]string) (*template.Rendered, error) {
	if name, found := e.blocks["name"]; found {
		bound, err := compiled.BindName(name, values)
		if err != nil {
			return nil, err
		}
		want := map[string]string{}
		if err := yaml.UnmarshalStrict([]byte(e.blocks["binds"]), &want); err != nil {
			t.Fatal(err)
		}
		if bound == nil {
			bound = map[string]string{}
		}
		if diff := cmp.Diff(want, bound); diff != "" {
			t.Errorf("bound (-documented +actual):\n%s", diff)
		}
		for parameter, value := range bound {
			values[parameter] = value
		}
	}
	binding, err := compiled.Bind(values)
	if err != nil {
		return nil, err
	}
	return compiled.RenderAs(binding, e.blocks["name"])
}

// fullMachine adds to a documented VirtualMachine the fields that the document omits.
func fullMachine(tb testing.TB, documented string) string {
	tb.Helper()
	machine := map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{}, "spec": map[string]any{}}
	encoded, err := yaml.YAMLToJSONStrict([]byte(documented))
	if err != nil {
		tb.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&machine); err != nil {
		tb.Fatal(err)
	}
	if encoded, err = json.Marshal(machine); err != nil {
		tb.Fatal(err)
	}
	return string(canonical(tb, encoded))
}
