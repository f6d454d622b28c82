package capture_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// outputBuffer is the output of a process so far.
type outputBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (w *outputBuffer) Write(part []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.text.Write(part)
}

func (w *outputBuffer) String() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.text.String()
}

// capturing is a running stencilctl capture.
type capturing struct {
	command        *exec.Cmd
	output, stderr outputBuffer
}

// stencilctl starts stencilctl capture as a user, for the VM of c.
func (c *capture) stencilctl(t *testing.T, as *controlplane.User, more ...string) *capturing {
	t.Helper()
	binary, err := stencilctl.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run := &capturing{command: exec.CommandContext(t.Context(), binary, append([]string{"capture", "-n", c.golden, "--wait", "--poll-interval=100ms"}, more...)...)}
	run.command.Env = append(os.Environ(), "KUBECONFIG="+as.Kubeconfig)
	run.command.Stdout, run.command.Stderr = &run.output, &run.stderr
	if err := run.command.Start(); err != nil {
		t.Fatal(err)
	}
	return run
}

// awaitOutput waits until the command has written a text to its standard error.
func (r *capturing) awaitOutput(t *testing.T, part string) {
	t.Helper()
	eventually(t, "stencilctl prints "+part, func() string {
		if output := r.stderr.String(); !strings.Contains(output, part) {
			return "want " + part + " in\n" + output
		}
		return ""
	})
}

// ends waits for the end of the command, and checks its exit code and that it has written these texts, in their order.
func (r *capturing) ends(t *testing.T, code int, output string, want ...string) {
	t.Helper()
	var exit *exec.ExitError
	if err := r.command.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := r.command.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	if got := r.output.String(); got != output {
		t.Errorf("it printed %q, want %q", got, output)
	}
	rest := r.stderr.String()
	for _, part := range want {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("want %q in\n%sof\n%s", part, rest, r.stderr.String())
		}
		rest = after
	}
}

// conditionLine matches a line about a condition.
var conditionLine = regexp.MustCompile(`^(Progressing|Ready|Complete|SecretsFound|IdentityFound) (True|False|Unknown) \([A-Za-z]+\): .+$`)

// TestStencilctlTellsHowFarACaptureHasCome runs stencilctl as a user who may capture the VM and read the request.
func TestStencilctlTellsHowFarACaptureHasCome(t *testing.T) {
	s := real.on(t)
	const created, ofRequest = " created\n", "virtualmachinetemplaterequest.template.kubevirt.io/"
	c := s.pair(t)
	c.filled(t)
	may := func(kind schema.GroupVersionResource, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{kind.Group}, Resources: []string{kind.Resource}, Verbs: verbs}
	}
	ada, err1 := gen.User(t.Context(), s.platform.Plane, "ada", gen.Role(c.shop, "stencil-template-source"),
		gen.Permits(c.golden, may(requests, "create", "get"), may(templates, "create"), may(dataVolumes, "create")))
	eve, err2 := gen.User(t.Context(), s.platform.Plane, "eve")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}

	t.Run("to the template", func(t *testing.T) {
		take, copy := at("while the snapshot is taken"), at("while the disks are copied")
		taken, copied := c.hold(t, take), c.hold(t, copy)
		run := c.stencilctl(t, ada, c.shop+"/web", "--name=web", "--labels=os=none")
		run.awaitOutput(t, "Progressing True (WaitingForSnapshot): waiting for VirtualMachineSnapshot "+c.shop+"/capture-")
		taken()
		run.awaitOutput(t, "Progressing True (WaitingForDataVolumes): 0 of 2 disks are copied, waiting for web-")
		copied()
		run.ends(t, 0, "virtualmachinetemplate.template.kubevirt.io "+c.golden+"/web ready\n",
			"virtualmachinetemplaterequest.template.kubevirt.io "+c.golden+"/web-", created,
			"Progressing True (WaitingForSnapshot): waiting for VirtualMachineSnapshot ",
			"Progressing True (WaitingForDataVolumes): 0 of 2 disks are copied, waiting for web-",
			"Progressing False (Reconciled): VirtualMachineTemplate web was made\n",
			"Ready True (Reconciled): VirtualMachineTemplate web was made\n")
		lines := strings.Split(strings.TrimSuffix(run.stderr.String(), "\n"), "\n")
		for i, line := range lines[1:] {
			if !conditionLine.MatchString(line) || line == lines[i] {
				t.Errorf("the line %q is no news about a condition", line)
			}
		}
		for _, want := range []string{"Complete True (EverythingCaptured): everything of the VirtualMachine is in the template", "SecretsFound False (NoSecrets): "} {
			if !strings.Contains(run.stderr.String(), want) {
				t.Errorf("want %q in\n%s", want, run.stderr.String())
			}
		}
		if made := s.all(t, templates, c.golden); len(made) != 1 || made[0].GetLabels()["os"] != "none" {
			t.Errorf("templates are %v", made)
		}
	})
	t.Run("to a failure", func(t *testing.T) {
		defer c.hold(t, at("while the snapshot is taken"))()
		c.stencilctl(t, ada, c.shop+"/web", "--limit=8s").ends(t, 1, "",
			created, "Progressing True (WaitingForSnapshot): ", "Progressing False (Failed): ", "Ready False (", "): ", ofRequest+"web-", " has failed\n")
	})
	t.Run("for as long as one wants to wait", func(t *testing.T) {
		defer c.hold(t, at("while the snapshot is taken"))()
		c.stencilctl(t, ada, c.shop+"/web", "--timeout=3s").ends(t, 1, "", created, "Progressing True (", ofRequest+"web-", " is not finished after 3s; it continues\n")
	})
	t.Run("also of a machine that does not exist yet", func(t *testing.T) {
		c.stencilctl(t, ada, c.shop+"/nix", "--timeout=3s").ends(t, 1, "", "VirtualMachine "+c.shop+"/nix does not exist; the request waits for it until its timeout",
			created, "Progressing True (WaitingForMachine): VirtualMachine "+c.shop+"/nix does not exist; waiting for it until 20", " is not finished after 3s; it continues\n")
	})
	t.Run("unless it is forbidden", func(t *testing.T) {
		c.stencilctl(t, eve, c.shop+"/web").ends(t, 3, "", `User "eve" cannot create resource "virtualmachinetemplaterequests"`)
	})
}
