package goldenimages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestAGoldenImageIsNoWayToDisksOfOthers attacks the power over images as a user with the role edit in the namespace of the images only. The bystander is
// a namespace with a disk of another team.
func TestAGoldenImageIsNoWayToDisksOfOthers(t *testing.T) {
	own, finance := namespace(t), harness.Namespace(t, stage.Plane, "finance")
	asAdmin(t, finance, gen.Manifest(gen.DataVolume("ledger", `{http: {url: "http://images.example/ledger.qcow2"}}`)), "create", "-f", "-")
	first := push(t, "attacks/fedora", "latest")
	denied := func(t *testing.T, stdin, want string, arguments ...string) {
		t.Helper()
		if got := kubectl(t, own, stdin, arguments...); got.Code == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: code %d, %s%s\nwant %s", strings.Join(arguments, " "), got.Code, got.Stdout, got.Stderr, want)
		}
	}

	t.Run("a claim of another namespace as the source", func(t *testing.T) {
		denied(t, fromSource("stolen", "{pvc: {namespace: "+finance+", name: ledger}}", ""), `unknown field "spec.source.pvc.namespace"`, "create", "--validate=strict", "-f", "-")
		// A client that drops what it does not know reaches its own namespace.
		must(t, own, fromSource("stolen", "{pvc: {namespace: "+finance+", name: ledger}}", ""), "create", "--validate=ignore", "-f", "-")
		becomes(t, own, "stolen", "UpToDate", "False CheckFailed: spec.source.pvc: PersistentVolumeClaim "+own+"/ledger does not exist")
	})

	t.Run("a history with disks of others", func(t *testing.T) {
		filled(t, own, "ours")
		must(t, own, manifest("forged", "attacks/fedora", ", retention: Delete"), "create", "-f", "-")
		standsFor(t, own, "forged", first)
		history := fmt.Sprintf(`{"status":{"history":[{"digest":%q,"volume":"ours","importedAt":"2026-01-01T00:00:00Z"}]}}`, first)
		denied(t, "", `resource "goldenimages/status"`, "patch", "gimg", "forged", "--subresource=status", "--type=merge", "-p", history)
		// Without the subresource a status is ignored.
		must(t, own, "", "patch", "gimg", "forged", "--type=merge", "-p", history)
		must(t, own, "", "delete", "gimg", "forged", "--timeout=60s")
		has(t, own, "pvc/ours", "{.metadata.deletionTimestamp}{.status.phase}", "Bound")
	})

	t.Run("two users race for a DataSource", func(t *testing.T) {
		rival := harness.User(t, stage.Plane, "rival-"+own, gen.Role(own, "edit"))
		must(t, own, manifest("winner", "attacks/fedora", ", dataSource: shared"), "create", "-f", "-")
		standsFor(t, own, "shared", first)
		second := push(t, "attacks/other", "latest")
		harness.Must(t, stage.Plane, rival, manifest("loser", "attacks/other", ", dataSource: shared, adopt: Always, retention: Delete"), harness.In(own, []string{"create", "-f", "-"})...)
		becomes(t, own, "loser", "Conflict", "True Conflict: DataSource shared belongs to GoldenImage winner")
		harness.Must(t, stage.Plane, rival, "", harness.In(own, []string{"delete", "gimg", "loser", "--timeout=60s"})...)
		standsFor(t, own, "shared", first)
		if got := must(t, own, "", "get", "pvc", "-o", "name"); strings.Contains(got, volume("shared", second)) {
			t.Errorf("the image of the loser was imported: %s", got)
		}
	})

	t.Run("a DataSource is led elsewhere", func(t *testing.T) {
		must(t, own, manifest("led", "attacks/fedora", ""), "create", "-f", "-")
		standsFor(t, own, "led", first)
		// The owner may write the DataSource, and the account that keeps it fresh leads it back.
		must(t, own, "", "patch", "datasource", "led", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"source":{"pvc":{"namespace":%q,"name":"ledger"}}}}`, finance))
		standsFor(t, own, "led", first)
	})

	if got := asAdmin(t, finance, "", "get", "datasource,dataimportcron,dv,pvc", "-o", "name"); len(strings.Fields(got)) != 2 {
		t.Errorf("namespace %s has %s, want its disk only", finance, got)
	}
}
