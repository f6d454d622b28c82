package release_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/manager"
	"github.com/vmstencil/stencil/test/release"
)

// programs returns the servers that run from their images.
func programs() map[manager.Program]*manager.Process {
	return map[manager.Program]*manager.Process{manager.StencilManager: stencil.Manager, manager.StencilAPIServer: stencil.APIServer}
}

func TestAUserCreatesAVMFromATemplate(t *testing.T) {
	namespace := namespaces.Of(t)
	created := harness.Must(t, stencil.Plane, ada, "", "--namespace="+namespace, "create", "-f", stencil.Example("machines/web-1.yaml"), "-o", "json").Stdout
	spec, _ := decode(t, created)["spec"].(map[string]any)
	if instancetype, _ := spec["instancetype"].(map[string]any); instancetype["name"] != "u1.large" {
		t.Errorf("instance type %v", spec["instancetype"])
	}
	denied := harness.Kubectl(t, stencil.Plane, ada, gen.Manifest(gen.VM("web-2", gen.FromTemplate("golden/nothing"))), "--namespace="+namespace, "create", "-f", "-")
	if denied.Code == 0 || !strings.Contains(denied.Stderr, `"golden/nothing" not found`) {
		t.Errorf("a VM of no template: exit code %d, %s", denied.Code, denied.Stderr)
	}
}

func TestAUserProcessesATemplate(t *testing.T) {
	namespace := namespaces.Of(t)
	template := gen.Template("box", gen.Declares("NAME", "required: true"), gen.Renders("${NAME}", gen.SmallSpec()))
	harness.Must(t, stencil.Plane, nil, gen.Manifest(template), "--namespace="+namespace, "apply", "-f", "-")
	harness.Eventually(t, "process renders the template", func() error {
		made := harness.Kubectl(t, stencil.Plane, ada, `{"parameters": {"NAME": "web-1"}}`, "create", "--raw",
			"/apis/subresources.template.kubevirt.io/v1beta1/namespaces/"+namespace+"/virtualmachinetemplates/box/process", "-f", "-")
		if made.Code != 0 || !strings.Contains(made.Stdout, `"name":"web-1"`) {
			return fmt.Errorf("exit code %d: %s%s", made.Code, made.Stdout, made.Stderr)
		}
		return nil
	})
}

// TestServersAreContained reads what the kernel has about the processes that the other tests use.
func TestServersAreContained(t *testing.T) {
	for program, process := range programs() {
		t.Run(string(program), func(t *testing.T) {
			status := map[string]string{}
			for line := range strings.Lines(read(t, process, "status")) {
				key, value, _ := strings.Cut(line, ":")
				status[key] = strings.Join(strings.Fields(value), " ")
			}
			const none = "0000000000000000"
			for key, want := range map[string]string{
				"Uid": "65532 65532 65532 65532", "Gid": "65532 65532 65532 65532", "Groups": "", "NoNewPrivs": "1",
				"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
			} {
				if status[key] != want {
					t.Errorf("%s is %q, want %q", key, status[key], want)
				}
			}
			if processes := strings.Fields(status["NSpid"]); len(processes) != 2 || processes[1] != "1" {
				t.Errorf("it is process %q of its namespace", status["NSpid"])
			}
			mounts := map[string]string{}
			for line := range strings.Lines(read(t, process, "mountinfo")) {
				fields := strings.Fields(line)
				mounts[fields[4]], _, _ = strings.Cut(fields[5], ",")
			}
			// Mounts outside of its root are not listed.
			if want := map[string]string{"/": "ro", release.Accounts: "ro"}; !maps.Equal(mounts, want) {
				t.Errorf("mounts %v, want %v", mounts, want)
			}
		})
	}
}

func read(t *testing.T, process *manager.Process, file string) string {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", process.PID(), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestPodsAreWhatRuns holds the pods of the chart against how the tests start their containers.
func TestPodsAreWhatRuns(t *testing.T) {
	for program := range programs() {
		t.Run(string(program), func(t *testing.T) {
			deployment, err := built.Deployment(t.Context(), stencil.Plane, program, nil)
			if err != nil {
				t.Fatal(err)
			}
			pod := deployment.Spec.Template.Spec
			container := pod.Containers[0]
			security := container.SecurityContext
			if security == nil || !*security.ReadOnlyRootFilesystem || *security.AllowPrivilegeEscalation || !slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(security.Capabilities.Add) > 0 {
				t.Errorf("securityContext %+v", security)
			}
			if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.RunAsUser != nil {
				t.Errorf("securityContext of the pod %+v", pod.SecurityContext)
			}
			if len(container.Command) > 0 || len(container.VolumeMounts) > 0 || !*pod.AutomountServiceAccountToken {
				t.Errorf("command %q, mounts %v", container.Command, container.VolumeMounts)
			}
			if !strings.HasPrefix(container.Image, built.Repository+"/"+string(program)+"@sha256:") {
				t.Errorf("image %s", container.Image)
			}
		})
	}
}

func TestTheCommandLineRunsInItsImage(t *testing.T) {
	list, err := os.ReadFile(filepath.Join(built.Output, "images.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var found bool
	for reference := range strings.FieldsSeq(string(list)) {
		image, err := release.Pull(reference)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(reference, "/stencilctl:") {
			continue
		}
		found = true
		root := t.TempDir()
		if err := images.Unpack(image, root); err != nil {
			t.Fatal(err)
		}
		for want, arguments := range map[string][]string{
			version: {"--version"},
			// The image has no files of time zones.
			"/fedora created (client dry run)": {"image", "add", "fedora", "--namespace=golden", "--registry=registry.example.com/fedora", "--schedule=CRON_TZ=Europe/Berlin 0 3 * * *", "--dry-run=client"},
		} {
			command := exec.CommandContext(t.Context(), "/stencilctl", arguments...)
			command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
			command.Dir, command.Env = "/", []string{}
			if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), want) {
				t.Errorf("%q prints %q, %v", arguments, output, err)
			}
		}
	}
	if !found {
		t.Errorf("stencilctl is not in the list:\n%s", list)
	}
}
