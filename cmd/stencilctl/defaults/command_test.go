package defaults

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/defaulting"
)

const files = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: a}
spec:
  preference: {name: fast}
  template: {spec: {domain: {devices: {}}}}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineClusterPreference
metadata: {name: fast}
spec: {devices: {preferredDiskBus: virtio}}
`

// serve answers on a socket, and stores the last request.
func serve(t *testing.T, status int, answer any) (socket string, received *defaulting.Request) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	received = &defaulting.Request{}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(received); err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return socket, received
}

// run runs the command with the files on its standard input.
func run(t *testing.T, in string, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := NewCommand(cli.Streams{In: strings.NewReader(in), Out: &out, Err: &out})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append([]string{"-f", "-"}, arguments...))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

var answer = defaulting.Response{
	VM: json.RawMessage(`{"kind":"VirtualMachine","spec":{"a":1}}`),
	Set: []defaulting.Set{
		{Path: "spec.template.spec.domain.machine.type", Value: "pc-q35-9.2", Source: defaulting.FromLibvirt},
		{Path: "spec.template.spec.domain.features.acpi.enabled", Value: true, Source: defaulting.FromKubeVirt},
	},
	Skipped:     []defaulting.Skipped{{Path: "spec.x", Reason: "nobody knows"}},
	Environment: defaulting.Environment{Libvirt: "11.3.0", QEMU: "9.2.0", KubeVirt: "v1.8.2"},
}

func TestWhatIsFilledIn(t *testing.T) {
	for name, tc := range map[string]struct{ format, want string }{
		"a table": {"table", `FIELD                                             VALUE        FROM
spec.template.spec.domain.machine.type            pc-q35-9.2   libvirt
spec.template.spec.domain.features.acpi.enabled   true         kubevirt
left open: spec.x: nobody knows
with libvirt 11.3.0 and QEMU 9.2.0, as KubeVirt v1.8.2 starts VMs
`},
		"the machine": {"yaml", "kind: VirtualMachine\nspec:\n  a: 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			socket, received := serve(t, http.StatusOK, answer)
			got, err := run(t, files, "--socket", socket, "-o", tc.format)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if received.Preference == nil || received.Preference.Devices.PreferredDiskBus != "virtio" || received.Instancetype != nil || !received.DryRun {
				t.Errorf("asked %+v", received)
			}
		})
	}
}

func TestAMachineThatCannotBeDefinedIsAFinding(t *testing.T) {
	socket, _ := serve(t, http.StatusUnprocessableEntity, defaulting.Invalid([]defaulting.Cause{{Path: "spec.y", Detail: "both ask for it"}}))
	got, err := run(t, files, "--socket", socket)
	if cli.ExitCode(err) != cli.ExitFindings || !strings.Contains(got, "spec.y: both ask for it") {
		t.Errorf("exit code %d: %s", cli.ExitCode(err), got)
	}
}

func TestWhatMakesNoSense(t *testing.T) {
	failing := filepath.Join(t.TempDir(), "failing")
	if err := os.WriteFile(failing, []byte("#!/bin/sh\necho no libvirt here\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		in        string
		arguments []string
		code      int
		want      string
	}{
		"no machine":                {in: "kind: Secret\n", code: cli.ExitUsage, want: "no VirtualMachine"},
		"a machine yet to be made":  {in: "kind: VirtualMachine\nmetadata: {name: b}\n", code: cli.ExitUsage, want: "stencilctl process"},
		"two machines":              {in: files + "---\nkind: VirtualMachine\nmetadata: {name: b}\n", code: cli.ExitUsage, want: "several VirtualMachines"},
		"no defaulter":              {in: files, arguments: []string{"--defaulter", "there-is-none"}, code: cli.ExitUsage, want: "--socket"},
		"nobody on the socket":      {in: files, arguments: []string{"--socket", "none"}, code: cli.ExitInternal, want: "none"},
		"a defaulter that ends":     {in: files, arguments: []string{"--defaulter", failing}, code: cli.ExitInternal, want: "no libvirt here"},
		"a socket and a defaulter":  {in: files, arguments: []string{"--defaulter", "a", "--socket", "b"}, code: cli.ExitUsage, want: "socket"},
		"an argument without a use": {in: files, arguments: []string{"vm"}, code: cli.ExitUsage, want: "vm"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, tc.in, tc.arguments...)
			if cli.ExitCode(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("exit code %d: %v", cli.ExitCode(err), err)
			}
		})
	}
}
