package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/runner/selection"
)

// TestATestThatABrokenLineFailsIsSelected breaks one line in each room: the test that then fails belongs to a package that is selected, and so is an
// end-to-end test that executes the room.
//
//suite:full
func TestATestThatABrokenLineFailsIsSelected(t *testing.T) {
	root, err := product.Root()
	if err != nil {
		t.Fatal(err)
	}
	read, err := readPlan(root)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := toolVersions(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := selection.ReadTree(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	known := &history{root: root}
	before := map[string]selection.Package{}
	for _, name := range recordedSuites {
		wanted, err := read.suite(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := known.listIn(t.Context(), tree, name, wanted, tools); err != nil {
			t.Fatal(err)
		}
		for _, each := range known.all() {
			before[each.Key] = each
		}
	}
	// changed reports whether a package has other inputs in a tree.
	changed := func(tree *selection.Tree, folder string) bool {
		return slices.ContainsFunc(recordedSuites, func(suite string) bool {
			one, found := before[suite+" "+folder]
			return found && tree.Again(one).Digest != one.Digest
		})
	}

	for _, tc := range []struct {
		module, file, line, test string
		// also is an end-to-end package that executes the room.
		also string
	}{
		{"template", "template/slot.go", ": this key occurs twice", "TestRender", "test/e2e/road"},
		{"defaulting", "defaulting/relevant.go", "persistentVolumeClaim", "TestRelevant", "test/e2e/defaults"},
		{".", "approval/closed.go", "empty as in the template", "TestAParameterThatIsNotListedIsClosed", "test/e2e/attacks"},
		{".", "rego/shape.go", "name one value: data.cluster.NAME", "TestReferencesToDataAreChecked", "test/e2e/rego"},
		{".", "policies/tests/modules.go", "the test is not true", "TestRun", "test/e2e/apiserver"},
		{".", "ovf/xml.go", "contains no element", "TestMalformedDescriptorsAreRejected", "test/e2e/transfers"},
		{".", "disk/qcow2/header.go", "truncated: the file ends in the header", "TestHostileImagesAreRejected", "test/e2e/transfers"},
		{".", "seal/inspect.go", "there is no partition table and no known file system", "TestUnexaminedContents", "test/e2e/transfers"},
		{".", "goldenimage/conditions.go", "spec.suspended stops checks", "TestImportsOfFiles", "test/e2e/goldenimages"},
		{".", "revision/prove.go", "the spec differs", "TestProveFindsEveryDifference", "test/e2e/revisions"},
		{".", "cache/policies/activeversions.go", "it does not compile", "TestABrokenPolicyFailsWhenItIsEvaluated", "test/e2e/rego"},
		{".", "internal/outbound/outbound.go", "the address is not public", "Test", "test/e2e/goldenimages"},
		{".", "apiserver/decode.go", "there is nothing to fill in", "TestDefaultsThatAreNotFilledIn", "test/e2e/apiserver"},
		{".", "webhooks/render/base.go", "it contains a sensitive or a generated value", "TestARemovedOverrideHasTheTemplatesValue", "test/e2e/road"},
		{".", "reconcilers/compliance/condition.go", "no policy objects to what this template makes with its defaults", "TestTheConditionOfATemplate", "test/e2e/rego"},
		{".", "cmd/stencilctl/policy/provereport.go", "combinations of values", "TestProveReadsTheCluster", "test/e2e/cli"},
	} {
		t.Run(tc.file, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(root, tc.file))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(content), tc.line) != 1 {
				t.Fatalf("%s has %q not once: choose another line", tc.file, tc.line)
			}
			broken := strings.Replace(string(content), tc.line, strings.ToUpper(tc.line)+"1", 1)
			after := tree.With(tc.file, []byte(broken))
			for _, folder := range []string{filepath.Dir(tc.file), tc.also} {
				if !changed(after, folder) {
					t.Errorf("%s is not selected", folder)
				}
			}
			if output, fails := failsWith(t, root, tc.module, tc.file, broken, tc.test); !fails {
				t.Errorf("%s does not fail with a broken %s: choose another line or test\n%s", tc.test, tc.file, output)
			}
		})
	}
	// And not everything, always.
	after := tree.With("ovf/xml.go", []byte("package ovf\n"))
	for _, folder := range []string{"template", "rego", "webhooks/render", "test/e2e/attacks", "test/e2e/outage"} {
		if changed(after, folder) {
			t.Errorf("%s is selected after a change in ovf", folder)
		}
	}
}

// failsWith reports whether a test fails with another content of a file.
func failsWith(t *testing.T, root, module, file, content, test string) (output string, fails bool) {
	t.Helper()
	folder := t.TempDir()
	changed, overlay := filepath.Join(folder, "changed.go"), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, file): changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{changed: content, overlay: string(replace)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	relative, err := filepath.Rel(module, filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay="+overlay, "-run=^("+test+")", "./"+relative)
	command.Dir = filepath.Join(root, module)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	printed, err := command.CombinedOutput()
	return string(printed), err != nil && strings.Contains(string(printed), "--- FAIL")
}
