package beside_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/harness"
)

// TestTheManagerReportsTheInstallation changes what the manager checks every second, and expects a metric, and one event for each change.
func TestTheManagerReportsTheInstallation(t *testing.T) {
	// Other tests cause the same events, and a recorder counts repeated events instead of creating them.
	if err := stage.StopManager(); err != nil {
		t.Fatal(err)
	}
	admin(t, "", "delete", "events", "--all", "--all-namespaces")
	if err := stage.StartManager(); err != nil {
		t.Fatal(err)
	}
	configured := func(fields string) {
		t.Helper()
		admin(t, "", "patch", "kubevirt", "kubevirt", "--namespace=kubevirt", "--type=merge", "-p", `{"spec": {"configuration": {`+fields+`}}}`)
	}
	finds := func(level, subject string, is bool) {
		t.Helper()
		series := fmt.Sprintf("stencil_installation_findings{level=%q,subject=%q} 1\n", level, subject)
		harness.Eventually(t, fmt.Sprintf("%s is %v", strings.TrimSpace(series), is), func() error {
			text, err := stage.Manager.Metrics(t.Context())
			if err == nil && strings.Contains(text, series) != is {
				err = fmt.Errorf("the metrics are\n%s", text)
			}
			return err
		})
	}
	// reports waits until an event about an object contains a text, and requires that it was recorded once.
	reports := func(kind, name, reason, text string) {
		t.Helper()
		// Events about objects of the cluster are in the namespace default.
		namespace := map[string]string{"KubeVirt": "kubevirt"}[kind]
		if namespace == "" {
			namespace = "default"
		}
		harness.Eventually(t, "an event reports "+text, func() error {
			got := admin(t, "", "get", "events", "--namespace="+namespace, "-o",
				`go-template={{range .items}}{{.involvedObject.kind}}/{{.involvedObject.name}} {{.reason}} {{with .series}}{{.count}} times{{end}}: {{.message}}{{"\n"}}{{end}}`)
			if found := strings.Count(got, fmt.Sprintf("%s/%s %s : %s", kind, name, reason, text)); found != 1 {
				return fmt.Errorf("there are %d events:\n%s", found, got)
			}
			return nil
		})
	}
	t.Cleanup(func() { configured(`"developerConfiguration": {"featureGates": null}, "virtTemplateDeployment": null`) })

	admin(t, "", "--namespace=kubevirt", "patch", "kubevirt", "kubevirt", "--subresource=status", "--type=merge", "--patch", `{"status": {"observedKubeVirtVersion": "v1.8.2"}}`)
	finds("warning", "KubeVirt", true)
	finds("ok", "CustomResourceDefinition "+definition, true)
	reports("KubeVirt", "kubevirt", "InstallationFinding", "warning: kubevirt/kubevirt, v1.8.2, Deployed; its template component is off: its feature gate Template is off: before an upgrade to 1.9")

	configured(`"developerConfiguration": {"featureGates": ["Template"]}`)
	finds("problem", "CustomResourceDefinition "+definition, true)
	reports("CustomResourceDefinition", definition, "InstallationFinding", "problem: belongs to Helm release stencil-system/stencil: KubeVirt's rollout stops at it with AlreadyExists: kubectl patch kubevirt kubevirt")

	configured(`"developerConfiguration": {"featureGates": null}, "virtTemplateDeployment": {"enabled": false}`)
	finds("problem", "CustomResourceDefinition "+definition, false)
	finds("ok", "KubeVirt", true)
	reports("CustomResourceDefinition", definition, "InstallationFindingSolved", "the problem about CustomResourceDefinition "+definition+" is solved")
	reports("KubeVirt", "kubevirt", "InstallationFindingSolved", "the warning about KubeVirt is solved")
}
