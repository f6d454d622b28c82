package chart

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// secretValue is the value of a parameter, which no message may repeat.
const secretValue = "p4ssw0rd"

// virtualMachines are VirtualMachines in YAML that were stored before the chart was installed: one that was rendered from a template, one without a
// template, and one with mutable parameters.
const virtualMachines = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: rendered
  labels:
    vm.kubevirt.io/template: fedora
    vm.kubevirt.io/template.namespace: golden
    vm.kubevirt.io/template.revision: "1"
  annotations:
    template.kubevirt.io/template-ref: golden/fedora
    template.kubevirt.io/rendered: '{"namespace":"golden","name":"fedora"}'
    parameter.template.kubevirt.io/NAME: web-1
    parameter.template.kubevirt.io/PASSWORD: ` + secretValue + `
spec:
  runStrategy: Halted
  template: {spec: {domain: {devices: {}}}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: plain
spec:
  runStrategy: Halted
  template: {spec: {domain: {devices: {}}}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: mutable
  annotations:
    template.kubevirt.io/template-ref: golden/fedora
    template.kubevirt.io/rendered: '{"namespace":"golden","name":"fedora","sensitive":["PASSWORD"],"mutable":["CORES","SIZE"],"sent":"ZONE","lists":{"/a\"mutable\":[\"ZONE\"":"ZONE"}}'
    parameter.template.kubevirt.io/NAME: web-1
    parameter.template.kubevirt.io/CORES: "2"
spec:
  runStrategy: Halted
  template: {spec: {domain: {devices: {}}}}
`

// controller is one of the chart's default exemptUsers, with the permission that the manager grants to it: webhooks are not called for its updates,
// so only the policy evaluates them.
const controller = "system:serviceaccount:kubevirt:kubevirt-controller"

// namesake is an account of the same name in a namespace without KubeVirt.
const namesake = "system:serviceaccount:elsewhere:kubevirt-controller"

// withVMs installs the chart, with webhooks that no server answers, into a plane where the VirtualMachines are already stored, and returns their
// namespace. The given users, the controller and a stranger may do anything to VirtualMachines there.
func withVMs(t *testing.T, options install.Options, users ...string) (plane *controlplane.Plane, space string, known map[string]*controlplane.User) {
	t.Helper()
	plane = shared.Plane(t)
	space = namespace(t, plane)
	mustKubectl(t, plane, virtualMachines, "create", "--namespace", space, "-f", "-")
	known = map[string]*controlplane.User{}
	for _, name := range append(users, controller, "stranger") {
		user := harness.User(t, plane, name)
		harness.Grant(t, plane, user, space, rbacv1.PolicyRule{
			APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines", "virtualmachines/status"}, Verbs: []string{"*"},
		})
		known[name] = user
	}
	harness.Grant(t, plane, known[controller], "", install.Bypass())
	options.ManagerURL = deadURL
	installed(t, options)
	if err := install.AwaitPolicies(t.Context(), plane); err != nil {
		t.Fatal(err)
	}

	// The API server enforces webhooks and policies a moment after they are stored. Each wait sends a request that must be denied.
	eventually(t, "the webhooks hold", func() string {
		return missing("failed calling webhook", kubectl(t, plane, known["stranger"], "", "label", "vm", "rendered", "probe=1",
			"--namespace", space, "--dry-run=server"))
	})
	eventually(t, "the policies hold", func() string {
		return missing("denied request: "+labelsChanged("vm.kubevirt.io/template"), kubectl(t, plane, known[controller], "", "label", "vm", "rendered", "vm.kubevirt.io/template-",
			"--namespace", space, "--dry-run=server"))
	})
	return plane, space, known
}

// wantAnswer requires a failure with that text in its standard error, or success if it is empty.
func wantAnswer(t *testing.T, want string, result controlplane.Result) {
	t.Helper()
	if complaint := differs(want, result); complaint != "" {
		t.Error(complaint)
	}
}

func differs(want string, result controlplane.Result) string {
	if want != "" {
		return missing(want, result)
	}
	if result.Code != 0 {
		return "denied: " + result.Stderr
	}
	return ""
}

// missing returns a complaint unless the result is a failure with want in its standard error.
func missing(want string, result controlplane.Result) string {
	if result.Code != 0 && strings.Contains(result.Stderr, want) {
		return ""
	}
	return fmt.Sprintf("no %q: %s%s", want, result.Stdout, result.Stderr)
}
