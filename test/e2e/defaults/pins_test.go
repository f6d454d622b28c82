package defaults_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/test/controlplane"
)

// buildStencilctl returns a function that runs the command as a user.
func buildStencilctl(t *testing.T) func(as *controlplane.User, arguments ...string) (code int, output string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "stencilctl")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/stencilctl")
	build.Dir = "../../.."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building stencilctl: %v\n%s", err, output)
	}
	return func(as *controlplane.User, arguments ...string) (int, string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), binary, arguments...)
		command.Env = append(os.Environ(), "KUBECONFIG="+as.Kubeconfig)
		var output bytes.Buffer
		command.Stdout, command.Stderr = &output, &output
		err := command.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return command.ProcessState.ExitCode(), output.String()
	}
}

func TestUnpinAndRepin(t *testing.T) {
	stencilctl := buildStencilctl(t)
	discard(t, "team-a", "pin-1", "pin-2", "pin-own")
	labelled := func(name, more string) string {
		return strings.Replace(vmWith(name, more), "namespace: team-a", "namespace: team-a, labels: {pins: some}", 1)
	}
	mustKubectl(t, ada, labelled("pin-1", ""), "create", "-f", "-")
	mustKubectl(t, ada, labelled("pin-2", `, pciAddress: "0000:0a:00.0"`), "create", "-f", "-")
	before := stored(t, "team-a", "pin-1")
	want := func(code int, output string, wantCode int, texts ...string) {
		t.Helper()
		if code != wantCode {
			t.Errorf("exit %d, want %d: %s", code, wantCode, output)
		}
		for _, text := range texts {
			if !strings.Contains(output, text) {
				t.Errorf("%q is not in %s", text, output)
			}
		}
	}

	// Nothing is done without --confirm.
	code, output := stencilctl(ada, "defaults", "unpin", "-n", "team-a", "-l", "pins=some")
	want(code, output, 0, "team-a/pin-1\n", "machine type: "+canonical(t)+" -> q35", "PCI address of interfaces/default", "2 of 2 would be changed; nothing is without --confirm")
	// KubeVirt's controllers write the status meanwhile: the resource version proves nothing.
	if now := stored(t, "team-a", "pin-1"); at(t, now, "spec") != at(t, before, "spec") || now.GetAnnotations()[contract.AnnotationDefaultsSkip] != "" {
		t.Errorf("without --confirm it was\n%s\nand is\n%s, %v", at(t, before, "spec"), at(t, now, "spec"), now.GetAnnotations())
	}

	code, output = stencilctl(ada, "defaults", "unpin", "-n", "team-a", "-l", "pins=some", "--confirm")
	want(code, output, 0, "2 of 2 changed")
	for _, name := range []string{"pin-1", "pin-2"} {
		vm := stored(t, "team-a", name)
		if domain(t, vm, "machine", "type") != "q35" || vm.GetAnnotations()[contract.AnnotationDefaultsSkip] != "true" {
			t.Errorf("%s is %s, %v", name, domain(t, vm, "machine"), vm.GetAnnotations())
		}
	}
	if got := addresses(t, "team-a", "pin-2", []string{"root", "data"}, []string{"default"}); got["root"] != "0000:0a:00.0" || got["data"]+got["default"] != "" {
		t.Errorf("what the person wrote stays, and nothing else: %v", got)
	}
	// An update in between restores nothing.
	mustKubectl(t, ada, "", "patch", "virtualmachine", "pin-1", "--type=merge", "--patch", `{"spec": {"runStrategy": "Manual"}}`)
	if got := domain(t, stored(t, "team-a", "pin-1"), "machine", "type"); got != "q35" {
		t.Errorf("the machine type is %s", got)
	}

	code, output = stencilctl(ada, "defaults", "repin", "pin-1", "pin-2", "-n", "team-a", "--confirm")
	want(code, output, 0, "filled in: machine type "+canonical(t)+", 3 PCI addresses", "2 of 2 changed")
	after := stored(t, "team-a", "pin-1")
	if at(t, before, "spec", "template") != at(t, after, "spec", "template") || after.GetAnnotations()[contract.AnnotationDefaultsSkip] != "" {
		t.Errorf("it was\n%s\nand is\n%s", at(t, before, "spec", "template"), at(t, after, "spec", "template"))
	}
	if got := addresses(t, "team-a", "pin-2", []string{"root"}, nil); got["root"] != "0000:0a:00.0" {
		t.Errorf("the person's own address is %v", got)
	}
	// Pinned VMs are repinned at once.
	code, output = stencilctl(ada, "defaults", "repin", "pin-1", "-n", "team-a", "--confirm")
	want(code, output, 0, "-> q35", "filled in: machine type "+canonical(t), "1 of 1 changed")
	code, output = stencilctl(ada, "defaults", "repin", "pin-1", "-n", "team-a")
	want(code, output, 0, "and what is open is filled in anew", "1 of 1 would be changed")

	t.Run("a machine that is to run is not touched", func(t *testing.T) {
		mustKubectl(t, ada, "", "patch", "virtualmachine", "pin-1", "--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`)
		code, output := stencilctl(ada, "defaults", "repin", "pin-1", "missing", "-n", "team-a", "--confirm")
		want(code, output, 1, "team-a/pin-1: it runs, or is to run: stop it first", "team-a/missing: there is none", "0 of 1 changed")
	})
	t.Run("nor one whose owner wants it left alone", func(t *testing.T) {
		mustKubectl(t, ada, strings.Replace(vmWith("pin-own", ""), "namespace: team-a", `namespace: team-a, annotations: {defaults.template.kubevirt.io/skip: "true"}`, 1), "create", "-f", "-")
		code, output := stencilctl(ada, "defaults", "repin", "pin-own", "-n", "team-a", "--confirm")
		want(code, output, 1, "it is excluded by its annotation")
	})
	t.Run("an approval judges it as any other update", func(t *testing.T) {
		discard(t, "vault", "pin-governed")
		mustKubectl(t, ada, vmObject("pin-governed", "vault", "golden/pinned", ""), "--namespace=vault", "create", "-f", "-")
		for _, more := range []string{"--confirm", "--confirm=false"} {
			code, output := stencilctl(ada, "defaults", "unpin", "--all", "-n", "vault", more)
			want(code, output, 1, "vault/pin-governed: denied: ", "not approved", "0 of 1")
		}
	})
	t.Run("a selection is needed, and one only", func(t *testing.T) {
		for _, arguments := range [][]string{{}, {"a", "--all"}, {"-l", "a=b", "--all"}} {
			code, output := stencilctl(ada, append([]string{"defaults", "unpin", "-n", "team-a"}, arguments...)...)
			want(code, output, 2, "name VirtualMachines, or select them")
		}
		code, output := stencilctl(ada, "defaults", "unpin", "a", "-A")
		want(code, output, 2, "names are of one namespace")
	})
}
