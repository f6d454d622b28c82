package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/vmstencil/stencil/test/install"
)

// choice is a value that is commented out: text has one space after the #.
var choice = regexp.MustCompile(`(?m)^( *)#((?:  )*[a-zA-Z-].*)$`)

// TestProductionValues renders and installs the chart with its values for production, as they are and with all choices.
func TestProductionValues(t *testing.T) {
	path := filepath.Join(chartFolder(t), "values-production.yaml")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rendered := render(t, "stencil", string(raw))
	if replicas := plain(t, rendered.field(t, "Deployment/stencil-manager", "{.spec.replicas}")); replicas != 3.0 {
		t.Errorf("%v managers", replicas)
	}
	selector := plain(t, rendered.field(t, "Deployment/stencil-manager", "{.spec.template.spec.topologySpreadConstraints[0].labelSelector.matchLabels}")).(map[string]any)
	labels := plain(t, rendered.field(t, "Deployment/stencil-manager", "{.spec.template.metadata.labels}")).(map[string]any)
	for label, value := range selector {
		if labels[label] != value {
			t.Errorf("pods are spread by label %s=%v, and have %v", label, value, labels[label])
		}
	}

	all := choice.ReplaceAllString(string(raw), "$1$2")
	with := render(t, "stencil", all)
	for _, chosen := range []string{"NetworkPolicy/stencil-manager", "ServiceMonitor/stencil-manager", "PrometheusRule/stencil-manager"} {
		if with[chosen] == nil || rendered[chosen] != nil {
			t.Errorf("%s: with all choices %v, without them %v; values:\n%s", chosen, with[chosen] != nil, rendered[chosen] != nil, all)
		}
	}
	if _, stderr, ok := helm(t, "", "lint", "--strict", chartFolder(t), "--values", path); !ok {
		t.Errorf("helm lint: %s", stderr)
	}

	plane := shared.Plane(t)
	cleanUp(t, plane, install.Options{Release: "stencil"})
	// An APIService without a server breaks discovery.
	run(t, plane, "install", "stencil", chartFolder(t), "--namespace="+install.Namespace, "--create-namespace", "--values="+path, "--set=apiserver.enabled=false")
	mustKubectl(t, plane, "", "get", "deployment/stencil-manager", "--namespace="+install.Namespace)
}
