package product

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/internal/testfile"
)

// tree makes a checkout with a chart, documents and programs, and returns its root and the folder of the programs.
func tree(t *testing.T) (root, programs string) {
	t.Helper()
	root = t.TempDir()
	for path, content := range map[string]string{
		"charts/stencil/Chart.yaml": "name: stencil\n", "charts/stencil/files/crds/vmt.yaml": "kind: CustomResourceDefinition\n",
		"docs/examples/web-1.yaml": "kind: VirtualMachine\n",
		"hack/release/main.go":     "package main",
	} {
		write(t, filepath.Join(root, path), content)
	}
	for _, name := range names() {
		write(t, filepath.Join(root, "bin", name), "ELF of "+name)
	}
	return root, filepath.Join(root, "bin")
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, content)
}

func digestOfTree(t *testing.T, root, programs string, further ...string) string {
	t.Helper()
	digest, err := digestOf(root, programs, further...)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestTheSameTreeInAnotherFolderHasTheSameDigest(t *testing.T) {
	root, programs := tree(t)
	other, otherPrograms := tree(t)
	if a, b := digestOfTree(t, root, programs, "etcd v3"), digestOfTree(t, other, otherPrograms, "etcd v3"); a != b {
		t.Errorf("%s and %s", a, b)
	}
}

func TestTheDigestFollowsWhateverTestsTakeFromOutside(t *testing.T) {
	for _, tc := range []struct{ name, path string }{
		{"a program", "bin/stencil-manager"},
		{"a template of the chart", "charts/stencil/Chart.yaml"},
		{"a CRD", "charts/stencil/files/crds/vmt.yaml"},
		{"an example", "docs/examples/web-1.yaml"},
		{"the command that builds releases", "hack/release/main.go"},
		{"a file that is new", "charts/stencil/templates/new.yaml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root, programs := tree(t)
			before := digestOfTree(t, root, programs)
			write(t, filepath.Join(root, tc.path), "changed")
			if after := digestOfTree(t, root, programs); after == before {
				t.Error("the digest is the same")
			}
		})
	}
	t.Run("the version of a tool", func(t *testing.T) {
		root, programs := tree(t)
		if digestOfTree(t, root, programs, "etcd v3.7.0") == digestOfTree(t, root, programs, "etcd v3.7.1") {
			t.Error("the digest is the same")
		}
	})
	t.Run("without a program there is none", func(t *testing.T) {
		root, programs := tree(t)
		if err := os.Remove(filepath.Join(programs, "stencilctl")); err != nil {
			t.Fatal(err)
		}
		if _, err := digestOf(root, programs); err == nil || !strings.Contains(err.Error(), "stencilctl") {
			t.Errorf("%v", err)
		}
	})
}

// TestResultsFollowTheProduct runs a package that requires the digest with the real Go command and its cache.
func TestResultsFollowTheProduct(t *testing.T) {
	// A new value for each run of this test, so that an earlier run has left nothing in the cache.
	one := strings.Repeat("0", 32) + freshHex(t)
	two := strings.Repeat("1", 32) + one[32:]
	run := func(digest string) (output string, err error) {
		command := exec.CommandContext(t.Context(), "go", "test", "./probe")
		for _, variable := range os.Environ() {
			if !strings.HasPrefix(variable, Variable+"=") {
				command.Env = append(command.Env, variable)
			}
		}
		if digest != "" {
			command.Env = append(command.Env, Variable+"="+digest)
		}
		text, err := command.CombinedOutput()
		return string(text), err
	}
	for _, tc := range []struct {
		name, digest string
		wantCached   bool
	}{
		{"a product runs the package", one, false},
		{"the same product is answered from the cache", one, true},
		{"a changed product runs the package again", two, false},
	} {
		output, err := run(tc.digest)
		if cached := strings.Contains(output, "(cached)"); err != nil || cached != tc.wantCached {
			t.Errorf("%s: cached %v, %v:\n%s", tc.name, cached, err, output)
		}
	}
	if output, err := run(""); err == nil || !strings.Contains(output, "run `make test`") {
		t.Errorf("without a product: %v:\n%s", err, output)
	}
}

func freshHex(t *testing.T) string {
	t.Helper()
	sum, err := fileSum("/proc/sys/kernel/random/uuid")
	if err != nil {
		t.Fatal(err)
	}
	return sum[:32]
}
