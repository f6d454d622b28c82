package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/cluster"
	"github.com/vmstencil/stencil/test/cluster/node"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestAGoldenImageFollowsItsTag imports the image of a tag, moves the tag, and compares the bytes that the DataSource leads to. The older volume is
// deleted, with its disk.
func TestAGoldenImageFollowsItsTag(t *testing.T) {
	const golden, name, repository = "golden", "moving", "guests/moving"
	values := map[string]any{
		"namespaces": []string{golden}, "allowedNetworks": node.Networks,
		"readable": []map[string]string{{"kind": "ConfigMap", "namespace": golden, "name": "kube-root-ca.crt"}},
	}
	if err := kube.InstallStencil(t.Context(), map[string]any{"goldenImages": values}); err != nil {
		t.Fatal(err)
	}
	owner, err := gen.User(t.Context(), kube.Plane, "eve", gen.Role(golden, "edit"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := cluster.GuestDisk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "second.raw")
	content, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	copy(content, "second")
	if err := os.WriteFile(second, content, 0o600); err != nil {
		t.Fatal(err)
	}
	push := func(disk string) {
		if err := kube.PushDisk(t.Context(), "registry.example.com/"+repository+":latest", disk); err != nil {
			t.Fatal(err)
		}
	}
	push(first)
	makes(t, owner, golden, fmt.Sprintf(`{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "GoldenImage", "metadata": {"name": %q},
		"spec": {"source": {"registry": {"url": "%s/%s", "certConfigMap": "kube-root-ca.crt"}}, "storage": {"size": "128Mi"}, "importsToKeep": 1}}`, name, node.SecureRegistry, repository))
	before := ""
	for _, disk := range []string{first, second} {
		if disk == second {
			push(second)
			harness.Must(t, kube.Plane, owner, "", "annotate", "goldenimage", name, "--namespace="+golden, "stencil.kubevirt.io/refresh=1")
		}
		volume := moved(t, owner, golden, name, before)
		want, size := digestOf(t, disk)
		if got := inPod(t, golden, "digest-"+volume, volume, fmt.Sprintf("head -c %d /data/disk.img | sha256sum", size)); !strings.HasPrefix(got, want) {
			t.Errorf("the image %s has the bytes %s, want %s", disk, got, want)
		}
		// The claim is in use until then.
		harness.Must(t, kube.Plane, nil, "", "delete", "pod", "digest-"+volume, "--namespace="+golden)
		if before != "" {
			harness.Within(t, "the older volume is deleted", bootLimit, func() error {
				left := harness.Must(t, kube.Plane, nil, "", "get", "persistentvolumes", `--output=jsonpath={range .items[*]}{.spec.claimRef.name}{"\n"}{end}`).Stdout
				if strings.Contains(left, before) {
					return fmt.Errorf("volumes: %s", left)
				}
				return nil
			})
		}
		before = volume
	}
}

// moved waits until a DataSource is ready and leads to another claim than before, and returns that claim.
func moved(t *testing.T, user *controlplane.User, namespace, name, before string) (claim string) {
	t.Helper()
	harness.Within(t, "the DataSource leads to a new image", 2*bootLimit, func() error {
		got := as(t, user, namespace, "", "get", "datasource", name, `--output=jsonpath={.status.conditions[?(@.type=="Ready")].status} {.spec.source.pvc.name}`)
		ready, of, _ := strings.Cut(got.Stdout, " ")
		if ready != "True" || of == "" || of == before {
			return fmt.Errorf("%s%s\n%s", got.Stdout, got.Stderr, as(t, user, namespace, "", "get", "goldenimage,datavolume,persistentvolumeclaim", "--output=yaml").Stdout)
		}
		claim = of
		return nil
	})
	return claim
}
