package approval_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

// FuzzParseOverride checks that every override that parses has a text with the same meaning, and that the position of a syntax error is within the
// text.
func FuzzParseOverride(f *testing.F) {
	for _, text := range []string{
		"spec", "spec.a.*[*]", `metadata.labels["a.b/c"]`, "spec.l[name=a.b].c", `spec.l[name="a b"]["\"\\"]`,
		"metadata.name", "spec..a", "spec.a[", `spec["`, "spec.\xff", "spec[name=\"\"]", "spec.ä",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		override, err := approval.ParseOverride(text)
		if err != nil {
			syntax, ok := err.(*approval.SyntaxError) //nolint:errorlint // the very type is promised
			if !ok || syntax.Column < 1 || syntax.Column > len([]rune(text))+1 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := approval.ParseOverride(override.String())
		if err != nil || again.String() != override.String() {
			t.Fatalf("%q is %q, which is %q (%v)", text, override, again, err)
		}
		if len(override.String()) > len(text) {
			t.Errorf("%q is not the shortest form of %q", override, text)
		}
	})
}

// FuzzChanges checks both guarantees of overrides, for any two objects and any overrides: If all changes are overridable, the objects are equal after
// everything overridable is removed from both. A change of overridable places only is always allowed.
func FuzzChanges(f *testing.F) {
	for _, seed := range []struct{ old, new, overrides string }{
		{`{"spec":{"a":1,"l":[{"name":"a","x":1},{"name":"b"}]}}`, `{"spec":{"a":2,"l":[{"name":"b"},{"name":"c"}]}}`, "spec.l[*].x\nspec.a"},
		{`{"metadata":{"labels":{"a":"b"}},"spec":{"m":{"x":{"y":1}},"u":[{"x":1},{"x":2}]}}`, `{"metadata":{},"spec":{"m":{},"u":[{"x":1},{"x":3}]}}`, "metadata.labels.*\nspec.u[*].x\nspec.*.x.y"},
		{`{"spec":{"l":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"l":[{"name":"b"},{"name":"a"}]}}`, "spec.l[name=a]"},
		{`{"spec":{"e":{"s":true}}}`, `{"spec":{}}`, "spec.e.s"},
		{`{"spec":{"t":{}}}`, `{"spec":{"t":null,"u":[null,[]]}}`, "spec.t.*"},
		{`{"spec":[{"name":"a"}],"metadata":3,"other":{"a":1}}`, `{"spec":"x","metadata":{"labels":[]},"other":{}}`, "spec"},
	} {
		for n := range uint64(8) {
			f.Add(seed.old, seed.new, seed.overrides, n)
		}
	}
	f.Fuzz(func(t *testing.T, oldText, newText, overrides string, seed uint64) {
		spec := v1alpha1.TemplateApprovalSpec{
			Namespaces: []string{"team-a"},
			Templates:  []v1alpha1.ApprovedTemplate{{Namespace: "golden", Name: "fedora"}},
		}
		var paths [][]string
		for _, line := range strings.SplitN(overrides, "\n", 8) {
			override, err := approval.ParseOverride(line)
			if err != nil {
				continue
			}
			spec.Overrides = append(spec.Overrides, line)
			paths = append(paths, split(override.String()))
		}
		a, err := approval.Compile(&v1alpha1.TemplateApproval{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		old, okay := decode(oldText)
		new, also := decode(newText)
		if !okay || !also {
			return
		}
		if same := approval.Changes(old, old); len(same) > 0 {
			t.Fatalf("an object differs from itself in %v", texts(same))
		}
		holdNothingElse(t, a, paths, old, new)
		if len(paths) > 0 {
			random := rand.New(rand.NewPCG(seed, 1))
			edited, _ := decode(oldText)
			edit(random, edited, paths[random.IntN(len(paths))])
			holdAllowed(t, a, old, edited)
			holdNothingElse(t, a, paths, edited, new)
		}
	})
}

func decode(text string) (object map[string]any, okay bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return object, decoder.Decode(&object) == nil
}

func holdAllowed(t *testing.T, a *approval.Approval, old, new map[string]any) {
	t.Helper()
	for _, path := range approval.Changes(old, new) {
		if !a.Overridable(path) {
			t.Fatalf("a change within the overrides is denied at %s:\n%v\n%v", path, old, new)
		}
	}
}

func holdNothingElse(t *testing.T, a *approval.Approval, paths [][]string, old, new map[string]any) {
	t.Helper()
	for _, path := range approval.Changes(old, new) {
		if !a.Overridable(path) {
			return
		}
	}
	before, after := evaluatedParts(old), evaluatedParts(new)
	for _, path := range paths {
		before = erase(before, path)
		after = erase(after, path)
	}
	if diff := cmp.Diff(prune(before), prune(after)); diff != "" {
		t.Fatalf("overrides %v allow a change beside them:\n%s", paths, diff)
	}
}
