package certificates_test

import (
	"cmp"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// family is the documented name and type of a metric.
type family struct {
	Name, Type string
}

var (
	documentedFamily = regexp.MustCompile("(?m)^\\| `(stencil_[a-z_]+)` \\| ([a-z]+) \\|")
	exposedFamily    = regexp.MustCompile(`(?m)^# TYPE (stencil_[a-z_]+) ([a-z]+)$`)
)

func TestDocumentationListsEveryMetric(t *testing.T) {
	process := startReplica(t)
	requests := newRequests(t)
	for _, request := range []func() error{
		func() error { return requests.vm(t.Context(), "measured") },
		func() error { return requests.template(t.Context(), "measured") },
	} {
		if err := request(); err != nil {
			t.Fatal(err)
		}
	}
	var exposed []family
	expose := func(names ...string) {
		t.Helper()
		harness.Eventually(t, "these metrics are exposed", func() error {
			text, err := process.Metrics(t.Context())
			if err != nil {
				return err
			}
			exposed = families(exposedFamily, text)
			for _, name := range names {
				if !slices.ContainsFunc(exposed, func(f family) bool { return f.Name == name }) {
					return errors.New("there is no " + name)
				}
			}
			return nil
		})
	}
	// That of templates that are not ready begins with the first of them.
	kubectl(t, gen.Manifest(gen.Template("lacking", gen.InNamespace("default"), gen.Renders("", gen.LeastSpec(),
		gen.Spec("template: {spec: {volumes: [{name: root, persistentVolumeClaim: {claimName: nowhere}}]}}")))), "create", "-f", "-")
	defer kubectl(t, "", "delete", "vmt", "lacking", "--namespace=default")
	// Those of golden images begin with the first image; the manager copies the status of one that it may not keep fresh.
	kubectl(t, `{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "GoldenImage", "metadata": {"name": "measured", "namespace": "default"},
		"spec": {"source": {"registry": {"url": "registry.example.com/a/b"}}, "storage": {"size": "1Gi"}}}`, "create", "-f", "-")
	defer kubectl(t, "", "delete", "goldenimage", "measured", "--namespace=default")
	kubectl(t, "", "patch", "goldenimage", "measured", "--namespace=default", "--subresource=status", "--type=merge", "--patch",
		`{"status": {"nextCheckTime": "2026-01-02T00:00:00Z", "architectures": [{"dataSource": "measured", "current": {"digest": "sha256:0", "importedAt": "2026-01-01T00:00:00Z", "volume": "measured-0"}}]}}`)
	kubectl(t, "", "annotate", "goldenimage", "measured", "--namespace=default", "read-it-again=now")
	// That of policy sources begins with the first one, which has a reason also while sources are not enabled.
	kubectl(t, `{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "VirtualMachinePolicySource", "metadata": {"name": "measured"},
		"spec": {"url": "oci://registry.example.com/a/b", "verify": {"publicKeys": ["-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"]}}}`, "create", "-f", "-")
	defer kubectl(t, "", "delete", "vmpolsrc", "measured")
	expose("stencil_policy_source_state", "stencil_template_not_ready", "stencil_golden_image_imported_timestamp_seconds", "stencil_golden_image_virtual_machines", "stencil_installation_findings")
	// The metric of caBundle updates begins with the first of them.
	kubectl(t, "", "patch", renderConfiguration, "--type=json", "--patch", `[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`)
	expose("stencil_ca_bundle_updates_total")
	// The self-protection may have restored the configuration before, whose metric is documented beside the table: it appears with the first object.
	exposed = slices.DeleteFunc(exposed, func(f family) bool { return f.Name == "stencil_restored_objects_total" })

	chart, err := install.ChartFolder()
	if err != nil {
		t.Fatal(err)
	}
	text := testfile.Read(t, filepath.Join(chart, "..", "..", "docs", "operations.md"))
	_, rest, _ := strings.Cut(string(text), "<!-- metrics: begin -->")
	table, _, found := strings.Cut(rest, "<!-- metrics: end -->")
	if !found {
		t.Fatal("docs/operations.md has no table of metrics")
	}
	if diff := gocmp.Diff(exposed, families(documentedFamily, table)); diff != "" {
		t.Errorf("the documentation differs from what is exposed (-exposed +documented):\n%s", diff)
	}
}

func families(pattern *regexp.Regexp, text string) []family {
	var found []family
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, family{match[1], match[2]})
	}
	slices.SortFunc(found, func(a, b family) int { return cmp.Compare(a.Name, b.Name) })
	return found
}
