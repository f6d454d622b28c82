// Package release builds releases, pushes them into a registry on loopback, and runs Stencil's servers from the images that the chart names, as the
// chart's pods run them. The images are for the architecture of the host.
package release

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
	"github.com/vmstencil/stencil/test/product"
)

const (
	// epoch is the time of releases. The commit of the checkout differs from run to run.
	epoch = "SOURCE_DATE_EPOCH=1700000000"
	// Accounts is where pods have the token of their service account.
	Accounts = "/var/run/secrets/kubernetes.io/serviceaccount"
	// defaults is where pods have the socket of stencil-defaulter.
	defaults = "/run/stencil"
	// Variable is the environment variable with a release that Shared describes.
	Variable = "STENCIL_TEST_RELEASE"
)

// Release is a release that was built and pushed.
type Release struct {
	// Version of the release, with the v.
	Version string
	// Root is the checkout, Command the program that builds releases, Folder has everything that is written.
	Root, Command, Folder string
	// Output is the folder of the release, Chart the package that Helm has pulled, and Repository where everything was pushed.
	Output, Chart, Repository string
	// ChartAddress of the chart in the registry, with its digest.
	ChartAddress string

	flags []string
	// containers are those that were unpacked.
	containers map[manager.Program]*manager.Container
}

// Build builds the release of the checkout at root with the command of this checkout, pushes it to the repository, and pulls its chart. It writes into
// folder, which must exist. Flags are further ones of the command.
func Build(ctx context.Context, version, root, folder, repository string, flags ...string) (*Release, error) {
	here, err := product.Root()
	if err != nil {
		return nil, err
	}
	r := &Release{
		Version: version, Root: root, Command: filepath.Join(folder, "release-command"), Folder: folder, Output: filepath.Join(folder, "output"), Repository: repository,
		flags: flags, containers: map[manager.Program]*manager.Container{},
	}
	if _, err := Run(ctx, filepath.Join(here, "hack", "release"), "go", "build", "-o", r.Command, "."); err != nil {
		return nil, err
	}
	if err := r.Write(ctx, r.Root, r.Output); err != nil {
		return nil, err
	}
	if _, err := r.Push(ctx, r.Output); err != nil {
		return nil, err
	}
	return r, r.pull(ctx)
}

// pull pulls the chart with Helm, by its digest.
func (r *Release) pull(ctx context.Context) error {
	tag, err := name.NewTag(r.Repository + "/charts/stencil:" + r.Tag())
	if err != nil {
		return err
	}
	pushed, err := remote.Head(tag, remote.WithContext(ctx))
	if err != nil {
		return err
	}
	r.ChartAddress = "oci://" + tag.Context().Name() + "@" + pushed.Digest.String()
	r.Chart, err = HelmPull(ctx, r.ChartAddress, r.Folder)
	return err
}

// HelmPull pulls a chart into a folder with Helm, and returns the path of the package, whose name Helm makes of the address.
func HelmPull(ctx context.Context, address, folder string) (string, error) {
	tools, err := controlplane.Tools(ctx, "helm")
	if err != nil {
		return "", err
	}
	to, err := os.MkdirTemp(folder, "chart-")
	if err != nil {
		return "", err
	}
	if _, err := Run(ctx, to, tools["helm"], "pull", address, "--plain-http"); err != nil {
		return "", err
	}
	files, err := os.ReadDir(to)
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("helm has pulled %v: %w", files, err)
	}
	return filepath.Join(to, files[0].Name()), nil
}

// Mirrored returns the release of a mirror, which is installed from there with the chart's value imageRegistry.
func (r *Release) Mirrored(ctx context.Context, repository, folder string) (*Release, error) {
	mirrored := *r
	mirrored.Folder, mirrored.Repository, mirrored.containers = folder, repository, map[manager.Program]*manager.Container{}
	return &mirrored, mirrored.pull(ctx)
}

// Tag is the version without the v: the tag of the images, and the version of the chart.
func (r *Release) Tag() string { return strings.TrimPrefix(r.Version, "v") }

// Write builds the release of a checkout into a folder.
func (r *Release) Write(ctx context.Context, root, output string) error {
	arguments := []string{"-version=" + r.Version, "-uncommitted", "-output=" + output, "-repository=" + r.Repository, "-platforms=linux/" + runtime.GOARCH, "-client-platforms=linux/" + runtime.GOARCH}
	_, err := Run(ctx, root, r.Command, append(arguments, r.flags...)...)
	return err
}

// Push pushes the release in a folder, and returns what the command prints.
func (r *Release) Push(ctx context.Context, output string) (string, error) {
	return Run(ctx, r.Root, r.Command, "-push", "-version="+r.Version, "-output="+output, "-repository="+r.Repository)
}

// Run runs a command in a folder and returns what it prints.
func Run(ctx context.Context, folder, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = folder
	// Helm and docker's credentials have files below HOME.
	command.Env = append(os.Environ(), epoch)
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(arguments, " "), err, output)
	}
	return string(output), err
}

// Deployment returns a Deployment of the chart with values.
func (r *Release) Deployment(ctx context.Context, plane *controlplane.Plane, program manager.Program, values map[string]any) (*appsv1.Deployment, error) {
	component := strings.TrimPrefix(string(program), "stencil-")
	arguments := []string{"template", install.Release, r.Chart, "--namespace", install.Namespace, "--kube-version", "1.37.0", "--show-only", "templates/" + component + "/deployment.yaml"}
	content, err := yaml.Marshal(values)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(r.Folder, component+"-values.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return nil, err
	}
	rendered, err := plane.Helm(ctx, append(arguments, "--values", file)...)
	if err != nil {
		return nil, err
	}
	if rendered.Code != 0 {
		return nil, fmt.Errorf("rendering the chart: %s", rendered.Stderr)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(rendered.Stdout), &deployment); err != nil {
		return nil, fmt.Errorf("reading the Deployment of %s: %w", program, err)
	}
	return &deployment, nil
}

// Pull returns an image of this host's architecture.
func Pull(reference string) (v1.Image, error) {
	parsed, err := name.NewDigest(reference)
	if err != nil {
		return nil, err
	}
	index, err := remote.Index(parsed)
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", reference, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, each := range manifest.Manifests {
		if each.Platform.OS == "linux" && each.Platform.Architecture == runtime.GOARCH {
			return index.Image(each.Digest)
		}
	}
	return nil, fmt.Errorf("%s has no image for linux/%s", reference, runtime.GOARCH)
}

// Container pulls the image of a program that the chart names, and returns how a kubelet would start it with these values. The sidecar with defaults,
// if there is one, is left to the caller.
func (r *Release) Container(ctx context.Context, plane *controlplane.Plane, program manager.Program, values map[string]any) (*manager.Container, error) {
	if unpacked := r.containers[program]; unpacked != nil {
		return unpacked, nil
	}
	deployment, err := r.Deployment(ctx, plane, program, values)
	if err != nil {
		return nil, err
	}
	pod := deployment.Spec.Template.Spec
	for _, each := range pod.Containers[0].VolumeMounts {
		if each.MountPath != Accounts && each.MountPath != defaults {
			return nil, fmt.Errorf("the pod has a volume at %s, which this package does not have", each.MountPath)
		}
	}
	image, err := Pull(pod.Containers[0].Image)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(r.Folder, string(program))
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	if err := images.Unpack(image, root); err != nil {
		return nil, err
	}
	token, err := serviceAccount(ctx, plane, root+"-account", pod.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	contained := &manager.Container{Root: root, Entrypoint: config.Config.Entrypoint[0], Args: pod.Containers[0].Args, Volumes: map[string]string{Accounts: token}}
	if _, err := fmt.Sscanf(config.Config.User, "%d:%d", &contained.User, &contained.Group); err != nil {
		return nil, fmt.Errorf("the user of the image is %q: %w", config.Config.User, err)
	}
	if contained.Env, err = environment(plane, pod.Containers[0]); err != nil {
		return nil, err
	}
	r.containers[program] = contained
	return contained, nil
}

// environment returns the variables of the container of a pod.
func environment(plane *controlplane.Plane, container corev1.Container) ([]string, error) {
	address, err := url.Parse(plane.AdminConfig().Host)
	if err != nil {
		return nil, err
	}
	variables := []string{"KUBERNETES_SERVICE_HOST=" + address.Hostname(), "KUBERNETES_SERVICE_PORT=" + address.Port(), "HOSTNAME=" + container.Name, "HOME=/"}
	fields := map[string]string{"metadata.namespace": install.Namespace, "metadata.name": container.Name + "-0"}
	for _, each := range container.Env {
		value := each.Value
		if each.ValueFrom != nil {
			value = fields[each.ValueFrom.FieldRef.FieldPath]
		}
		variables = append(variables, each.Name+"="+value)
	}
	return variables, nil
}

// serviceAccount writes what the kubelet mounts into a pod to a folder.
func serviceAccount(ctx context.Context, plane *controlplane.Plane, folder, account string) (string, error) {
	created, err := plane.Kubectl(ctx, nil, "", "create", "token", account, "--namespace="+install.Namespace, "--duration=2h")
	if err != nil {
		return "", err
	}
	if created.Code != 0 {
		return "", fmt.Errorf("creating a token of %s: %s", account, created.Stderr)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	for file, content := range map[string][]byte{
		"token": []byte(strings.TrimSpace(created.Stdout)), "ca.crt": plane.AdminConfig().CAData, "namespace": []byte(install.Namespace),
	} {
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o644); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// Describe describes a release for other processes, which Shared reads.
func (r *Release) Describe() (string, error) {
	text, err := json.Marshal(r)
	return string(text), err
}

// Shared returns the release that the variable describes, with a folder of this process, which the caller removes; nil if it is not set.
func Shared() (*Release, error) {
	// syscall.Getenv, not os.Getenv: the path is another in each run.
	text, found := syscall.Getenv(Variable)
	if !found {
		return nil, nil
	}
	shared := &Release{containers: map[manager.Program]*manager.Container{}}
	if err := json.Unmarshal([]byte(text), shared); err != nil {
		return nil, fmt.Errorf("reading %s: %w", Variable, err)
	}
	var err error
	if shared.Folder, err = os.MkdirTemp("", "stencil-shared-release-"); err != nil {
		return nil, err
	}
	// The users of the containers enter it.
	return shared, os.Chmod(shared.Folder, 0o755)
}
