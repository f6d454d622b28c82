package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// policies returns the policies that the tests simulate.
func policies() string {
	const (
		processors = `package processors
import data.lib
deny contains sprintf("it has %d processors", [cpus.count]) if {
  some cpus in lib.cpus
  cpus.count > 4
}
`
		linux = `package linux
deny contains sprintf("its template %s is not of Linux; CORES is %s", [input.template.name, input.parameters.CORES])
`
		described = `package described
deny contains "it has no description" if not input.object.metadata.annotations.description
`
	)
	return gen.Manifest(
		gen.Policy("processors", processors, gen.Spec(`match: {namespaceSelector: {matchLabels: {simulated: "yes"}}}`)),
		gen.Policy("linux", linux, gen.Spec(`{enforcement: Warn, match: {namespaceSelector: {matchLabels: {simulated: "yes"}},
			templates: [{namespace: golden, selector: {matchLabels: {os: windows}}}], subjects: {include: [{kind: User, name: nobody}]}}}`)),
		gen.Policy("described", described, gen.Spec("{enforcement: Audit, match: {kinds: [VirtualMachineTemplate]}}")))
}

// simulated is the part of the output that the tests check.
type simulated struct {
	Evaluated               int `json:"judged"`
	Denied, Warned, Audited int
	Objects                 []struct {
		Kind, Namespace, Name      string
		Denials, Warnings, Audited []struct{ Policy, Message string }
	}
	Missing []string
}

func simulate(t *testing.T, as *controlplane.User, wantCode int, arguments ...string) simulated {
	t.Helper()
	arguments = append([]string{"policy", "simulate", "-o", "json", "-p", write(t, "policies.yaml", policies())}, arguments...)
	got := run(t, as, arguments...)
	if got.code != wantCode {
		t.Fatalf("exit code %d, want %d: %s%s", got.code, wantCode, got.output, got.problems)
	}
	var s simulated
	if err := json.Unmarshal([]byte(got.output), &s); err != nil && wantCode < 2 {
		t.Fatalf("%v: %s", err, got.output)
	}
	return s
}

func (s simulated) lines() []string {
	var lines []string
	for _, o := range s.Objects {
		for action, found := range map[string][]struct{ Policy, Message string }{"deny": o.Denials, "warn": o.Warnings, "audit": o.Audited} {
			for _, each := range found {
				lines = append(lines, fmt.Sprintf("%s %s %s: %s", action, o.Name, each.Policy, each.Message))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func vm(namespace, name, spec string) *unstructured.Unstructured {
	return gen.VM(name, gen.InNamespace(namespace), gen.Label("name", name), gen.RunStrategy("Halted"), gen.Spec(spec))
}

func cores(n int) string {
	return fmt.Sprintf(`template: {spec: {domain: {cpu: {cores: %d}, devices: {}}}}`, n)
}

func TestSimulate(t *testing.T) {
	plane := shared.Plane(t)
	simulated := gen.Label("simulated", "yes")
	apply(t, gen.Manifest(gen.Namespace("shop", simulated), gen.Namespace("bank", simulated), gen.Namespace("attic"), gen.Namespace("golden")))
	apply(t, "apiVersion: instancetype.kubevirt.io/v1beta1\nkind: VirtualMachineClusterInstancetype\nmetadata: {name: u1.large}\nspec: {cpu: {guest: 8}, memory: {guest: 16Gi}}\n")
	apply(t, gen.Manifest(
		gen.Template("windows", gen.InNamespace("golden"), gen.Label("os", "windows"), gen.Declares("CORES", "{type: int, value: '2'}"),
			gen.Renders("", gen.LeastSpec(), gen.Spec(`template: {spec: {domain: {cpu: {cores: "${{CORES}}"}}}}`))),
		vm("shop", "small", cores(2)),
		vm("shop", "large", cores(8)),
		vm("shop", "sized", `{instancetype: {name: u1.large}, template: {spec: {domain: {devices: {}}}}}`),
		vm("shop", "lost", `{instancetype: {name: gone}, template: {spec: {domain: {devices: {}}}}}`),
		vm("bank", "huge", cores(16)),
		vm("attic", "elsewhere", cores(16)),
		gen.VM("pane", gen.InNamespace("bank"), gen.FromTemplate("golden/windows"), gen.RunStrategy("Halted"), gen.Spec(cores(3)))))
	const lost = `deny lost processors: could not be evaluated: Not found: "VirtualMachineClusterInstancetype gone": it does not exist`
	inShop := []string{"deny large processors: it has 8 processors", lost, "deny sized processors: it has 8 processors"}
	everywhere := append([]string{
		"audit windows described: it has no description",
		"deny huge processors: it has 16 processors",
		"warn pane linux: its template windows is not of Linux; CORES is 3",
	}, inShop...)
	slices.Sort(everywhere)

	t.Run("all namespaces", func(t *testing.T) {
		got := simulate(t, plane.Admin(), 1, "-A")
		if diff := cmp.Diff(everywhere, got.lines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got.Evaluated != 8 || got.Denied != 4 || got.Warned != 1 || got.Audited != 1 || got.Missing != nil {
			t.Errorf("%+v", got)
		}
	})
	t.Run("one namespace", func(t *testing.T) {
		got := simulate(t, plane.Admin(), 1, "-n", "shop")
		if diff := cmp.Diff(inShop, got.lines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("selected by labels", func(t *testing.T) {
		got := simulate(t, plane.Admin(), 0, "-A", "-l", "name=small")
		if got.Evaluated != 1 || len(got.Objects) != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("for people", func(t *testing.T) {
		got := run(t, plane.Admin(), "policy", "simulate", "-n", "bank", "-p", write(t, "p.yaml", policies()))
		for _, want := range []string{
			"VirtualMachine bank/huge (CREATE): denied\n  deny processors (medium): it has 16 processors\n",
			"VirtualMachine bank/pane (CREATE): allowed, with warnings\n  warn linux (medium): ",
			"\n2 objects were evaluated: 1 would be denied, 1 warned about, 0 only recorded\n",
		} {
			if !strings.Contains(got.output, want) {
				t.Errorf("%q is not in:\n%s%s", want, got.output, got.problems)
			}
		}
	})
	t.Run("few rights", func(t *testing.T) {
		user := harness.User(t, plane, "clerk")
		rule := rbacv1.PolicyRule{
			APIGroups: []string{"kubevirt.io", "template.kubevirt.io"},
			Resources: []string{"virtualmachines", "virtualmachinetemplates"}, Verbs: []string{"list"},
		}
		harness.Grant(t, plane, user, "shop", rule)
		got := simulate(t, user, 0, "-n", "shop")
		if got.Evaluated != 4 || len(got.Missing) != 1 || !strings.HasPrefix(got.Missing[0], "labels of namespace shop: ") {
			t.Errorf("%+v", got)
		}
		simulate(t, user, 3, "-A")
		impersonated := simulate(t, plane.Admin(), 0, "-n", "shop", "--as", "clerk")
		if diff := cmp.Diff(len(got.Missing), len(impersonated.Missing)); diff != "" {
			t.Errorf("impersonated: %+v", impersonated)
		}
	})
	t.Run("no cluster", func(t *testing.T) {
		got := run(t, plane.Admin(), "policy", "simulate", "-p", write(t, "p.yaml", policies()), "--server", "https://127.0.0.1:1")
		if got.code != 3 || !strings.Contains(got.problems, "listing virtualmachine") {
			t.Errorf("%+v", got)
		}
	})
}

func TestSimulateReadsManyPages(t *testing.T) {
	plane := shared.Plane(t)
	namespace := harness.Namespace(t, plane, "many")
	const many = 520 // more than two pages
	var vms []*unstructured.Unstructured
	for i := range many {
		vms = append(vms, vm(namespace, fmt.Sprintf("vm-%03d", i), cores(1+i%2)))
	}
	apply(t, gen.Manifest(vms...))
	policy := write(t, "odd.rego", "package odd\n\ndeny contains \"odd\" if input.object.spec.template.spec.domain.cpu.cores == 2\n")
	got := run(t, plane.Admin(), "policy", "simulate", "-n", namespace, "-p", policy)
	if want := fmt.Sprintf("%d objects were evaluated: %d would be denied, 0 warned about, 0 only recorded\n", many, many/2); got.code != 1 || !strings.HasSuffix(got.output, want) {
		t.Errorf("exit code %d, output ends with %q, want %q", got.code, got.output[max(0, len(got.output)-len(want)):], want)
	}
}
