package apiserver_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
)

// TestStencilctl processes and creates with the command line, as people who may not read
// the templates.
func TestStencilctl(t *testing.T) {
	binary := stencilctl(t)
	for _, tc := range []struct {
		name             string
		as               *controlplane.User
		line             string
		wantCode         int
		wantOut, wantErr string
	}{
		{"process", bob, "process shop/box -p NAME=cli-1 -p NUMBER=1.10 -o name", 0, "virtualmachine.kubevirt.io/cli-1\n", "cli-1 has password "},
		{"an unused parameter", bob, "process shop/box -p NAME=cli-1 -p UNUSED=x -o name", 0, "virtualmachine.kubevirt.io/cli-1\n", "UNUSED"},
		{"bad values", bob, "process shop/box -p CORES=9 -p NAMME=a", 3, "", "parameters[CORES]: "},
		{"a template that is not there", ada, "process shop/none", 3, "", "not found"},
		{"may not be read", bob, "process shop/box --local", 3, "", "cannot get resource \"virtualmachinetemplates\""},
		{"may not create", bob, "create shop/box -p NAME=cli-2", 3, "", "cannot create resource \"virtualmachinetemplates/create\""},
		{"a rehearsal", ada, "create shop/box -p NAME=cli-2 --dry-run=server", 0, "virtualmachine.kubevirt.io/cli-2 created (server dry run)\n", "cli-2 has password "},
		{"create", ada, "create shop/box -p NAME=cli-2", 0, "virtualmachine.kubevirt.io/cli-2 created\n", "cli-2 has password "},
		{"once more", ada, "process shop/box -p NAME=cli-2 --create", 3, "", "already exists"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), binary, strings.Fields(tc.line)...)
			command.Env = append(os.Environ(), "KUBECONFIG="+tc.as.Kubeconfig)
			var out, problems bytes.Buffer
			command.Stdout, command.Stderr = &out, &problems
			err := command.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := command.ProcessState.ExitCode(); code != tc.wantCode || out.String() != tc.wantOut || !strings.Contains(problems.String(), tc.wantErr) {
				t.Errorf("exit code %d, output %q, standard error %q", code, out.String(), problems.String())
			}
		})
	}
}
