//go:build debian && amd64

package release_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/client"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/release"
)

// debianImage is the repository of stencil-defaulter with Debian's packages.
const debianImage = "stencil-defaulter-debian"

// sidecar returns the defaulter in the pod of the manager, with this image and without pins, and the volumes of the pod.
func sidecar(t *testing.T, repository, digest string) (corev1.Container, []corev1.Volume) {
	t.Helper()
	tools, err := controlplane.Tools(t.Context(), "helm")
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := release.Run(t.Context(), built.Folder, tools["helm"], "template", "stencil", built.Chart, "--kube-version=1.37.0", "--show-only=templates/manager/deployment.yaml",
		"--set=defaulting.enabled=true,defaulting.variant=Debian,defaulting.machineType=keep")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(rendered), &deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if len(pod.InitContainers) != 1 || pod.InitContainers[0].Name != "defaulter" {
		t.Fatalf("init containers %+v", pod.InitContainers)
	}
	return pod.InitContainers[0], pod.Volumes
}

// containerOf returns how a kubelet would start the defaulter, and its socket.
func containerOf(t *testing.T, repository, digest string) (c contained, socket string) {
	t.Helper()
	container, volumes := sidecar(t, repository, digest)
	if container.Image != repository+"@"+digest {
		t.Errorf("image %s", container.Image)
	}
	image, err := release.Pull(container.Image)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	// The user of the container enters it.
	folder, err := os.MkdirTemp("", "stencil-image-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	c = contained{
		Root: filepath.Join(folder, "root"), Entrypoint: config.Config.Entrypoint[0], Args: container.Args, Env: config.Config.Env,
		Folders: map[string]string{}, Memory: map[string]int64{},
	}
	if _, err := fmt.Sscanf(config.Config.User, "%d:", &c.User); err != nil {
		t.Fatalf("user %q: %v", config.Config.User, err)
	}
	if err := errors.Join(os.Chmod(folder, 0o755), os.Mkdir(c.Root, 0o755), images.Unpack(image, c.Root)); err != nil {
		t.Fatal(err)
	}
	for _, mount := range container.VolumeMounts {
		for _, volume := range volumes {
			if volume.Name != mount.Name {
				continue
			}
			if volume.EmptyDir.Medium == corev1.StorageMediumMemory {
				c.Memory[mount.MountPath] = volume.EmptyDir.SizeLimit.Value()
				continue
			}
			shared := filepath.Join(folder, volume.Name)
			if err := errors.Join(os.Mkdir(shared, 0o777), os.Chmod(shared, 0o777)); err != nil {
				t.Fatal(err)
			}
			c.Folders[mount.MountPath], socket = shared, filepath.Join(shared, "defaulter.sock")
		}
	}
	if len(c.Folders) != 1 || len(c.Memory) != 1 {
		t.Fatalf("volumes %v in memory and %v", c.Memory, c.Folders)
	}
	return c, socket
}

// startContained starts a container until the test ends, and returns its process.
func startContained(t *testing.T, c contained) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(filepath.Dir(c.Root), "log")
	output, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self)
	command.Env, command.SysProcAttr, command.Stdout, command.Stderr = []string{containedVariable + "=" + string(text)}, c.attributes(), output, output
	started := make(chan error, 1)
	ended := make(chan struct{})
	go startOnOneThread(command, started, ended)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		_ = output.Close()
		if text, err := os.ReadFile(log); t.Failed() && err == nil {
			t.Logf("the log of the container:\n%s", text)
		}
	})
	return command
}

// TestTheDefaulterRunsInItsImage starts the defaulter with Debian's libvirt and QEMU as the pod of the manager has it.
//
//suite:debian
func TestTheDefaulterRunsInItsImage(t *testing.T) {
	repository := built.Repository + "/" + debianImage
	c, socket := containerOf(t, repository, digestIn(t, repository))
	process := startContained(t, c)

	defaulter := client.New(socket)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var environment *defaulting.Environment
	for environment == nil || environment.QEMU == "" {
		var err error
		if environment, err = defaulter.Environment(ctx); err != nil {
			select {
			case <-ctx.Done():
				t.Fatalf("it does not answer: %v", err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	t.Logf("libvirt %s, QEMU %s", environment.Libvirt, environment.QEMU)
	vm, err := json.Marshal(shapes.New(shapes.Disks(2, "virtio"), shapes.NICs(1, "virtio")))
	if err != nil {
		t.Fatal(err)
	}
	request := defaulting.Request{VM: vm, Policy: defaulting.Policy{MachineType: defaulting.MachineTypeKeep}}
	response, err := defaulter.Defaults(ctx, &request)
	if err != nil {
		t.Fatal(err)
	}
	addresses := 0
	for _, set := range response.Set {
		if strings.HasSuffix(set.Path, ".pciAddress") {
			addresses++
		}
		if strings.HasSuffix(set.Path, "machine.type") {
			t.Errorf("the machine type is pinned: %+v", set)
		}
	}
	if addresses != 3 {
		t.Errorf("%d addresses, want 3: %+v, skipped %+v", addresses, response.Set, response.Skipped)
	}

	request.Policy.MachineType = defaulting.MachineTypePin
	_, err = defaulter.Defaults(ctx, &request)
	var problem *defaulting.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusBadRequest || !strings.Contains(problem.Detail, "set defaulting.machineType of the chart to keep") {
		t.Errorf("a request to pin: %v, want 400", err)
	}

	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	const none = "0000000000000000"
	for _, want := range []string{
		"Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532", "Groups:\t \n", "NoNewPrivs:\t1", "CapEff:\t" + none, "CapPrm:\t" + none, "CapBnd:\t" + none,
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		_, volume := c.Folders[fields[4]]
		if _, memory := c.Memory[fields[4]]; !volume && !memory && fields[4] != "/proc" && !strings.HasPrefix(fields[4], "/dev/") && !strings.HasPrefix(fields[5], "ro") {
			t.Errorf("it can write to %s", line)
		}
	}
}

// digestIn returns the digest of a repository in the list of images.
func digestIn(t *testing.T, repository string) string {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(built.Output, "images.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for reference := range strings.FieldsSeq(string(list)) {
		if named, digest, _ := strings.Cut(reference, "@"); named == repository+":"+tag {
			return digest
		}
	}
	t.Fatalf("%s is not in the list:\n%s", repository, list)
	return ""
}
