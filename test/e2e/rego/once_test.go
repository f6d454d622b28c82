package rego_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/metrics"
)

// evaluators are the webhooks that validate VirtualMachines, as the metric of calls names them.
var evaluators = []string{"machines", "policed"}

// calls returns how often each webhook has been called.
func calls(t *testing.T) map[string]float64 {
	t.Helper()
	text, err := stencil.first.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, webhook := range evaluators {
		if counts[webhook], err = metrics.Sum(text, "stencil_webhook_duration_seconds_count", fmt.Sprintf("webhook=%q", webhook)); err != nil {
			t.Fatal(err)
		}
	}
	return counts
}

// TestOneCallJudgesAMachine creates VirtualMachines and changes them, with and without template and rules, in namespaces with and without approvals,
// while a policy is active, and counts the calls.
func TestOneCallJudgesAMachine(t *testing.T) {
	const rules = `[{"name": "named", "rule": "string", "path": "jsonpath::.spec.hostname", "minLength": 3, "message": "give it a name"}]`
	needGolden(t)
	must(t, instancetype("VirtualMachineClusterInstancetype", "u1.medium", "", 1), "apply", "-f", "-")
	must(t, preference("fedora"), "apply", "-f", "-")
	must(t, gen.Manifest(gen.Template("ruled", gen.InNamespace("golden"), gen.Annotation("validations", rules), gen.Declares("NAME"),
		gen.Renders("${NAME}", gen.LeastSpec(), gen.Spec("template: {spec: {hostname: '${NAME}'}}")))), "apply", "-f", "-")
	t.Cleanup(func() { must(t, "", "delete", "vmt", "ruled", "--namespace=golden") })
	applied(t, "once", "", denies("once"))
	active(t, "once")
	awaitDenial(t, "once", "no once here")

	user := harness.User(t, stencil.Plane, "once", gen.UsesTemplates("golden"))
	body := gen.Spec("{runStrategy: Halted, template: {spec: {hostname: HOST, domain: {devices: {}}}}}")
	of := func(modifiers ...gen.Modifier) string {
		return gen.Manifest(gen.VM("one", append(modifiers, gen.Label("test", "LABEL"))...))
	}
	plain, ruled := of(body, gen.Annotation("a", "b")), of(body, gen.Annotation("vm.kubevirt.io/validations", rules))
	fromTemplate, fromRuled := of(gen.FromTemplate("golden/fedora")), of(gen.FromTemplate("golden/ruled"), gen.Spec("template: {spec: {hostname: HOST}}"))
	const (
		compared   = "virtualmachine.validate.template.kubevirt.io"
		rulesToo   = "ruledvirtualmachine.validate.template.kubevirt.io"
		free       = "create.virtualmachine.policies.stencil.kubevirt.io"
		uncompared = "create.templatedvirtualmachine.policies.stencil.kubevirt.io"
	)
	// With enforcement Audit nothing is evaluated for an approval, as without one.
	excluded := map[string]evaluatedVM{
		"no template": {plain, "policed", free}, "no template, with rules": {ruled, "machines", rulesToo},
		"a template": {fromTemplate, "policed", uncompared}, "a template with rules": {fromRuled, "machines", rulesToo},
	}
	for enforcement, cases := range map[string]map[string]evaluatedVM{
		"":      excluded,
		"Audit": excluded,
		"Warn": {
			"no template": {plain, "policed", free}, "no template, with rules": {ruled, "machines", rulesToo},
			"a template": {fromTemplate, "machines", compared}, "a template with rules": {fromRuled, "machines", rulesToo},
		},
		"Deny": {
			"a template": {fromTemplate, "machines", compared}, "a template with rules": {fromRuled, "machines", rulesToo},
		},
	} {
		label := map[string]string{"": "false", "Deny": "true"}[enforcement]
		if label == "" {
			label = strings.ToLower(enforcement)
		}
		namespace := "once-" + label
		must(t, "", "create", "namespace", namespace)
		t.Cleanup(func() { must(t, "", "delete", "namespace", namespace, "--wait=false") })
		harness.Grant(t, stencil.Plane, user, namespace, rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"*"}})
		if enforcement != "" {
			must(t, gen.Manifest(gen.Approval(namespace, gen.Governs(namespace), gen.Approves("golden/fedora", "golden/ruled"), gen.Spec("enforcement: "+enforcement),
				gen.Overrides("spec.template.spec.hostname", "spec.runStrategy", "metadata.labels.*", "metadata.annotations.*"))), "apply", "-f", "-")
			t.Cleanup(func() { must(t, "", "delete", "templateapproval", namespace) })
		}
		harness.Eventually(t, "namespace "+namespace+" is decided on", func() error {
			if got := must(t, "", "get", "namespace", namespace, "-o", `jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}`); got != label {
				return fmt.Errorf("namespace %s is labelled %q, want %q", namespace, got, label)
			}
			return nil
		})
		for name, tc := range cases {
			t.Run(namespace+", "+name, func(t *testing.T) {
				manifest := func(label, host string) string {
					return strings.NewReplacer("LABEL", label, "HOST", host).Replace(tc.manifest)
				}
				// Denied by the expected webhook, with all reasons. The API server observes a new label of the namespace a little later.
				want := []string{fmt.Sprintf("admission webhook %q denied", tc.by), "no once here"}
				if tc.by == rulesToo {
					want = append(want, "give it a name")
				}
				awaitAnswer(t, user, manifest("once", "a"), false, want, "create", "--namespace", namespace, "-f", "-")
				once := func(what, stdin string, arguments ...string) {
					t.Helper()
					before := calls(t)
					result, err := stencil.Kubectl(t.Context(), user, stdin, append(arguments, "--namespace", namespace)...)
					if err != nil || result.Code != 0 {
						t.Fatalf("%s: %v %s", what, err, result.Stderr)
					}
					after := calls(t)
					for _, webhook := range evaluators {
						got, want := after[webhook]-before[webhook], 0.0
						if webhook == tc.webhook {
							want = 1
						}
						if got != want {
							t.Errorf("%s: webhook %s was called %v times, want %v", what, webhook, got, want)
						}
					}
				}
				once("creating it", manifest("other", "abc"), "create", "-f", "-")
				once("changing its spec", "", "patch", "vm", "one", "--type=merge", "--patch", `{"spec": {"runStrategy": "Always"}}`)
				if _, err := stencil.Kubectl(t.Context(), user, "", "delete", "vm", "one", "--namespace", namespace); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// evaluatedVM is a VirtualMachine, the only webhook that evaluates it, and the entry of the configuration that calls it.
type evaluatedVM struct{ manifest, webhook, by string }
