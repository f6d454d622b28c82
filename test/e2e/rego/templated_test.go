package rego_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// golden installs the templates of the documentation's examples, and the namespace of a team that uses them.
var golden = sync.OnceValue(func() error {
	chart, err := install.ChartFolder()
	if err != nil {
		return err
	}
	for _, folder := range []string{"golden", "access"} {
		out, err := stencil.Kubectl(stencil.ctx, nil, "", "apply", "-f", filepath.Join(chart, "..", "..", "docs", "examples", folder))
		if err != nil || out.Code != 0 {
			return fmt.Errorf("applying %s: %w: %s", folder, err, out.Stderr)
		}
	}
	return nil
})

// templated returns a VirtualMachine of team-a that refers to the golden template fedora.
func templated(name string, modifiers ...gen.Modifier) string {
	return gen.Manifest(gen.VM(name, append(modifiers, gen.InNamespace("team-a"), gen.FromTemplate("golden/fedora"))...))
}

// discard deletes VirtualMachines of team-a, bypassing all policies, when the test ends.
func discard(t *testing.T, names ...string) {
	t.Helper()
	collector := harness.Controller(t, stencil.Plane, "kube-system:generic-garbage-collector")
	t.Cleanup(func() {
		as(t, collector, append([]string{"delete", "vm", "--namespace=team-a", "--ignore-not-found"}, names...)...)
	})
}

// awaitAnswer waits until kubectl, run as a user, prints all of the words, and succeeds or not. It returns the standard error.
func awaitAnswer(t *testing.T, user *controlplane.User, stdin string, success bool, words []string, arguments ...string) string {
	t.Helper()
	var stderr string
	harness.Eventually(t, "the answer is as wanted", func() error {
		result, err := stencil.Kubectl(t.Context(), user, stdin, arguments...)
		if err != nil {
			return err
		}
		stderr = result.Stderr
		if (result.Code == 0) != success {
			return fmt.Errorf("exit code %d: %s", result.Code, stderr)
		}
		for _, word := range words {
			if !strings.Contains(stderr, word) {
				return fmt.Errorf("it does not say %q: %s", word, stderr)
			}
		}
		return nil
	})
	return stderr
}

func needGolden(t *testing.T) {
	t.Helper()
	if err := golden(); err != nil {
		t.Fatal(err)
	}
}
