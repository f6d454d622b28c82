package lib_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/vmstencil/stencil/internal/testfile"
)

var update = flag.Bool("update", false, "write docs/policies/helpers.md")

// TestThePageOfTheHelpers compares docs/policies/helpers.md with their METADATA.
func TestThePageOfTheHelpers(t *testing.T) {
	type helper struct{ title, description string }
	var helpers []helper
	for name, module := range modules(t) {
		annotations, errs := ast.BuildAnnotationSet([]*ast.Module{module})
		if len(errs) > 0 {
			t.Fatalf("%s: %v", name, errs)
		}
		for _, entry := range annotations.Flatten() {
			if entry.GetRule() == nil {
				continue
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(entry.Annotations.Title, "lib."), "(")
			if rule := entry.GetRule().Head.Ref().String(); rule != name && !strings.HasPrefix(rule, name+"[") {
				t.Errorf("%s is called %q in its METADATA", rule, entry.Annotations.Title)
			}
			helpers = append(helpers, helper{entry.Annotations.Title, strings.TrimSpace(entry.Annotations.Description)})
		}
	}
	slices.SortFunc(helpers, func(a, b helper) int { return strings.Compare(a.title, b.title) })
	var text strings.Builder
	text.WriteString("\n| Helper | What it is |\n|---|---|\n")
	for _, each := range helpers {
		fmt.Fprintf(&text, "| `%s` | %s |\n", each.title, strings.ReplaceAll(each.description, "|", `\|`))
	}
	text.WriteString("\n")

	testfile.Generated{
		Path: "../../docs/policies/helpers.md", Begin: "<!-- helpers:begin -->\n", End: "<!-- helpers:end -->",
		Update: *update, Command: "go test ./rego/lib -update",
	}.Compare(t, text.String())
}

// sorted returns a list in the order of its items' JSON.
func sorted(value any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}
	slices.SortFunc(list, func(a, b any) int {
		left, _ := json.Marshal(a)
		right, _ := json.Marshal(b)
		return strings.Compare(string(left), string(right))
	})
	return list
}
