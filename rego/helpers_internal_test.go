package rego

import (
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/vmstencil/stencil/rego/lib"
)

// TestHelpersDependOnTheInputAlone checks what sandbox.Shared assumes.
func TestHelpersDependOnTheInputAlone(t *testing.T) {
	sources, err := lib.Sources()
	if err != nil {
		t.Fatal(err)
	}
	for name, source := range sources {
		module, err := ast.ParseModuleWithOpts(name, source, ast.ParserOptions{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		ast.WalkTerms(module, func(term *ast.Term) bool {
			if ref, ok := term.Value.(ast.Ref); ok && ref[0].Equal(ast.DefaultRootDocument) && !strings.HasPrefix(ref.String(), "data.lib") {
				t.Errorf("%s refers to %s", name, ref)
			}
			return false
		})
		for _, rule := range module.Rules {
			ast.WalkExprs(rule, func(expr *ast.Expr) bool {
				if len(expr.With) > 0 {
					t.Errorf("%s:%d replaces a document", name, expr.Location.Row)
				}
				return false
			})
		}
	}
}

func TestAPolicyIsCompiledWithTheHelpersThatItUses(t *testing.T) {
	for name, tc := range map[string]struct {
		source  string
		has     string
		without string
	}{
		"none":                {"package p\n\ndeny contains \"images\" if true\n", "", "images"},
		"one":                 {"package p\n\ndeny contains \"x\" if count(data.lib.images) > 1\n", "images", "memory"},
		"what that needs too": {"package p\n\ndeny contains \"x\" if data.lib.image(\"a\")\n", "image_split", "images"},
		"by another name":     {"package p\n\nimport data.lib as l\n\ndeny contains \"x\" if count(l.memory) > 1\n", "quantity", "images"},
	} {
		t.Run(name, func(t *testing.T) {
			module, err := ast.ParseModuleWithOpts("p", tc.source, ast.ParserOptions{RegoVersion: ast.RegoV1})
			if err != nil {
				t.Fatal(err)
			}
			names := map[string]bool{}
			if used := testCompiler.helpers.module(module); used != nil {
				for _, rule := range used.Rules {
					names[ruleName(rule)] = true
				}
			}
			if tc.has != "" && !names[tc.has] || names[tc.without] {
				t.Errorf("the helpers are %v", names)
			}
		})
	}
}
