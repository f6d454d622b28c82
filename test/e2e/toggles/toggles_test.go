// Package toggles_test switches values of the chart on and off in an installed release, with helm and with managers that are replaced as their Deployment
// replaces them, while users and controllers write. It needs libvirt, for defaults that fail closed.
package toggles_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/defaulter"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/traffic"
)

func TestMain(m *testing.M) {
	harness.Main(m, func(context.Context) (func() error, error) { return nil, nil })
}

// toggle is a value that is switched on and off again.
type toggle struct {
	name   string
	values map[string]any
	// apiServer adds stencil-apiserver.
	apiServer bool
	// arguments are those of the managers that the chart would derive from the values and from the pod.
	arguments []string
	// gap is the only message with which writes may be denied while it is switched on: see docs/status.md.
	gap string
}

func section(name string, values map[string]any) map[string]any { return map[string]any{name: values} }

// TestTogglesUnderWrites requires that each upgrade completes by itself, and that no write is denied or lost meanwhile.
func TestTogglesUnderWrites(t *testing.T) {
	sidecar := defaulter.Running(t)
	// No template has other objects, as External requires.
	base := section("objects", map[string]any{"resources": []any{}})
	stencil, err := platform.Start(t.Context(), platform.Options{
		KubeVirt: true, ControllerManager: true, Replicated: true, Values: base,
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
	writes, err := traffic.Start(t.Context(), traffic.Options{Plane: stencil.Plane, Template: "golden/fedora", Rate: 20, MaxWrites: 60_000, MaxDuration: time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	defaults := []string{"--defaulting-socket=" + sidecar.Socket(), "--defaulting-mac=never"}
	var table strings.Builder
	for _, tc := range []toggle{
		{name: "defaulting, failurePolicy Fail", values: section("defaulting", map[string]any{"enabled": true, "failurePolicy": "Fail"}), arguments: append(defaults, "--defaulting-failure-policy=Fail"), gap: "x509: certificate signed by unknown authority"},
		{name: "defaulting, failurePolicy Ignore", values: section("defaulting", map[string]any{"enabled": true}), arguments: defaults},
		{name: "apiserver", apiServer: true},
		{name: "templateAPI External", values: map[string]any{"templateAPI": "External"}},
		{name: "transfers", values: section("transfers", map[string]any{"enabled": true, "image": map[string]any{"tag": "test"}})},
		{name: "policySources", values: section("policySources", map[string]any{"enabled": true})},
		{name: "revisions.write", values: section("revisions", map[string]any{"write": true})},
		{name: "readiness.dryRun", values: section("readiness", map[string]any{"dryRun": true})},
		{name: "diskAccess.mode None", values: section("diskAccess", map[string]any{"mode": "None"})},
	} {
		values := map[string]any{}
		gen.Merge(values, base)
		gen.Merge(values, tc.values)
		for _, each := range []struct {
			what   string
			change func() error
		}{
			{"on", func() error { return stencil.Upgrade(values, tc.apiServer, tc.arguments...) }},
			{"off", func() error { return stencil.Upgrade(base, false) }},
		} {
			began := time.Now()
			if err := each.change(); err != nil {
				t.Fatalf("%s, %s: %v", tc.name, each.what, err)
			}
			if err := writes.AwaitWritten(t.Context(), 2); err != nil {
				t.Fatalf("%s, %s: %v", tc.name, each.what, err)
			}
			during := writes.Report().Between(began, time.Now())
			lost := 0
			for _, write := range during.Writes {
				if write.Result.Class != traffic.Written && (each.what == "off" || tc.gap == "" || !strings.Contains(write.Result.Message, tc.gap)) {
					lost++
				}
			}
			fmt.Fprintf(&table, "%-32s  %-3s  %4d written, %d denied or lost\n", tc.name, each.what, during.Count(traffic.Written), lost)
			if lost > 0 {
				t.Errorf("%s, %s:\n%s", tc.name, each.what, during)
			}
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
