// Package toggles_test switches values of the chart on and off in an installed release, with helm and with managers that are replaced as their Deployment
// replaces them, while users and controllers write. It needs libvirt, for defaults that fail closed.
package toggles_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/defaulter"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/traffic"
)

func TestMain(m *testing.M) {
	harness.Main(m, func(context.Context) (func() error, error) { return nil, nil })
}

// step is an upgrade to other values; without values, everything is switched off again.
type step struct {
	name   string
	values map[string]any
	// apiServer adds stencil-apiserver.
	apiServer bool
	// arguments of the managers that the chart would derive from the values and from the pod.
	arguments []string
}

func section(name string, values map[string]any) map[string]any { return map[string]any{name: values} }

// TestTogglesUnderWrites requires that each upgrade completes by itself, and that no write is denied or lost meanwhile.
func TestTogglesUnderWrites(t *testing.T) {
	sidecar := defaulter.Running(t)
	stencil, err := platform.Start(t.Context(), platform.Options{
		KubeVirt: true, ControllerManager: true, Replicated: true,
		ManagerArgs: []string{"--shutdown-delay=3s"}, APIServerArgs: []string{"--shutdown-delay=3s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stencil.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := stencil.StartReplica(); err != nil {
		t.Fatal(err)
	}
	if err := harness.Apply(t.Context(), stencil.Plane, "", stencil.Example("golden/00-namespace.yaml"), stencil.Example("golden/fedora.yaml")); err != nil {
		t.Fatal(err)
	}
	writes, err := traffic.Start(t.Context(), traffic.Options{Plane: stencil.Plane, Template: "golden/fedora", Rate: 5, MaxWrites: 60_000, MaxDuration: time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	defaults := []string{"--defaulting-socket=" + sidecar.Socket(), "--defaulting-mac=never"}
	var table strings.Builder
	failClosed := section("defaulting", map[string]any{"enabled": true, "failurePolicy": "Fail"})
	closing := append(slices.Clone(defaults), "--defaulting-failure-policy=Fail")
	for _, tc := range []step{
		{name: "defaulting.enabled", values: section("defaulting", map[string]any{"enabled": true}), arguments: defaults},
		{name: "defaulting.failurePolicy=Fail", values: failClosed, arguments: closing},
		{},
		{name: "both at once", values: failClosed, arguments: closing},
		{},
		{name: "apiserver.enabled", apiServer: true},
		{},
		{name: "transfers.enabled", values: section("transfers", map[string]any{"enabled": true, "image": map[string]any{"tag": "test"}})},
		{},
		{name: "policySources.enabled", values: section("policySources", map[string]any{"enabled": true})},
		{},
		{name: "revisions.write", values: section("revisions", map[string]any{"write": true})},
		{},
		{name: "readiness.dryRun", values: section("readiness", map[string]any{"dryRun": true})},
		{},
		{name: "diskAccess.mode=None", values: section("diskAccess", map[string]any{"mode": "None"})},
		{},
	} {
		name := cmp.Or(tc.name, "off again")
		began := time.Now()
		if err := stencil.Upgrade(tc.values, tc.apiServer, tc.arguments...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := install.AwaitAddedWebhooks(t.Context(), stencil.Plane); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := writes.AwaitWritten(t.Context(), 2); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		during := writes.Report().Between(began, time.Now())
		lost := slices.DeleteFunc(slices.Clone(during.Writes), func(write traffic.Write) bool {
			return write.Result.Class == traffic.Written
		})
		fmt.Fprintf(&table, "%-30s  %4d written, %d denied or lost\n", name, during.Count(traffic.Written), len(during.Writes)-during.Count(traffic.Written))
		if len(lost) > 0 {
			t.Errorf("%s:\n%s", name, during)
		}
	}
	report, err := writes.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if report.NotSent > 0 {
		t.Errorf("%d writes were not sent", report.NotSent)
	}
	t.Logf("\n%s", table.String())
}
