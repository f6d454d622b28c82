// Package release_test builds a release, pushes it into a registry on loopback, pulls and installs the chart from there, and runs Stencil's servers
// from the images that the chart names, as the chart's pods run them. The images are for the architecture of the host.
package release_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/product"
)

const (
	version = "v1.2.3-test"
	tag     = "1.2.3-test"
	// epoch is the time of the release. The commit of the checkout differs from run to run.
	epoch = "SOURCE_DATE_EPOCH=1700000000"
	// accounts is where pods have the token of their service account.
	accounts = "/var/run/secrets/kubernetes.io/serviceaccount"
)

var (
	built   *release
	stencil *platform.Platform
	// ada has the role edit in the namespaces of the tests, and may use the golden templates and process templates.
	ada *controlplane.User

	namespaces = harness.Namespaces{Prefix: "release", Members: map[string]string{editors: "edit", processors: "stencil-template-process"}}
)

const (
	editors    = "release-editors"
	processors = "release-processors"
)

// What the tests of the image of stencil-defaulter add, with the build tag debian: CI does not run them, because Debian's mirrors remove the
// packages of the lock file when they have newer ones.
var (
	become = func() {}
	flags  []string
)

func TestMain(m *testing.M) {
	become()
	harness.Main(m, start)
}

func start(ctx context.Context) (stop func() error, err error) {
	folder, err := os.MkdirTemp("", "stencil-release-")
	if err != nil {
		return nil, err
	}
	// The users of the containers enter it.
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, err
	}
	registry := images.Start()
	stop = func() error {
		registry.Close()
		return os.RemoveAll(folder)
	}
	if built, err = build(ctx, folder, registry.Address()+"/stencil"); err != nil {
		return stop, err
	}
	stencil, err = platform.Start(ctx, platform.Options{KubeVirt: true, ControllerManager: true, APIServer: true, Chart: built.chart, Container: built.container})
	if err != nil {
		return stop, err
	}
	stop = func() error {
		err := stencil.Stop()
		registry.Close()
		return errors.Join(err, os.RemoveAll(folder))
	}
	namespaces.Plane = stencil.Plane
	if err := harness.Apply(ctx, stencil.Plane, "", stencil.Example("golden")); err != nil {
		return stop, err
	}
	ada, err = gen.User(ctx, stencil.Plane, "ada", gen.Group(editors, processors), gen.Role("golden", "view"), gen.UsesTemplates("golden"))
	return stop, err
}

// release is a release that was built and pushed.
type release struct {
	// root is the checkout, command the program that builds releases, folder has everything that is written.
	root, command, folder string
	// output is the folder of the release, chart the package that Helm has pulled, and repository where everything was pushed.
	output, chart, repository string
}

func build(ctx context.Context, folder, repository string) (*release, error) {
	root, err := product.Root()
	if err != nil {
		return nil, err
	}
	r := &release{root: root, command: filepath.Join(folder, "release-command"), folder: folder, output: filepath.Join(folder, "output"), repository: repository}
	if _, err := run(ctx, filepath.Join(root, "hack", "release"), "go", "build", "-o", r.command, "."); err != nil {
		return nil, err
	}
	if err := r.write(ctx, r.root, r.output); err != nil {
		return nil, err
	}
	if _, err := r.push(ctx, r.output); err != nil {
		return nil, err
	}
	tools, err := controlplane.Tools(ctx, "helm")
	if err != nil {
		return nil, err
	}
	r.chart = filepath.Join(folder, "stencil-"+tag+".tgz")
	_, err = run(ctx, folder, tools["helm"], "pull", "oci://"+repository+"/charts/stencil", "--version", tag, "--plain-http")
	return r, err
}

// write builds the release of a checkout, for the architecture of this host.
func (r *release) write(ctx context.Context, root, output string) error {
	arguments := []string{"-version=" + version, "-uncommitted", "-output=" + output, "-repository=" + r.repository, "-platforms=linux/" + runtime.GOARCH, "-client-platforms=linux/" + runtime.GOARCH}
	_, err := run(ctx, root, r.command, append(arguments, flags...)...)
	return err
}

func (r *release) push(ctx context.Context, output string) (string, error) {
	return run(ctx, r.root, r.command, "-push", "-version="+version, "-output="+output, "-repository="+r.repository)
}

// run runs a command in a folder and returns what it prints.
func run(ctx context.Context, folder, program string, arguments ...string) (string, error) {
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

// deployment returns a Deployment of the chart, as it is with the chart's own values.
func (r *release) deployment(ctx context.Context, plane *controlplane.Plane, program manager.Program) (*appsv1.Deployment, error) {
	component := strings.TrimPrefix(string(program), "stencil-")
	rendered, err := plane.Helm(ctx, "template", install.Release, r.chart, "--namespace", install.Namespace, "--kube-version", "1.37.0", "--show-only", "templates/"+component+"/deployment.yaml")
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

// pull returns an image of this host's architecture.
func pull(reference string) (v1.Image, error) {
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

// container pulls the image of a program that the chart names, and returns how a kubelet would start it.
func (r *release) container(ctx context.Context, plane *controlplane.Plane, program manager.Program) (*manager.Container, error) {
	deployment, err := r.deployment(ctx, plane, program)
	if err != nil {
		return nil, err
	}
	pod := deployment.Spec.Template.Spec
	if len(pod.InitContainers) > 0 || len(pod.Volumes) > 0 {
		return nil, errors.New("the pod has further containers or volumes, which this test does not have")
	}
	image, err := pull(pod.Containers[0].Image)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(r.folder, string(program))
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
	contained := &manager.Container{Root: root, Entrypoint: config.Config.Entrypoint[0], Args: pod.Containers[0].Args, Volumes: map[string]string{accounts: token}}
	if _, err := fmt.Sscanf(config.Config.User, "%d:%d", &contained.User, &contained.Group); err != nil {
		return nil, fmt.Errorf("the user of the image is %q: %w", config.Config.User, err)
	}
	contained.Env, err = environment(plane, pod.Containers[0])
	return contained, err
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

// decode decodes JSON.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return tree
}
