package template_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestWhatIsSaidOfMatchingIsTrue compares every example of the document.
func TestWhatIsSaidOfMatchingIsTrue(t *testing.T) {
	all := examples(t, filepath.Join("..", "docs", "matching.md"))
	const least = 15
	if len(all) < least {
		t.Fatalf("found %d examples, want %d at least", len(all), least)
	}
	for _, e := range all {
		t.Run(fmt.Sprintf("line %d", e.line), func(t *testing.T) {
			found := match(t, e.blocks["template"], e.blocks["machine"])
			if diff := cmp.Diff(e.blocks["differs"], strings.Join(differences(found), "\n")); diff != "" {
				t.Errorf("differences (-documented +actual):\n%s", diff)
			}
			documented, claimed := e.blocks["shows"]
			if claimed == (e.blocks["differs"] != "") {
				t.Error("the example says nothing of what comes out, or too much")
			}
			if !claimed {
				return
			}
			want := map[string]string{}
			if err := yaml.UnmarshalStrict([]byte(documented), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, found.Values()); diff != "" {
				t.Errorf("values (-documented +actual):\n%s", diff)
			}
		})
	}
}
