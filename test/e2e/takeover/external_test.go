package takeover_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/defaulter"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// external are the values of an installation beside KubeVirt's template component.
var external = map[string]any{"templateAPI": "External", "objects": map[string]any{"resources": []any{}}, "defaulting": map[string]any{"enabled": true}}

// renders renders the chart with values and the cluster, as helm does before an installation.
func (c *cluster) renders(values ...string) controlplane.Result {
	c.t.Helper()
	folder, err := install.ChartFolder()
	if err != nil {
		c.t.Fatal(err)
	}
	arguments := []string{"template", "stencil", folder, "--namespace=stencil-system", "--dry-run=server"}
	for _, value := range values {
		arguments = append(arguments, "--set-json="+value)
	}
	ran, err := c.Helm(c.t.Context(), arguments...)
	if err != nil {
		c.t.Fatal(err)
	}
	return ran
}

// denied expects that a user is denied to create something.
func (c *cluster) denied(user *controlplane.User, manifest, want string) {
	c.t.Helper()
	ran := harness.Kubectl(c.t, c.Plane, user, manifest, "create", "-f", "-")
	if ran.Code == 0 || !strings.Contains(ran.Stderr, want) {
		c.t.Errorf("exit code %d, no %q:\n%s", ran.Code, want, ran.Stderr)
	}
}

// conditions waits until a template has conditions, each TYPE=STATUS.
func (c *cluster) conditions(name string, want ...string) {
	c.t.Helper()
	c.has(fmt.Sprintf("template %s has %s", name, want), "vmt/"+name, `{range .status.conditions[*]}{.type}={.status}{" "}{end}`, func(conditions string) bool {
		return !slices.ContainsFunc(want, func(one string) bool { return !slices.Contains(strings.Fields(conditions), one) })
	}, "--namespace=golden")
}

// labels returns the labels of the definitions.
func (c *cluster) labels() string {
	c.t.Helper()
	return c.must("", append([]string{"get", "crd", "-o", `jsonpath={range .items[*]}{.metadata.labels}{"\n"}{end}`}, definitions...)...)
}

// TestExternal installs Stencil beside the template component of KubeVirt 1.9, which stays on. virt-api is a stand-in that admits everything, too.
func TestExternal(t *testing.T) {
	const apiserver, objects = "apiserver.enabled=false", "objects.resources=[]"
	c := bare(t)
	if ran := c.renders(`templateAPI="External"`, apiserver, objects); ran.Code == 0 || !strings.Contains(ran.Stderr, "there is no CustomResourceDefinition "+definitions[0]) {
		t.Errorf("without KubeVirt: exit code %d:\n%s", ran.Code, ran.Stderr)
	}
	c.install(controlplane.KubeVirt19)
	c.admits("virt-template-webhook-service", "kubevirt-virt-template-webhook-certs")
	c.admits("virt-api", "kubevirt-virt-api-certs")
	if ran := c.renders(); ran.Code == 0 || !strings.Contains(ran.Stderr, "belongs to KubeVirt's own template component") {
		t.Errorf("with templateAPI Own: exit code %d:\n%s", ran.Code, ran.Stderr)
	}
	c.templates(2)
	before, labels := c.identities(), c.labels()

	sidecar := defaulter.Running(t)
	running, stop := c.stencil(install.Options{Values: external}, "--defaulting-socket="+sidecar.Socket(), "--audit-interval=1s")
	if err := install.AwaitAddedWebhooks(t.Context(), c.Plane); err != nil {
		t.Fatal(err)
	}
	if err := install.AwaitBindings(t.Context(), c.Plane); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"golden", "team-a", "team-b"} {
		c.must("", "create", "namespace", name)
	}
	author := harness.User(t, c.Plane, "author", gen.Role("golden", "edit"))
	ada := harness.User(t, c.Plane, "ada", gen.Role("team-a", "edit"), gen.Role("team-b", "edit"), gen.UsesTemplates("golden"))
	eve := harness.User(t, c.Plane, "eve", gen.Role("team-a", "edit"))

	// Templates: the fields that KubeVirt's definition has, which Stencil's webhook checks.
	box := func(name string, more ...gen.Modifier) string {
		return gen.Manifest(gen.Template(name, append([]gen.Modifier{gen.InNamespace("golden"), gen.Declares("MEMORY", "{value: 64Mi}"),
			gen.Renders("", gen.LeastSpec(), gen.Memory("${MEMORY}"))}, more...)...))
	}
	as := func(user *controlplane.User, manifest string) {
		t.Helper()
		harness.Must(t, c.Plane, user, manifest, "create", "-f", "-")
	}
	as(author, box("box")+"\n---\n"+box("other")+"\n---\n"+box("sized", gen.Fields(`{spec: {virtualMachine: {spec: {instancetype: {name: nowhere}}}}}`)))
	c.denied(author, box("secret", gen.Declares("PASSWORD", "{sensitive: true}")), `unknown field "spec.parameters[1].sensitive"`)
	c.denied(author, box("wrong", gen.Fields(`{spec: {message: "${NOWHERE}"}}`)), "no parameter is called")

	// Virtual machines.
	vm := func(namespace, name, template string) string {
		return gen.Manifest(gen.VM(name, gen.InNamespace(namespace), gen.FromTemplate(template), gen.Parameter("MEMORY", "96Mi")))
	}
	as(ada, vm("team-a", "web", "golden/box"))
	const read = `jsonpath={.spec.template.spec.domain.memory.guest} {.metadata.labels.vm\.kubevirt\.io/template}`
	if got := c.must("", "get", "vm", "web", "--namespace=team-a", "-o", read); got != "96Mi box" {
		t.Errorf("the VirtualMachine has %q", got)
	}
	c.denied(eve, vm("team-a", "hers", "golden/box"), "forbidden")
	c.has("a VirtualMachine has its defaults", "vm/web", `{.spec.template.spec.domain.machine.type}`, func(machine string) bool {
		return strings.HasPrefix(machine, "pc-q35-")
	}, "--namespace=team-a")

	// Approvals.
	c.must(gen.Manifest(gen.Approval("team-b", gen.Governs("team-b"), gen.Approves("golden/box"), gen.AnyValue("MEMORY"))), "create", "-f", "-")
	c.must("", "wait", "templateapproval", "team-b", "--for=condition=Ready", "--timeout=60s")
	as(ada, vm("team-b", "web", "golden/box"))
	c.denied(ada, vm("team-b", "bad", "golden/other"), "golden/other")
	// KubeVirt's create makes VirtualMachines without a reference.
	server := harness.User(t, c.Plane, "system:serviceaccount:kubevirt:virt-template-apiserver", gen.Group("system:serviceaccounts", "system:serviceaccounts:kubevirt"))
	c.denied(server, gen.Manifest(gen.VM("bare", gen.InNamespace("team-b"), gen.LeastSpec())), "the VirtualMachine names no template")
	as(server, gen.Manifest(gen.VM("bare", gen.InNamespace("team-a"), gen.LeastSpec())))

	// The audit of what exists, and policies in Rego.
	c.must(gen.Manifest(gen.Approval("team-a", gen.Governs("team-a"), gen.Approves("golden/box"), gen.AnyValue("MEMORY"), gen.Spec("{enforcement: Audit}"))), "create", "-f", "-")
	c.has("the audit finds the VirtualMachine without a reference", "templateapproval/team-a", "{.status.conforming} {.status.violating} {.status.violations[0].name}", func(found string) bool {
		return found == "1 1 bare"
	})
	c.must(gen.Manifest(gen.Policy("small", "package small\ndeny contains \"too much memory\" if units.parse_bytes(input.object.spec.template.spec.domain.memory.guest) > 67108864\n")), "create", "-f", "-")
	c.must("", "wait", "virtualmachinepolicy", "small", "--for=condition=Active", "--timeout=60s")
	c.denied(ada, vm("team-a", "large", "golden/box"), "too much memory")
	c.must("", "delete", "virtualmachinepolicy", "small")

	// Readiness, beside the condition of KubeVirt's controller, which replaces all conditions when it has read none.
	c.conditions("box", "Valid=True", "SourcesReady=True", "stencil.kubevirt.io/Ready=True")
	c.must("", "wait", "vmt", "box", "--namespace=golden", "--for=condition=stencil.kubevirt.io/Ready", "--timeout=30s")
	controller := harness.User(t, c.Plane, "system:serviceaccount:kubevirt:virt-template-controller-manager", gen.Group("system:serviceaccounts", "system:serviceaccounts:kubevirt"))
	harness.Must(t, c.Plane, controller, "", "patch", "vmt", "box", "--namespace=golden", "--subresource=status", "--type=merge", "-p",
		`{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": "KubeVirt's", "lastTransitionTime": "2026-11-25T10:00:00Z"}]}}`)
	c.conditions("box", "Ready=True", "Valid=True", "SourcesReady=True", "stencil.kubevirt.io/Ready=True")
	if got := c.must("", "get", "vmt", "box", "--namespace=golden", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`); got != "KubeVirt's" {
		t.Errorf("the condition Ready is %q", got)
	}
	c.conditions("sized", "SourcesReady=False", "stencil.kubevirt.io/Ready=False")
	harness.Eventually(t, "an event and a metric say that a template is not ready", func() error {
		events := c.must("", "get", "events", "--namespace=golden", "-o", `jsonpath={range .items[*]}{.involvedObject.name} {.reason}: {.message}{"\n"}{end}`)
		metrics, err := running.Metrics(t.Context())
		if err != nil {
			return err
		}
		if !strings.Contains(events, "sized SourcesNotReady: ") || !strings.Contains(metrics, `stencil_template_not_ready{reason="SourcesNotReady",template="sized",template_namespace="golden"} 1`) {
			return errors.New(events)
		}
		return nil
	})

	// No CDI has roles here with which a user could request a capture. A request is KubeVirt's, while Stencil runs and when it is removed.
	c.must(`{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateRequest", "metadata": {"namespace": "golden", "name": "capture", "finalizers": ["template.kubevirt.io/SnapshotCleanup"]},
		"spec": {"virtualMachineRef": {"namespace": "golden", "name": "web"}}}`, "create", "-f", "-")

	// The installation.
	if ran := c.run("install check"); ran.Code != 0 {
		t.Errorf("check: exit code %d:\n%s", ran.Code, ran.Output)
	}
	harness.Eventually(t, "the manager has no finding", func() error {
		metrics, err := running.Metrics(t.Context())
		if err != nil {
			return err
		}
		var findings []string
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, "stencil_installation_findings{") {
				findings = append(findings, line)
			}
		}
		if len(findings) == 0 || slices.ContainsFunc(findings, func(line string) bool { return !strings.Contains(line, `level="ok"`) }) {
			return fmt.Errorf("%q", findings)
		}
		return nil
	})
	// A release gets the definitions by a takeover only.
	folder, err := install.ChartFolder()
	if err != nil {
		t.Fatal(err)
	}
	upgraded, err := c.Helm(t.Context(), "upgrade", install.Release, folder, "--namespace="+install.Namespace, "--dry-run=server", "--reuse-values", "--set=templateAPI=Own")
	if err != nil {
		t.Fatal(err)
	}
	if upgraded.Code == 0 || !strings.Contains(upgraded.Stderr, "belongs to KubeVirt's own template component") || !strings.Contains(upgraded.Stderr, "stencilctl install takeover") {
		t.Errorf("upgrade to templateAPI Own: exit code %d:\n%s", upgraded.Code, upgraded.Stderr)
	}
	c.settled(controlplane.KubeVirt19)
	for line := range strings.Lines(running.Logs()) {
		if strings.Contains(line, `"level":"error"`) {
			t.Errorf("the manager logs %s", line)
		}
	}
	stop()
	if ran := c.run("install remove"); ran.Code != 0 || strings.Contains(ran.Output, "VirtualMachineTemplateRequest") {
		t.Errorf("remove: exit code %d:\n%s%s", ran.Code, ran.Output, ran.Problems)
	}
	if got := c.must("", "get", "vmtr", "capture", "--namespace=golden", "-o", "jsonpath={.metadata.finalizers}{.status}"); got != `["template.kubevirt.io/SnapshotCleanup"]` {
		t.Errorf("the request has %s", got)
	}
	c.uninstall()
	c.settled(controlplane.KubeVirt19)
	if got, now := c.labels(), c.identities(); got != labels || !maps.Equal(now, before) {
		t.Errorf("labels before\n%safter\n%sUIDs before %v, after %v", labels, got, before, now)
	}
	c.must("", "get", "vmt", "box", "--namespace=golden")
}
