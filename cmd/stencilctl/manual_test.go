package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/manual"
)

// TestTheManual writes what the archives contain, twice with the same content.
func TestTheManual(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "manual")
	var out bytes.Buffer
	if code := run(t.Context(), []string{"stencilctl", "manual", folder}, cli.Streams{Out: &out, Err: &out}); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	for file, want := range map[string]string{
		"completions/stencilctl.bash":      "__start_stencilctl",
		"completions/_stencilctl":          "#compdef stencilctl",
		"completions/stencilctl.fish":      "complete -c stencilctl",
		"completions/stencilctl.ps1":       "Register-ArgumentCompleter -CommandName 'stencilctl'",
		"man/man1/stencilctl.1":            ".SH SEE ALSO\n.BR stencilctl\\-approve (1)",
		"man/man1/stencilctl-create.1":     ".SH NAME\nstencilctl\\-create \\- Create a VirtualMachine from a template\n",
		"man/man1/stencilctl-image-pin.1":  "\\-\\-channel string",
		"man/man1/stencilctl-policy-fmt.1": ".SH EXAMPLES\n.nf\n  stencilctl policy fmt \\-w policies/\n",
	} {
		content, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(file)))
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: want %q in it, %v", file, want, err)
		}
	}
	one, err1 := manual.Files(newCommand("stencilctl", cli.Streams{}), "v1.2.3")
	two, err2 := manual.Files(newCommand("stencilctl", cli.Streams{}), "v1.2.3")
	if diff := cmp.Diff(one, two); diff != "" || err1 != nil || err2 != nil {
		t.Errorf("%v, %v (-one +two):\n%s", err1, err2, diff)
	}
}
