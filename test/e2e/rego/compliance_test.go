package rego_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// compliance waits until a template of golden has this condition, "False PolicyViolations", with these words in its message;
// or none, when the state is empty.
func compliance(t *testing.T, name, state string, words ...string) {
	t.Helper()
	harness.Eventually(t, "the condition PolicyCompliant of template "+name+" is as wanted", func() error {
		var object v1beta1.VirtualMachineTemplate
		if err := json.Unmarshal([]byte(must(t, "", "get", "virtualmachinetemplate", name, "--namespace=golden", "-o", "json")), &object); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(object.Status.Conditions, "PolicyCompliant")
		if condition == nil || state == "" {
			if condition == nil && state == "" {
				return nil
			}
			return fmt.Errorf("template %s has condition %+v, want %q", name, condition, state)
		}
		if got := string(condition.Status) + " " + condition.Reason; got != state || condition.ObservedGeneration != object.Generation {
			return fmt.Errorf("template %s is %s of generation %d (now %d), want %s: %s", name, got, condition.ObservedGeneration, object.Generation, state, condition.Message)
		}
		for _, word := range words {
			if !strings.Contains(condition.Message, word) {
				return fmt.Errorf("template %s: the message lacks %q: %s", name, word, condition.Message)
			}
		}
		return nil
	})
}

func TestATemplateThatNoLongerPassesIsTold(t *testing.T) {
	needGolden(t)
	must(t, instancetype("VirtualMachineClusterInstancetype", "u1.medium", "", 1), "apply", "-f", "-")
	must(t, preference("fedora"), "apply", "-f", "-")
	must(t, gen.Manifest(gen.Template("checked", gen.InNamespace("golden"), gen.Label("check", "true"), gen.Declares("CORES", "{type: int, minimum: 4, required: true}"),
		gen.Renders("", gen.LeastSpec(), gen.Spec(`template: {spec: {domain: {cpu: {cores: "${{CORES}}"}}}}`)))), "apply", "-f", "-")
	t.Cleanup(func() {
		must(t, "", "delete", "virtualmachinetemplate", "checked", "--namespace=golden", "--ignore-not-found")
	})
	const match = "match: {templates: [{namespace: golden, selector: {matchLabels: {check: 'true'}}}, {namespace: golden, name: ubuntu}]}\n"
	const module = `package x
deny contains sprintf("%v cores are more than LIMIT", [input.object.spec.template.spec.domain.cpu.cores]) if input.object.spec.template.spec.domain.cpu.cores > LIMIT`
	applied(t, "checks", match, strings.ReplaceAll(module, "LIMIT", "2"))
	active(t, "checks")
	compliance(t, "checked", "False PolicyViolations", "with its defaults, VirtualMachines of this template are denied: policy checks: 4 cores are more than 2")
	compliance(t, "ubuntu", "Unknown ParametersRequired", "SSH_KEY")
	compliance(t, "fedora", "")
	counted := func(checked, noncompliant int32, first string) {
		t.Helper()
		harness.Eventually(t, "the status of the policy counts the templates", func() error {
			templates := get(t, "checks").Status.Templates
			if templates == nil || *templates.Checked != checked || *templates.Noncompliant != noncompliant {
				return fmt.Errorf("templates: %+v", templates)
			}
			if first != "" && (len(templates.First) != 1 || templates.First[0].Namespace+"/"+templates.First[0].Name+": "+templates.First[0].Cause != first) {
				return fmt.Errorf("templates: %+v", templates)
			}
			return nil
		})
	}
	counted(1, 1, "golden/checked: 4 cores are more than 2")

	// The policy changes,
	applied(t, "checks", match, strings.ReplaceAll(module, "LIMIT", "4"))
	compliance(t, "checked", "True Compliant")
	counted(1, 0, "")
	// the template does,
	must(t, "", "patch", "virtualmachinetemplate", "checked", "--namespace=golden", "--type=json", `-p=[{"op":"replace","path":"/spec/parameters/0/minimum","value":6}]`)
	compliance(t, "checked", "False PolicyViolations", "6 cores are more than 4")
	// the policy only warns,
	applied(t, "checks", match+"enforcement: Warn", strings.ReplaceAll(module, "LIMIT", "4"))
	compliance(t, "checked", "True PolicyWarnings", "6 cores are more than 4")
	counted(1, 1, "golden/checked: 6 cores are more than 4")
	// and is deleted.
	must(t, "", "delete", "vmpol", "checks")
	compliance(t, "checked", "")
	compliance(t, "ubuntu", "")
}
