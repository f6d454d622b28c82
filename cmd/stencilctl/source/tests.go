package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	suite "github.com/vmstencil/stencil/policies/tests"
)

// AddTests adds to each policy the test files that belong to it: those at the given paths, and
// those in the folders of the policies. A file belongs to the policies in its folder that have
// its package. A file at the given paths, or in a folder among them, must belong to a policy,
// otherwise an error is returned.
func (r *Reader) AddTests(policies []*Policy, paths []string) error {
	named := map[string]bool{}
	for _, path := range paths {
		if path == Stdin {
			continue
		}
		names, _, err := expand(path)
		if err != nil {
			return cli.Usage(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, testSuffix) {
				named[name] = true
			}
		}
	}

	names := map[string]bool{}
	for name := range named {
		names[name] = true
	}
	for _, policy := range policies {
		for _, name := range testsIn(filepath.Dir(policy.File)) {
			names[name] = true
		}
	}
	for _, name := range sorted(names) {
		module, err := readTest(name)
		if err != nil {
			return err
		}
		if !give(module, policies) && named[name] {
			return cli.Usage(fmt.Errorf("%s: no policy in %s has package %s", name, filepath.Dir(name), packageOf(module.Source)))
		}
	}
	return nil
}

// give adds a test file to the policies that it belongs to.
func give(module suite.Module, policies []*Policy) bool {
	given := false
	about := packageOf(module.Source)
	for _, policy := range policies {
		its := packageOf(policy.Spec.Definition.Source)
		if filepath.Dir(policy.File) != filepath.Dir(module.Name) || its == "" {
			continue
		}
		// A file that cannot be parsed is added to every policy: its error will be reported.
		if about == "" || about == its || about == its+"_test" {
			policy.Modules = append(policy.Modules, module)
			given = true
		}
	}
	return given
}

func testsIn(folder string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil // the standard input has no folder
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() && strings.HasSuffix(entry.Name(), testSuffix) {
			names = append(names, filepath.Join(folder, entry.Name()))
		}
	}
	return names
}

func readTest(name string) (suite.Module, error) {
	content, err := readFile(name)
	if err != nil {
		return suite.Module{}, err
	}
	return suite.Module{Name: name, Source: string(content)}, nil
}

// packageOf returns the package of a module, empty when it cannot be parsed.
func packageOf(source string) string {
	module, err := ast.ParseModuleWithOpts("", source, ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil || module == nil {
		return ""
	}
	return strings.TrimPrefix(module.Package.Path.String(), "data.")
}

func sorted(set map[string]bool) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
