package chart

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

// The real manager, with only the permissions of the chart, publishes its authority and renders; an upgrade of the chart removes no permission.
func TestTheManagerWorksWithItsRightsThroughAnUpgrade(t *testing.T) {
	address, err := manager.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	options := install.Options{ManagerURL: "https://" + address}
	plane := installed(t, options)
	program, err := options.Manager(plane)
	if err != nil {
		t.Fatal(err)
	}
	program.WebhookAddress = address
	process, err := manager.Start(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := process.Stop(); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(process.Logs()) {
			if strings.Contains(strings.ToLower(line), "forbidden") {
				t.Errorf("the manager lacks a right: %s", line)
			}
		}
	}()

	space := namespace(t, plane)
	mustKubectl(t, plane, strings.ReplaceAll(template, "namespace: default", "namespace: "+space), "apply", "-f", "-")
	vm := func(name string) string {
		return `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "` + name + `", "namespace": "` + space +
			`", "annotations": {"template.kubevirt.io/template-ref": "kept"}}}`
	}
	create := func(name string) {
		t.Helper()
		mustKubectl(t, plane, vm(name), "create", "--validate=false", "-f", "-")
		if got := mustKubectl(t, plane, "", "get", "vm", name, "--namespace", space, "--output", "jsonpath={.spec.runStrategy}"); got != "Halted" {
			t.Errorf("runStrategy of %s is %q, want what the template says", name, got)
		}
	}
	create("before")

	configurations := clientFor(t, plane.AdminConfig()).AdmissionregistrationV1().MutatingWebhookConfigurations()
	before, err := configurations.Get(t.Context(), "a-stencil-render", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(before.Webhooks[0].ClientConfig.CABundle) == 0 {
		t.Fatal("the manager is ready, but its authority is not published")
	}
	options.Values = map[string]any{"webhooks": map[string]any{"timeoutSeconds": 7}, "exemptUsers": []any{"kubevirt-controller"}}
	if err := install.Chart(t.Context(), plane, options); err != nil {
		t.Fatal(err)
	}
	after, err := configurations.Get(t.Context(), "a-stencil-render", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *after.Webhooks[0].TimeoutSeconds != 7 {
		t.Error("the upgrade changed nothing")
	}
	if string(after.Webhooks[0].ClientConfig.CABundle) != string(before.Webhooks[0].ClientConfig.CABundle) {
		t.Error("the upgrade reset caBundle")
	}
	create("after")
}
