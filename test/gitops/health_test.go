// Package gitops_test evaluates the health of Stencil's kinds as Argo CD and Flux do, with the scripts and expressions of docs/examples.
package gitops_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	stencil "github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/product"
)

// condition is one of an object; generation is that which was observed.
type condition struct {
	kind, status, reason string
	generation           int
}

// state is an object whose generation is 2, and what Argo CD shows of it. The message of a condition is its type.
type state struct {
	name       string
	conditions []condition
	want       string
	message    string
	// flux is what Flux shows, where it is not the equivalent of want.
	flux string
}

// waits is what Flux shows of an object that another one can complete: it does not wait any longer for one that has failed.
const waits = "InProgress"

func states() map[string][]state {
	const ready, progressing = v1beta1.ConditionReady, v1beta1.ConditionProgressing
	unread := state{name: "new", want: "Progressing", flux: "Unknown"}
	return map[string][]state{
		"template.kubevirt.io/v1beta1 VirtualMachineTemplate": {
			unread,
			{name: "ready", conditions: []condition{{ready, "True", v1beta1.ReasonReconciled, 2}}, want: "Healthy", message: ready},
			{name: "changed", conditions: []condition{{ready, "True", v1beta1.ReasonReconciled, 1}}, want: "Progressing"},
			{name: "invalid", conditions: []condition{{ready, "False", v1beta1.ReasonInvalidConfiguration, 2}}, want: "Degraded", message: ready},
			{name: "importing", conditions: []condition{
				{v1beta1.ConditionSourcesReady, "False", v1beta1.ReasonImporting, 2}, {ready, "False", v1beta1.ReasonSourcesNotReady, 2},
			}, want: "Progressing", message: ready},
			{name: "without its image", conditions: []condition{
				{v1beta1.ConditionSourcesReady, "False", v1beta1.ReasonSourceNotFound, 2}, {ready, "False", v1beta1.ReasonSourcesNotReady, 2},
			}, want: "Degraded", flux: waits},
			{name: "unknown", conditions: []condition{{ready, "Unknown", v1beta1.ReasonReconciling, 2}}, want: "Progressing"},
			{name: "beside KubeVirt's controller", conditions: []condition{
				{ready, "True", v1beta1.ReasonReconciled, 2}, {v1beta1.ConditionStencilReady, "False", v1beta1.ReasonInvalidConfiguration, 2},
			}, want: "Degraded", message: v1beta1.ConditionStencilReady},
		},
		"template.kubevirt.io/v1beta1 VirtualMachineTemplateRequest": {
			unread,
			{name: "waiting", conditions: []condition{{progressing, "True", v1beta1.ReasonWaitingForVirtualMachine, 2}, {ready, "False", v1beta1.ReasonWaitingForVirtualMachine, 2}}, want: "Progressing", message: progressing},
			{name: "done", conditions: []condition{{progressing, "False", v1beta1.ReasonReconciled, 2}, {ready, "True", v1beta1.ReasonReconciled, 2}}, want: "Healthy", message: ready},
			{name: "failed", conditions: []condition{{progressing, "False", v1beta1.ReasonFailed, 2}, {ready, "False", v1beta1.ReasonFailed, 2}}, want: "Degraded", message: progressing},
		},
		"stencil.kubevirt.io/v1alpha1 TemplateApproval": {
			unread,
			{name: "enforced", conditions: []condition{{stencil.ConditionReady, "True", stencil.ReasonEnforced, 2}, {stencil.ConditionExemptUsersFound, "False", stencil.ReasonNotInstalled, 2}}, want: "Healthy", message: stencil.ConditionReady},
			{name: "changed", conditions: []condition{{stencil.ConditionReady, "True", stencil.ReasonEnforced, 1}}, want: "Progressing"},
			{name: "before its namespaces", conditions: []condition{{stencil.ConditionReady, "False", stencil.ReasonNoNamespaces, 2}}, want: "Progressing"},
			{name: "before its templates", conditions: []condition{{stencil.ConditionReady, "False", stencil.ReasonNoTemplates, 2}}, want: "Progressing"},
			{name: "invalid", conditions: []condition{{stencil.ConditionReady, "False", stencil.ReasonInvalidConfiguration, 2}}, want: "Degraded"},
		},
		"stencil.kubevirt.io/v1alpha1 VirtualMachinePolicy": {
			unread,
			{name: "active", conditions: []condition{{stencil.ConditionCompiled, "True", stencil.ReasonCompiled, 2}, {stencil.ConditionActive, "True", stencil.ReasonActive, 2}}, want: "Healthy", message: stencil.ConditionActive},
			{name: "before its webhook", conditions: []condition{{stencil.ConditionCompiled, "True", stencil.ReasonCompiled, 2}, {stencil.ConditionActive, "False", stencil.ReasonNotRouted, 2}}, want: "Progressing"},
			{name: "broken", conditions: []condition{{stencil.ConditionCompiled, "False", stencil.ReasonCompileError, 2}, {stencil.ConditionActive, "False", stencil.ReasonBroken, 2}}, want: "Degraded", message: stencil.ConditionCompiled},
			{name: "with failed tests", conditions: []condition{{stencil.ConditionTested, "False", stencil.ReasonTestsFailed, 2}, {stencil.ConditionActive, "True", stencil.ReasonActive, 2}}, want: "Degraded", message: stencil.ConditionTested},
			{name: "repaired, and not read yet", conditions: []condition{{stencil.ConditionCompiled, "False", stencil.ReasonCompileError, 1}, {stencil.ConditionActive, "False", stencil.ReasonBroken, 1}}, want: "Progressing"},
			{name: "with its last good version", conditions: []condition{{stencil.ConditionActive, "False", stencil.ReasonLastGoodVersion, 2}}, want: "Degraded"},
		},
		"stencil.kubevirt.io/v1alpha1 VirtualMachinePolicySource": {
			unread,
			{name: "applied", conditions: []condition{{stencil.ConditionVerified, "True", stencil.ReasonPolicySourceSigned, 2}, {stencil.ConditionReady, "True", stencil.ReasonPolicySourceApplied, 2}}, want: "Healthy", message: stencil.ConditionReady},
			{name: "changed", conditions: []condition{{stencil.ConditionReady, "True", stencil.ReasonPolicySourceApplied, 1}}, want: "Progressing"},
			{name: "suspended", conditions: []condition{{stencil.ConditionReady, "Unknown", stencil.ReasonPolicySourceSuspended, 2}}, want: "Suspended", message: stencil.ConditionReady, flux: "Current"},
			{name: "not signed", conditions: []condition{{stencil.ConditionVerified, "False", stencil.ReasonPolicySourceNotSigned, 2}, {stencil.ConditionReady, "False", stencil.ReasonPolicySourceNotSigned, 2}}, want: "Degraded", message: stencil.ConditionReady},
			{name: "of another owner", conditions: []condition{{stencil.ConditionReady, "False", stencil.ReasonPolicySourceConflict, 2}}, want: "Degraded", message: stencil.ConditionReady},
			{name: "without its registry", conditions: []condition{{stencil.ConditionReady, "False", stencil.ReasonPolicySourceCheckFailed, 2}}, want: "Progressing", message: stencil.ConditionReady},
		},
		"stencil.kubevirt.io/v1alpha1 GoldenImage": {
			unread,
			{name: "up to date", conditions: []condition{{stencil.ConditionUpToDate, "True", "A", 2}, {stencil.ConditionImporting, "False", "A", 2}}, want: "Healthy", message: stencil.ConditionUpToDate},
			{name: "importing", conditions: []condition{{stencil.ConditionUpToDate, "False", "A", 2}, {stencil.ConditionImporting, "True", "A", 2}}, want: "Progressing", message: stencil.ConditionImporting},
			{name: "stale", conditions: []condition{{stencil.ConditionUpToDate, "False", "A", 2}, {stencil.ConditionImporting, "False", "A", 2}}, want: "Degraded", message: stencil.ConditionUpToDate, flux: waits},
			{name: "not signed", conditions: []condition{{stencil.ConditionUpToDate, "True", "A", 2}, {stencil.ConditionVerified, "False", "A", 2}}, want: "Degraded", message: stencil.ConditionVerified},
			{name: "of another owner", conditions: []condition{{stencil.ConditionUpToDate, "True", "A", 2}, {stencil.ConditionConflict, "True", "A", 2}}, want: "Degraded", message: stencil.ConditionConflict},
		},
	}
}

// object returns a state as it is stored.
func (s state) object(kind string) *unstructured.Unstructured {
	apiVersion, name, _ := strings.Cut(kind, " ")
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": name}}
	object.SetName(s.name)
	object.SetNamespace("default")
	object.SetGeneration(2)
	if s.conditions == nil {
		return object
	}
	var conditions []any
	for _, each := range s.conditions {
		conditions = append(conditions, map[string]any{"type": each.kind, "status": each.status, "reason": each.reason, "message": each.kind, "observedGeneration": int64(each.generation)})
	}
	object.Object["status"] = map[string]any{"conditions": conditions}
	return object
}

// decoded is what one of the tools prints of an object.
type decoded struct{ Kind, Name, Health, Message string }

// evaluate has a tool evaluate all states with an example, and returns what it prints by kind and name.
func evaluate(t *testing.T, tool, flag, example string) map[string]decoded {
	t.Helper()
	root, err := product.Root()
	if err != nil {
		t.Fatal(err)
	}
	tools, err := controlplane.Tools(t.Context(), tool)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "docs", "examples", filepath.FromSlash(example))
	// The tools decode the file leniently, as Argo CD and Flux do not.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &map[string]any{}); err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for kind, list := range states() {
		for _, each := range list {
			objects = append(objects, each.object(kind))
		}
	}
	command := exec.CommandContext(t.Context(), tools[tool], flag, path)
	command.Stdin = strings.NewReader(gen.Manifest(objects...))
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var printed struct{ Resources []decoded }
	if err := json.Unmarshal(stdout.Bytes(), &printed); err != nil || len(printed.Resources) != len(objects) {
		t.Fatalf("%d of %d objects (%v)", len(printed.Resources), len(objects), err)
	}
	found := map[string]decoded{}
	for _, each := range printed.Resources {
		found[each.Kind+"/"+each.Name] = each
	}
	return found
}

func TestHealthForArgoCD(t *testing.T) {
	found := evaluate(t, "argocd-engine", "-health", "argocd/health.yaml")
	for kind, list := range states() {
		_, kind, _ := strings.Cut(kind, " ")
		for _, each := range list {
			t.Run(kind+"/"+each.name, func(t *testing.T) {
				got := found[kind+"/"+each.name]
				if got.Health != each.want || !strings.Contains(got.Message, each.message) || got.Message == "" {
					t.Errorf("%s, %q; want %s, %q", got.Health, got.Message, each.want, each.message)
				}
			})
		}
	}
}

func TestHealthForFlux(t *testing.T) {
	equivalent := map[string]string{"Healthy": "Current", "Degraded": "Failed", "Progressing": waits}
	found := evaluate(t, "flux-engine", "-checks", "flux/health.yaml")
	for kind, list := range states() {
		_, kind, _ := strings.Cut(kind, " ")
		for _, each := range list {
			t.Run(kind+"/"+each.name, func(t *testing.T) {
				want := each.flux
				if want == "" {
					want = equivalent[each.want]
				}
				if got := found[kind+"/"+each.name]; got.Health != want {
					t.Errorf("%s (%s); want %s", got.Health, got.Message, want)
				}
			})
		}
	}
}
