package defaults_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/test/harness"
)

// withoutDefaulter kills the defaulter; the function that it returns starts it again.
func withoutDefaulter(t *testing.T) (restart func()) {
	t.Helper()
	if err := sidecar.Kill(); err != nil {
		t.Fatal(err)
	}
	gone := true
	restart = func() {
		if !gone {
			return
		}
		gone = false
		if err := sidecar.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if gone {
			t.Error("the defaulter was not started again")
		}
	})
	return restart
}

// metric returns the value of a metric of the manager, as it is printed.
func metric(t *testing.T, name string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, stencil.Manager.MetricsURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return value
		}
	}
	return ""
}

func TestWhileTheDefaulterIsGone(t *testing.T) {
	discard(t, "team-a", "open", "closed")
	// The manager may have cached the defaults of other tests.
	unknown := func(name string) string {
		return strings.Replace(vmWith(name, ""), "guest: 1Gi", "guest: 1217Mi", 1)
	}
	restart := withoutDefaulter(t)
	defer restart()

	out := mustKubectl(t, ada, unknown("open"), "create", "-f", "-")
	if !strings.Contains(out.Stderr, "Warning: the defaults that the guest sees were not filled in") {
		t.Errorf("there is no warning: %q", out.Stderr)
	}
	vm := stored(t, "team-a", "open")
	if got := vm.GetAnnotations(); got[contract.AnnotationDefaultsFailed] == "" || got[contract.AnnotationDefaultsApplied] != "" || domain(t, vm, "machine", "type") != "q35" {
		t.Errorf("it is stored with %v and machine type %s", got, domain(t, vm, "machine", "type"))
	}

	if err := stencil.RestartManager("--defaulting-failure-policy=Fail"); err != nil {
		t.Fatal(err)
	}
	out = kubectl(t, ada, unknown("closed"), "create", "-f", "-")
	if out.Code == 0 || !strings.Contains(out.Stderr, "cannot be filled in") || !strings.Contains(out.Stderr, contract.AnnotationDefaultsSkip) {
		t.Errorf("under Fail: exit %d: %s", out.Code, out.Stderr)
	}
	mustKubectl(t, ada, strings.Replace(unknown("closed"), "namespace: team-a", `namespace: team-a, annotations: {defaults.template.kubevirt.io/skip: "true"}`, 1), "create", "-f", "-")
	if err := stencil.RestartManager(); err != nil {
		t.Fatal(err)
	}

	restart()
	mustKubectl(t, ada, "", "patch", "virtualmachine", "open", "--type=merge", "--patch", `{"spec": {"runStrategy": "Manual"}}`)
	vm = stored(t, "team-a", "open")
	if got := vm.GetAnnotations(); got[contract.AnnotationDefaultsFailed] != "" || got[contract.AnnotationDefaultsApplied] == "" || !version.MatchString(domain(t, vm, "machine", "type")) {
		t.Errorf("after its return it is stored with %v and machine type %s", got, domain(t, vm, "machine", "type"))
	}
}

// TestNoMachineIsRefusedOrWrongWhileTheDefaulterIsStartedAgain has several clients create VirtualMachines while the defaulter is killed and started
// again, each with a different memory size, so that no answer is cached. Each gets the same addresses, or none and a warning.
func TestNoMachineIsRefusedOrWrongWhileTheDefaulterIsStartedAgain(t *testing.T) {
	create := func(memory int) (stored *unstructured.Unstructured, warning string) {
		manifest := strings.Replace(vmWith("busy", ""), "guest: 1Gi", fmt.Sprintf("guest: %dMi", memory), 1)
		out := mustKubectl(t, ada, manifest, "create", "--dry-run=server", "-o", "json", "-f", "-")
		stored = &unstructured.Unstructured{}
		if err := stored.UnmarshalJSON([]byte(out.Stdout)); err != nil {
			t.Error(err)
		}
		return stored, out.Stderr
	}
	devices := func(vm *unstructured.Unstructured) string { return domain(t, vm, "devices") + domain(t, vm, "machine") }
	vm, _ := create(1400)
	want := devices(vm)
	if !strings.Contains(want, "pciAddress") {
		t.Fatalf("it was not filled: %s", want)
	}
	var (
		creating    sync.WaitGroup
		number      atomic.Int64
		filled      atomic.Int64
		unavailable atomic.Int64
	)
	done := make(chan struct{})
	for range 3 {
		creating.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				vm, warning := create(1400 + int(number.Add(1)))
				notes := vm.GetAnnotations()
				switch failed := notes[contract.AnnotationDefaultsFailed]; {
				case failed == "" && notes[contract.AnnotationDefaultsApplied] != "" && devices(vm) == want:
					filled.Add(1)
				case failed != "" && strings.Contains(warning, "were not filled in") && !strings.Contains(devices(vm), "pciAddress"):
					unavailable.Add(1)
				default:
					t.Errorf("it is stored with %v and %s; kubectl says %q", notes, devices(vm), warning)
				}
			}
		})
	}
	for range 3 {
		seen := filled.Load() + unavailable.Load()
		if err := sidecar.Kill(); err != nil {
			t.Error(err)
		}
		harness.Eventually(t, "machines are created meanwhile", func() error {
			if filled.Load()+unavailable.Load() < seen+6 {
				return errors.New("too few machines were created meanwhile")
			}
			return nil
		})
		if err := sidecar.Start(t.Context()); err != nil {
			t.Error(err)
		}
		seen = filled.Load()
		harness.Eventually(t, "machines are filled again", func() error {
			if filled.Load() < seen+3 {
				return errors.New("no machine is filled since its return")
			}
			return nil
		})
	}
	close(done)
	creating.Wait()
	if unavailable.Load() == 0 {
		t.Error("the defaulter was never missed")
	}
}

// TestTheDefaulterIsAskedOnceForMachinesOfOneShape creates two at a time, of a shape that is new on each attempt: the manager caches an answer for
// some seconds, in which both have to be created.
func TestTheDefaulterIsAskedOnceForMachinesOfOneShape(t *testing.T) {
	const asked = "stencil_defaulting_ask_seconds_count"
	memory := 1300
	harness.Eventually(t, "two machines of one shape are asked about once", func() error {
		memory++
		pair := ""
		for _, name := range []string{"one", "other"} {
			pair += "---" + strings.Replace(vmWith(name, ""), "guest: 1Gi", fmt.Sprintf("guest: %dMi", memory), 1)
		}
		before := metric(t, asked)
		out := mustKubectl(t, ada, pair, "create", "--dry-run=server", "-o", `jsonpath={.spec.template.spec.domain.devices.disks[1].disk.pciAddress} `, "-f", "-")
		addresses := strings.Fields(out.Stdout)
		if len(addresses) != 2 || addresses[0] != addresses[1] {
			t.Fatalf("the addresses of two machines are %q", out.Stdout)
		}
		var first, last int
		if _, err := fmt.Sscan(before+" "+metric(t, asked), &first, &last); err != nil {
			t.Fatal(err)
		}
		if last != first+1 {
			return fmt.Errorf("the defaulter was asked %d times", last-first)
		}
		return nil
	})
}

// become sets the versions of the KubeVirt object: the one that runs, and the one that KubeVirt is updated to.
func become(t *testing.T, version, target string) {
	t.Helper()
	mustKubectl(t, nil, "", "--namespace=kubevirt", "patch", "kubevirt", "kubevirt", "--subresource=status", "--type=merge",
		"--patch", `{"status": {"observedKubeVirtVersion": "`+version+`", "targetKubeVirtVersion": "`+target+`"}}`)
}

// TestTheKubeVirtOfTheClusterIsReproduced creates a VM before, during and after an update.
func TestTheKubeVirtOfTheClusterIsReproduced(t *testing.T) {
	defer become(t, "v1.8.2", "v1.8.2")
	for _, tc := range []struct{ running, target, want string }{
		{"v1.8.2", "v1.8.2", `"kubevirt":"v1.8.2"`},
		{"v1.8.2", "v1.9.0", `"kubevirt":"v1.8.2,v1.9.0"`},
		{"v1.9.0", "v1.9.0", `"kubevirt":"v1.9.0"`},
	} {
		become(t, tc.running, tc.target)
		harness.Eventually(t, "the record has the versions of "+tc.running+" and "+tc.target, func() error {
			vm := &unstructured.Unstructured{}
			out := mustKubectl(t, ada, vmWith("updated", ""), "create", "--dry-run=server", "--output=json", "-f", "-")
			if err := vm.UnmarshalJSON([]byte(out.Stdout)); err != nil {
				return err
			}
			if record := vm.GetAnnotations()[contract.AnnotationDefaultsApplied]; !strings.Contains(record, tc.want) {
				return fmt.Errorf("the record is %s", record)
			}
			if text := at(t, vm, "spec"); !version.MatchString(domain(t, vm, "machine", "type")) || !strings.Contains(text, "pciAddress") {
				return fmt.Errorf("the VM is %s", text)
			}
			return nil
		})
	}
}

func TestAnotherKubeVirtThanIsReproduced(t *testing.T) {
	differs := func(want string) {
		t.Helper()
		harness.Eventually(t, "the metric tells whether KubeVirt is another", func() error {
			if got := metric(t, "stencil_defaulting_kubevirt_differs"); got != want {
				return fmt.Errorf("the metric is %q, want %s", got, want)
			}
			return nil
		})
	}
	defer become(t, "v1.8.2", "v1.8.2")
	discard(t, "team-a", "newer", "older", "same")
	// unpinned checks that a VM has none of the defaults that depend on the version.
	unpinned := func(name, release string) {
		t.Helper()
		become(t, release, release)
		differs("1")
		out := mustKubectl(t, ada, vmWith(name, ""), "create", "-f", "-")
		if strings.Contains(out.Stderr, "Warning: the defaults") {
			t.Errorf("%s: every machine is warned about: %s", release, out.Stderr)
		}
		vm := stored(t, "team-a", name)
		if domain(t, vm, "machine", "type") != "q35" || strings.Contains(at(t, vm, "spec"), "pciAddress") {
			t.Errorf("%s: it is stored with %s", release, domain(t, vm))
		}
		if domain(t, vm, "features", "acpi", "enabled") != "true" {
			t.Errorf("%s: what does not depend on the version is missing: %s", release, domain(t, vm))
		}
	}
	unpinned("newer", "v1.10.0")
	harness.Eventually(t, "an event tells of the other KubeVirt", func() error {
		events := mustKubectl(t, nil, "", "--namespace=kubevirt", "get", "events", "--field-selector=reason=DefaulterOfAnotherKubeVirt", "-o", "jsonpath={.items[*].message}").Stdout
		if strings.Count(events, "the cluster runs KubeVirt v1.10.0") != 1 {
			return fmt.Errorf("events: %q", events)
		}
		return nil
	})
	become(t, "v1.8.5", "v1.8.5")
	differs("0")
	mustKubectl(t, ada, vmWith("same", ""), "create", "-f", "-")
	if got := domain(t, stored(t, "team-a", "same"), "machine", "type"); !version.MatchString(got) {
		t.Errorf("with another patch release the machine type is %q", got)
	}
	// It adds other root ports than 1.8. Its event would only count up the first one.
	unpinned("older", "v1.7.0")
}
