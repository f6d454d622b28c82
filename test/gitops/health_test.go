// Package gitops_test runs what GitOps tools are given: scripts of health, with the interpreter and the libraries with which Argo CD runs them.
package gitops_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	stencil "github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/product"
)

// condition is one of an object; generation is that which was observed.
type condition struct {
	kind, status, reason string
	generation           int
}

// state is an object whose generation is 2, and what Argo CD shows of it.
type state struct {
	name       string
	conditions []condition
	want       string
	message    string
}

func states() map[string][]state {
	const ready, progressing = v1beta1.ConditionReady, v1beta1.ConditionProgressing
	unread := state{name: "new", want: "Progressing"}
	return map[string][]state{
		"template.kubevirt.io_VirtualMachineTemplate": {
			unread,
			{name: "ready", conditions: []condition{{ready, "True", v1beta1.ReasonReconciled, 2}}, want: "Healthy", message: ready},
			{name: "changed", conditions: []condition{{ready, "True", v1beta1.ReasonReconciled, 1}}, want: "Progressing"},
			{name: "invalid", conditions: []condition{{ready, "False", v1beta1.ReasonInvalidConfiguration, 2}}, want: "Degraded", message: ready},
			{name: "importing", conditions: []condition{
				{v1beta1.ConditionSourcesReady, "False", v1beta1.ReasonImporting, 2}, {ready, "False", v1beta1.ReasonSourcesNotReady, 2},
			}, want: "Progressing", message: ready},
			{name: "without its image", conditions: []condition{
				{v1beta1.ConditionSourcesReady, "False", v1beta1.ReasonSourceNotFound, 2}, {ready, "False", v1beta1.ReasonSourcesNotReady, 2},
			}, want: "Degraded"},
			{name: "unknown", conditions: []condition{{ready, "Unknown", v1beta1.ReasonReconciling, 2}}, want: "Progressing"},
			{name: "beside KubeVirt's controller", conditions: []condition{
				{ready, "True", v1beta1.ReasonReconciled, 2}, {v1beta1.ConditionStencilReady, "False", v1beta1.ReasonSourcesNotReady, 2},
			}, want: "Degraded", message: v1beta1.ConditionStencilReady},
		},
		"template.kubevirt.io_VirtualMachineTemplateRequest": {
			unread,
			{name: "waiting", conditions: []condition{{progressing, "True", v1beta1.ReasonWaitingForVirtualMachine, 2}, {ready, "False", v1beta1.ReasonWaitingForVirtualMachine, 2}}, want: "Progressing", message: progressing},
			{name: "done", conditions: []condition{{progressing, "False", v1beta1.ReasonReconciled, 2}, {ready, "True", v1beta1.ReasonReconciled, 2}}, want: "Healthy", message: ready},
			{name: "failed", conditions: []condition{{progressing, "False", v1beta1.ReasonFailed, 2}, {ready, "False", v1beta1.ReasonFailed, 2}}, want: "Degraded", message: progressing},
		},
		"stencil.kubevirt.io_TemplateApproval": {
			unread,
			{name: "enforced", conditions: []condition{{stencil.ConditionReady, "True", stencil.ReasonEnforced, 2}, {stencil.ConditionExemptUsersFound, "False", stencil.ReasonNotInstalled, 2}}, want: "Healthy", message: stencil.ConditionReady},
			{name: "changed", conditions: []condition{{stencil.ConditionReady, "True", stencil.ReasonEnforced, 1}}, want: "Progressing"},
			{name: "before its namespaces", conditions: []condition{{stencil.ConditionReady, "False", stencil.ReasonNoNamespaces, 2}}, want: "Progressing"},
			{name: "before its templates", conditions: []condition{{stencil.ConditionReady, "False", stencil.ReasonNoTemplates, 2}}, want: "Progressing"},
			{name: "invalid", conditions: []condition{{stencil.ConditionReady, "False", stencil.ReasonInvalidConfiguration, 2}}, want: "Degraded"},
		},
		"stencil.kubevirt.io_VirtualMachinePolicy": {
			unread,
			{name: "active", conditions: []condition{{stencil.ConditionCompiled, "True", stencil.ReasonCompiled, 2}, {stencil.ConditionActive, "True", stencil.ReasonActive, 2}}, want: "Healthy", message: stencil.ConditionActive},
			{name: "before its webhook", conditions: []condition{{stencil.ConditionCompiled, "True", stencil.ReasonCompiled, 2}, {stencil.ConditionActive, "False", stencil.ReasonNotRouted, 2}}, want: "Progressing"},
			{name: "broken", conditions: []condition{{stencil.ConditionCompiled, "False", stencil.ReasonCompileError, 2}, {stencil.ConditionActive, "False", stencil.ReasonBroken, 2}}, want: "Degraded", message: stencil.ConditionCompiled},
			{name: "with failed tests", conditions: []condition{{stencil.ConditionTested, "False", stencil.ReasonTestsFailed, 2}, {stencil.ConditionActive, "True", stencil.ReasonActive, 2}}, want: "Degraded", message: stencil.ConditionTested},
			{name: "repaired, and not read yet", conditions: []condition{{stencil.ConditionCompiled, "False", stencil.ReasonCompileError, 1}, {stencil.ConditionActive, "False", stencil.ReasonBroken, 1}}, want: "Progressing"},
			{name: "with its last good version", conditions: []condition{{stencil.ConditionActive, "False", stencil.ReasonLastGoodVersion, 2}}, want: "Degraded"},
		},
		"stencil.kubevirt.io_GoldenImage": {
			unread,
			{name: "up to date", conditions: []condition{{stencil.ConditionUpToDate, "True", "A", 2}, {stencil.ConditionImporting, "False", "A", 2}}, want: "Healthy", message: stencil.ConditionUpToDate},
			{name: "importing", conditions: []condition{{stencil.ConditionUpToDate, "False", "A", 2}, {stencil.ConditionImporting, "True", "A", 2}}, want: "Progressing", message: stencil.ConditionImporting},
			{name: "stale", conditions: []condition{{stencil.ConditionUpToDate, "False", "A", 2}, {stencil.ConditionImporting, "False", "A", 2}}, want: "Degraded", message: stencil.ConditionUpToDate},
			{name: "not signed", conditions: []condition{{stencil.ConditionUpToDate, "True", "A", 2}, {stencil.ConditionVerified, "False", "A", 2}}, want: "Degraded", message: stencil.ConditionVerified},
			{name: "of another owner", conditions: []condition{{stencil.ConditionUpToDate, "True", "A", 2}, {stencil.ConditionConflict, "True", "A", 2}}, want: "Degraded", message: stencil.ConditionConflict},
		},
	}
}

func TestHealthForArgoCD(t *testing.T) {
	root, err := product.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "examples", "argocd", "health.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var configuration corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &configuration); err != nil {
		t.Fatal(err)
	}
	kinds := states()
	if len(configuration.Data) != len(kinds) {
		t.Errorf("%d scripts, and states of %d kinds", len(configuration.Data), len(kinds))
	}
	for kind, list := range kinds {
		script := configuration.Data["resource.customizations.health."+kind]
		if script == "" {
			t.Errorf("no script for %s", kind)
		}
		for _, each := range list {
			t.Run(kind+"/"+each.name, func(t *testing.T) {
				status, message := run(t, script, each.conditions)
				if status != each.want || !strings.Contains(message, each.message) || message == "" {
					t.Errorf("%s, %q; want %s, %q", status, message, each.want, each.message)
				}
			})
		}
	}
}

// run runs a script on an object with conditions. The message of each is its type.
func run(t *testing.T, script string, conditions []condition) (status, message string) {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, library := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(library), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	metadata := state.NewTable()
	metadata.RawSetString("generation", lua.LNumber(2))
	object := state.NewTable()
	object.RawSetString("metadata", metadata)
	if conditions != nil {
		list := state.NewTable()
		for _, each := range conditions {
			one := state.NewTable()
			for key, value := range map[string]string{"type": each.kind, "status": each.status, "reason": each.reason, "message": each.kind} {
				one.RawSetString(key, lua.LString(value))
			}
			one.RawSetString("observedGeneration", lua.LNumber(each.generation))
			list.Append(one)
		}
		fields := state.NewTable()
		fields.RawSetString("conditions", list)
		object.RawSetString("status", fields)
	}
	state.SetGlobal("obj", object)
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	result, is := state.Get(-1).(*lua.LTable)
	if !is {
		t.Fatalf("the script returns %s", state.Get(-1))
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}
