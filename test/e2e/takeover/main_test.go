// Package takeover_test installs Stencil beside KubeVirt's own template component, with KubeVirt's own virt-operator of two releases, which install and remove that component
// themselves. The pods that it makes are simulated and ready at once; of what they would serve nothing runs.
package takeover_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// binary is stencilctl.
var binary string

func TestMain(m *testing.M) {
	harness.Main(m, func(ctx context.Context) (func() error, error) {
		var err error
		binary, err = stencilctl.Binary(ctx)
		return func() error { return nil }, err
	})
}

var (
	definitions = []string{"virtualmachinetemplates.template.kubevirt.io", "virtualmachinetemplaterequests.template.kubevirt.io"}
	apiServices = []string{"v1alpha1.subresources.template.kubevirt.io", "v1beta1.subresources.template.kubevirt.io"}
)

// cluster is a control plane with virt-operator.
type cluster struct {
	*controlplane.Plane
	t *testing.T
}

// start starts a control plane with KubeVirt of a release. Its instance types are left out, because virt-api, whose webhooks would admit them, does not run.
func start(t *testing.T, release controlplane.VirtOperatorRelease) *cluster {
	t.Helper()
	c := bare(t)
	c.install(release)
	return c
}

// bare starts a control plane without KubeVirt.
func bare(t *testing.T) *cluster {
	t.Helper()
	return &cluster{controlplane.StartFor(t, controlplane.Options{ControllerManager: true, Services: true}), t}
}

// install installs KubeVirt of a release. Files of manifests are applied before.
func (c *cluster) install(release controlplane.VirtOperatorRelease, manifests ...string) {
	c.t.Helper()
	c.operator(release)
	for _, path := range manifests {
		c.must("", "create", "-f", path)
	}
	c.must(`{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"namespace": "kubevirt", "name": "kubevirt"},
		"spec": {"configuration": {"commonInstancetypesDeployment": {"enabled": false}}}}`, "create", "-f", "-")
	c.settled(release)
}

// operator installs virt-operator of a release, or upgrades to it.
func (c *cluster) operator(release controlplane.VirtOperatorRelease) {
	c.t.Helper()
	if err := c.StartVirtOperator(c.t.Context(), release); err != nil {
		c.t.Fatal(err)
	}
}

// must runs kubectl as the administrator.
func (c *cluster) must(stdin string, arguments ...string) string {
	c.t.Helper()
	return harness.Must(c.t, c.Plane, nil, stdin, arguments...).Stdout
}

// has waits until a field of an object has a value. The last arguments are further ones of kubectl.
func (c *cluster) has(what, object, path string, value func(string) bool, arguments ...string) {
	c.t.Helper()
	harness.Eventually(c.t, what, func() error {
		result, err := c.Kubectl(c.t.Context(), nil, "", append([]string{"get", object, "-o", "jsonpath=" + path}, arguments...)...)
		if err == nil && (result.Code != 0 || !value(result.Stdout)) {
			err = fmt.Errorf("%s %s: %q %s", object, path, result.Stdout, result.Stderr)
		}
		return err
	})
}

// status is what the tests read of a KubeVirt.
type status struct {
	Metadata struct{ Generation int64 }
	Status   struct {
		Phase                   string
		ObservedKubeVirtVersion string
		ObservedGeneration      int64
		ObservedDeploymentID    string
		TargetDeploymentID      string
		Conditions              []struct{ Type, Status, Message string }
	}
}

func (c *cluster) kubeVirt(ctx context.Context) (status, error) {
	var read status
	result, err := c.Kubectl(ctx, nil, "", "get", "kubevirt", "kubevirt", "--namespace=kubevirt", "-o", "json")
	if err == nil && result.Code != 0 {
		err = errors.New(result.Stderr)
	}
	if err != nil {
		return read, err
	}
	return read, json.Unmarshal([]byte(result.Stdout), &read)
}

// settled waits until virt-operator has installed a release as the KubeVirt object says.
func (c *cluster) settled(release controlplane.VirtOperatorRelease) {
	c.t.Helper()
	harness.Eventually(c.t, "KubeVirt "+release.Version+" has settled", func() error {
		read, err := c.kubeVirt(c.t.Context())
		if err != nil {
			return err
		}
		at := read.Status
		if at.Phase != "Deployed" || at.ObservedKubeVirtVersion != release.Version || at.ObservedGeneration != read.Metadata.Generation || at.ObservedDeploymentID != at.TargetDeploymentID {
			return fmt.Errorf("%+v", at)
		}
		for _, condition := range at.Conditions {
			if condition.Type == "Synchronized" && condition.Status == "False" {
				return errors.New(condition.Message)
			}
		}
		return nil
	})
}

// reports waits until virt-operator reports an error that contains a text.
func (c *cluster) reports(text string) {
	c.t.Helper()
	harness.Eventually(c.t, "virt-operator reports "+text, func() error {
		read, err := c.kubeVirt(c.t.Context())
		if err != nil {
			return err
		}
		for _, condition := range read.Status.Conditions {
			if condition.Type == "Synchronized" && strings.Contains(condition.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("%+v", read.Status)
	})
}

// component switches KubeVirt's template component.
func (c *cluster) component(enabled bool) {
	c.t.Helper()
	c.must("", "patch", "kubevirt", "kubevirt", "--namespace=kubevirt", "--type=merge", "-p", fmt.Sprintf(`{"spec": {"configuration": {"virtTemplateDeployment": {"enabled": %t}}}}`, enabled))
}

// templates creates templates and returns their names.
func (c *cluster) templates(n int) {
	c.t.Helper()
	var manifests []string
	for i := range n {
		manifests = append(manifests, fmt.Sprintf(`{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate", "metadata": {"namespace": "default", "name": "template-%d"},
			"spec": {"parameters": [{"name": "NAME"}], "virtualMachine": {"metadata": {"name": "${NAME}"}, "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}}}}}`, i))
	}
	harness.Eventually(c.t, "templates can be created", func() error {
		result, err := c.Kubectl(c.t.Context(), nil, strings.Join(manifests, "\n"), "apply", "-f", "-")
		if err == nil && result.Code != 0 {
			err = errors.New(result.Stderr)
		}
		return err
	})
}

// identities returns the UIDs of the definitions, the APIServices and all templates, by kind and name.
func (c *cluster) identities() map[string]string {
	c.t.Helper()
	found := map[string]string{}
	const columns = `jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.uid}{"\n"}{end}`
	output := c.must("", append([]string{"get", "crd", "-o", columns}, definitions...)...) +
		c.must("", append([]string{"get", "apiservices", "--ignore-not-found", "-o", columns}, apiServices...)...) +
		c.must("", "get", "vmt", "--namespace=default", "-o", columns)
	for line := range strings.Lines(output) {
		name, uid, _ := strings.Cut(strings.TrimSpace(line), "=")
		found[name] = uid
	}
	return found
}

// owners returns who owns the definitions and APIServices, by label, each once.
func (c *cluster) owners() string {
	c.t.Helper()
	const column = `jsonpath={range .items[*]}{.metadata.labels.app\.kubernetes\.io/managed-by}{"\n"}{end}`
	output := c.must("", append([]string{"get", "crd", "-o", column}, definitions...)...) +
		c.must("", append([]string{"get", "apiservices", "--ignore-not-found", "-o", column}, apiServices...)...)
	seen := map[string]bool{}
	var all []string
	for owner := range strings.FieldsSeq(output) {
		if !seen[owner] {
			seen[owner] = true
			all = append(all, owner)
		}
	}
	return strings.Join(all, " ")
}

// stencil installs the chart and runs the manager, as an administrator does with helm.
func (c *cluster) stencil(how install.Options, arguments ...string) (running *manager.Process, stop func()) {
	c.t.Helper()
	options, err := how.Beside(c.t.Context(), c.Plane)
	if err != nil {
		c.t.Fatal(err)
	}
	options.Args = append(options.Args, arguments...)
	// Beyond the test's context, which ends before its cleanups: the manager ends by itself.
	started, err := manager.Start(context.WithoutCancel(c.t.Context()), options)
	if err != nil {
		c.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := started.Stop(); err != nil {
			c.t.Error(err)
		}
	})
	c.t.Cleanup(stop)
	return started, stop
}

// run runs stencilctl as the administrator.
func (c *cluster) run(line string) stencilctl.Result {
	c.t.Helper()
	ran, err := stencilctl.Command{Binary: binary, Kubeconfig: c.Kubeconfig(), Line: line}.Run(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return ran
}

// file returns the path of a file that does not exist.
func file(t *testing.T) string { return filepath.Join(t.TempDir(), "templates.yaml") }

func size(t *testing.T, path string) int {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(content), "\n  kind: VirtualMachineTemplate\n")
}

// uninstall removes Stencil with helm.
func (c *cluster) uninstall() {
	c.t.Helper()
	if err := install.Uninstall(c.t.Context(), c.Plane, install.Options{}); err != nil {
		c.t.Fatal(err)
	}
}

// interrupted runs stencilctl, and kills it when it has printed some lines.
func (c *cluster) interrupted(lines int, line string) {
	c.t.Helper()
	command := exec.CommandContext(c.t.Context(), binary, append(strings.Fields(line), "--kubeconfig="+c.Kubeconfig())...)
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	printed := bufio.NewScanner(output)
	for n := 0; n < lines && printed.Scan(); n++ {
	}
	// It may have ended by itself.
	_ = command.Process.Kill()
	_ = command.Wait()
}
