// Package restarts_test restarts the API server of a cluster with Stencil, and installs Stencil into a cluster, while users and KubeVirt's
// controllers write: Stencil denies none of their writes, and governed namespaces stay closed. `make soak` does it more often.
package restarts_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/traffic"
)

var soak = os.Getenv("STENCIL_SOAK") != ""

// times returns the number of repetitions, which is larger in a soak.
func times(usually, soaked int) int {
	if soak {
		return soaked
	}
	return usually
}

func start(t *testing.T, options platform.Options) *platform.Platform {
	t.Helper()
	options.KubeVirt, options.Log = true, os.Stderr
	// The context of the test ends before its cleanups, and would kill the manager.
	stencil, err := platform.Start(context.WithoutCancel(t.Context()), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stencil.Stop(); err != nil {
			t.Error(err)
		}
	})
	return stencil
}

func TestRestartsOfTheAPIServerDenyNothing(t *testing.T) {
	stencil := start(t, platform.Options{})
	approves := gen.Approves("golden/fedora")
	prepared := gen.Manifest(gen.Namespace("vault"), gen.Approval("vault", gen.Governs("vault"), approves),
		gen.Approval("tenants", gen.Spec("namespaceSelector: {matchLabels: {tenant: 'yes'}}"), approves))
	if err := harness.Apply(t.Context(), stencil.Plane, prepared, stencil.Example("golden"), "-"); err != nil {
		t.Fatal(err)
	}
	harness.Must(t, stencil.Plane, nil, "", "wait", "templateapproval/vault", "templateapproval/tenants", "--for=condition=Active", "--timeout=60s")
	// Together ten writes a second: two cores serve KubeVirt's webhooks as well.
	free := traffic.Options{Plane: stencil.Plane, Template: "golden/fedora", Rate: 5}
	governed := traffic.Options{
		Plane: stencil.Plane, Template: "golden/fedora", Namespace: "vault", Rate: 4,
		Kinds: []traffic.Kind{traffic.CreateVMFromTemplate, traffic.UpdateVMStatus, traffic.AnnotateVM, traffic.LabelNamespace},
	}
	var running []*traffic.Traffic
	for _, options := range []traffic.Options{free, governed} {
		one, err := traffic.Start(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, one)
	}
	written := func() {
		t.Helper()
		for _, one := range running {
			if err := one.AwaitWritten(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
		}
	}
	attack := attack(t, stencil.Plane)
	written()
	for range times(3, 20) {
		if err := stencil.Plane.RestartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		written()
	}
	for _, one := range running {
		report, err := one.Stop()
		if err != nil {
			t.Error(err)
		}
		t.Logf("\n%s", report)
		if n := report.DeniedByStencil(); n > 0 {
			t.Errorf("Stencil denied %d writes", n)
		}
	}
	denied, stored := attack()
	t.Logf("attacks denied: %d", denied)
	if denied == 0 || stored > 0 {
		t.Errorf("of the attacks %d were denied and %d stored", denied, stored)
	}
}

// attack creates VirtualMachines without a template in vault, as an administrator of the cluster, until the function that it returns is
// called.
func attack(t *testing.T, plane *controlplane.Plane) (stop func() (denied, stored int)) {
	t.Helper()
	client, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	vms := client.Resource(schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}).Namespace("vault")
	ctx, cancel := context.WithCancel(t.Context())
	var (
		group          sync.WaitGroup
		denied, stored int
	)
	group.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_, err := vms.Create(ctx, gen.VM(fmt.Sprintf("attack-%d", i), gen.SmallSpec()), metav1.CreateOptions{})
			switch {
			case err == nil:
				stored++
			case apierrors.IsForbidden(err):
				denied++
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
	return func() (int, int) {
		cancel()
		group.Wait()
		return denied, stored
	}
}

func TestAFirstInstallationDeniesNothing(t *testing.T) {
	for i := range times(2, 20) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			var running *traffic.Traffic
			stencil := start(t, platform.Options{BeforeInstall: func(ctx context.Context, plane *controlplane.Plane) (err error) {
				for n := range 20 {
					result, failed := plane.Kubectl(ctx, nil, "", "create", "namespace", fmt.Sprintf("older-%02d", n))
					if failed != nil || result.Code != 0 {
						return errors.Join(failed, errors.New(result.Stderr))
					}
				}
				if running, err = traffic.Start(ctx, traffic.Options{Plane: plane, Rate: 5}); err != nil {
					return err
				}
				return running.AwaitWritten(ctx, 2)
			}})
			if err := running.AwaitWritten(t.Context(), 2); err != nil {
				t.Error(err)
			}
			report, err := running.Stop()
			if err != nil {
				t.Error(err)
			}
			t.Logf("\n%s", report)
			if n := report.DeniedByStencil(); n > 0 {
				t.Errorf("Stencil denied %d writes", n)
			}
			unlabelled := harness.Must(t, stencil.Plane, nil, "", "get", "namespaces", "--selector=!stencil.kubevirt.io/governed", "-o", "name").Stdout
			if unlabelled != "" {
				t.Errorf("namespaces without a label: %s", unlabelled)
			}
		})
	}
}
