package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
	Evaluated               int `json:"evaluated"`
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
	t.Run("for code hosts", func(t *testing.T) {
		got := run(t, plane.Admin(), "policy", "simulate", "-A", "-o", "sarif", "-p", write(t, "p.yaml", policies()))
		var log struct {
			Runs []struct {
				Results []struct {
					RuleID, Level string
					Message       struct{ Text string }
					Locations     []struct {
						LogicalLocations []struct{ FullyQualifiedName string }
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(got.output), &log); err != nil || got.code != 1 {
			t.Fatalf("%v, exit code %d: %s", err, got.code, got.output)
		}
		var lines []string
		for _, r := range log.Runs[0].Results {
			lines = append(lines, fmt.Sprintf("%s %s %s", r.Level, r.RuleID, r.Locations[0].LogicalLocations[0].FullyQualifiedName))
		}
		slices.Sort(lines)
		want := []string{
			"error processors VirtualMachine bank/huge", "error processors VirtualMachine shop/large", "error processors VirtualMachine shop/lost",
			"error processors VirtualMachine shop/sized", "note described VirtualMachineTemplate golden/windows", "warning linux VirtualMachine bank/pane",
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("for CI systems", func(t *testing.T) {
		got := run(t, plane.Admin(), "policy", "simulate", "-A", "-o", "junit", "-p", write(t, "p.yaml", policies()))
		if got.code != 1 || !strings.Contains(got.output, `<testsuites tests="6" failures="4" errors="0">`) ||
			!strings.Contains(got.output, `<failure message="processors (medium): it has 16 processors">`) {
			t.Errorf("exit code %d: %s", got.code, got.output)
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
		if got.Evaluated != 4 || len(got.Missing) != 2 || !strings.HasPrefix(got.Missing[0], "PolicyExceptions: listing policyexceptions.stencil.kubevirt.io: ") ||
			!strings.HasPrefix(got.Missing[1], "labels of namespace shop: ") {
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

// Exceptions of the cluster and of files are applied, except those for certain users.
func TestSimulateAppliesExceptions(t *testing.T) {
	plane := shared.Plane(t)
	namespace := harness.Namespace(t, plane, "excepted")
	name := "sizes-of-" + namespace
	source := "package sizes\n\ndeny contains \"too large\" if input.object.spec.template.spec.domain.cpu.cores > 4\n"
	policy := write(t, "p.yaml", gen.Manifest(gen.Policy(name, source, gen.Spec(`match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+namespace+`}}}`))))
	apply(t, gen.Manifest(vm(namespace, "small", cores(2)), vm(namespace, "large", cores(8)), vm(namespace, "huge", cores(16))))
	until := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	exception := func(name, more string) string {
		return fmt.Sprintf("apiVersion: stencil.kubevirt.io/v1alpha1\nkind: PolicyException\nmetadata: {name: %s}\nspec: {policies: [sizes-of-%s], namespaces: [%s], reason: a test, expiresAt: %q, %s}\n",
			name, namespace, namespace, until, more)
	}
	stored, of := namespace+"-stored", namespace+"-user"
	apply(t, exception(stored, "names: [large]"))
	apply(t, exception(of, "names: [huge], subjects: [{kind: User, name: ada}]"))
	t.Cleanup(func() { harness.Must(t, plane, nil, "", "delete", "policyexception", stored, of) })
	large := "VirtualMachine " + namespace + "/large (CREATE): allowed\n  excepted by PolicyException " + stored + " until " + until + ": " + name + " (medium): too large\n  " + name + ": deny\n"
	huge := "VirtualMachine " + namespace + "/huge (CREATE): denied\n  deny " + name + " (medium): too large\n  " + name + ": deny\n"
	for _, tc := range []struct {
		name, file string
		code       int
		want       string
	}{
		{"those of the cluster", "", 1, huge + large + "3 objects were evaluated: 1 would be denied, 0 warned about, 0 only recorded, 1 excepted\n"},
		{"another one", exception("other", "names: ['*']"), 0, strings.Replace(huge, "denied\n  deny", "allowed\n  excepted by PolicyException other until "+until+":", 1) +
			large + "3 objects were evaluated: 0 would be denied, 0 warned about, 0 only recorded, 2 excepted\n"},
		{"instead of the stored one", exception(stored, "names: [small]"), 1, huge + strings.ReplaceAll(huge, "/huge", "/large") + "3 objects were evaluated: 2 would be denied, 0 warned about, 0 only recorded\n"},
	} {
		arguments := []string{"policy", "simulate", "-n", namespace, "-p", policy}
		if tc.file != "" {
			arguments = append(arguments, "--exception", write(t, "exception.yaml", tc.file))
		}
		if got := run(t, plane.Admin(), arguments...); got.code != tc.code || got.output != tc.want {
			t.Errorf("%s: exit code %d, want %d:\n%s\nwant:\n%s%s", tc.name, got.code, tc.code, got.output, tc.want, got.problems)
		}
		if got := run(t, plane.Admin(), append(arguments, "--against-current")...); tc.code == 0 && got.code != 0 {
			t.Errorf("%s, against the policies of the cluster: exit code %d:\n%s%s", tc.name, got.code, got.output, got.problems)
		}
	}
}

// A policy is compared with the one of its name in the cluster.
func TestSimulateAgainstTheCurrentPolicy(t *testing.T) {
	plane := shared.Plane(t)
	namespace := harness.Namespace(t, plane, "against")
	name := "sizes-of-" + namespace
	policy := func(atMost int) string {
		source := fmt.Sprintf("package sizes\n\ndeny contains \"too large\" if input.object.spec.template.spec.domain.cpu.cores > %d\n\ndeny contains \"no owner\" if not input.object.metadata.labels.owner\n", atMost)
		return gen.Manifest(gen.Policy(name, source, gen.Spec(`match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+namespace+`}}}`)))
	}
	owned := gen.Label("owner", "ada")
	small, large := vm(namespace, "small", cores(2)), vm(namespace, "large", cores(8))
	for _, each := range []*unstructured.Unstructured{small, large} {
		owned(each)
	}
	apply(t, gen.Manifest(small, large, vm(namespace, "free", cores(1))))
	against := func(atMost int) result {
		return run(t, plane.Admin(), "policy", "simulate", "-n", namespace, "-p", write(t, "p.yaml", policy(atMost)), "--against-current")
	}
	const summary = "3 objects were evaluated: %d would newly be denied, %d no longer, %d would be denied in all\n"
	if got, want := against(4), fmt.Sprintf(summary, 2, 0, 2); got.code != 1 || !strings.HasSuffix(got.output, want) {
		t.Errorf("without one in the cluster: exit code %d: %s", got.code, got.output)
	}
	apply(t, policy(4))
	t.Cleanup(func() { harness.Must(t, plane, nil, "", "delete", "virtualmachinepolicy", name) })
	for _, tc := range []struct {
		atMost, code int
		want         string
	}{
		{4, 0, fmt.Sprintf(summary, 0, 0, 2)},
		{8, 0, "VirtualMachine " + namespace + "/large (CREATE): allowed\n  no longer denied " + name + " (medium): too large\n" + fmt.Sprintf(summary, 0, 1, 1)},
		{1, 1, "VirtualMachine " + namespace + "/small (CREATE): denied\n  newly denied " + name + " (medium): too large\n" + fmt.Sprintf(summary, 1, 0, 3)},
	} {
		if got := against(tc.atMost); got.code != tc.code || got.output != tc.want {
			t.Errorf("at most %d: exit code %d, want %d:\n%s\nwant:\n%s%s", tc.atMost, got.code, tc.code, got.output, tc.want, got.problems)
		}
	}
	user := harness.User(t, plane, "reader-of-"+namespace)
	harness.Grant(t, plane, user, namespace, rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"list"}})
	if got := run(t, user, "policy", "simulate", "-n", namespace, "-p", write(t, "p.yaml", policy(4)), "--against-current"); got.code != 3 || !strings.Contains(got.problems, "reading VirtualMachinePolicy "+name) {
		t.Errorf("exit code %d: %s", got.code, got.problems)
	}
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
