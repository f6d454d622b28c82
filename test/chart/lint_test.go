package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/policies"
)

func TestLint(t *testing.T) {
	cases := map[string]string{
		"the defaults":                   `{}`,
		"a manager outside the cluster":  `{manager: {enabled: false}, webhooks: {url: "https://localhost:9443"}}`,
		"certificates from cert-manager": `{certificates: {provider: cert-manager}}`,
		"a certificate that exists":      secretValues,
		"everything optional":            `{manager: {metrics: {serviceMonitor: {enabled: true}}, pprof: {enabled: true}}}`,
		"defaults that guests see":       `{defaulting: {enabled: true}}`,
	}
	for name, values := range cases {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, ok := helm(t, values, "lint", "--strict", "--kube-version", "1.30.0", "--values", "-", chartFolder(t))
			if !ok {
				t.Errorf("helm lint: %s%s", stdout, stderr)
			}
		})
	}
}

// The chart contains a copy of every policy, because helm reads no file outside the chart.
func TestPoliciesInTheChartAreCurrent(t *testing.T) {
	sources, err := policies.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, source := range sources {
		content, err := policies.FS.ReadFile(source.Name())
		if err != nil {
			t.Fatal(err)
		}
		want[source.Name()] = string(content)
	}
	folder := filepath.Join(chartFolder(t), "files", "policies")
	copies, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, file := range copies {
		content := testfile.Read(t, filepath.Join(folder, file.Name()))
		header, rest, _ := strings.Cut(string(content), "\n")
		if !strings.Contains(header, "Code generated") {
			t.Errorf("%s does not say that it is generated", file.Name())
		}
		got[file.Name()] = rest
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run hack/generate-policies.sh (-source +copy):\n%s", diff)
	}
}
