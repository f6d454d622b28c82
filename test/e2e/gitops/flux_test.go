package gitops_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kustomization is what the program prints that acts as Flux.
type kustomization struct {
	Resources []struct {
		Kind, Name, Applied, Drift, Health, Message string
		Difference                                  json.RawMessage
	}
	Wait string
}

// state is what Flux reports of a VM: what kustomize-controller did and finds, and whether helm-controller finds a difference.
type state struct {
	applied, drift, health string
	differs                bool
}

func reconcile(t *testing.T, namespace, prefix string, vms map[string]*unstructured.Unstructured, arguments ...string) (map[string]state, string) {
	t.Helper()
	var got kustomization
	if err := run(t, flux, namespace, manifest(vms), &got, append(arguments, "-checks="+stencil.Example("flux/health.yaml"))...); err != nil {
		t.Fatal(err)
	}
	found := map[string]state{}
	for _, each := range got.Resources {
		found[strings.TrimPrefix(each.Name, prefix)] = state{each.Applied, each.Drift, each.Health, len(each.Difference) > 0}
	}
	return found, got.Wait
}

func TestFlux(t *testing.T) {
	const prefix = "flux-"
	for _, namespace := range []string{free, vault} {
		t.Run(namespace, func(t *testing.T) {
			vms := virtualMachines(t, namespace, prefix)
			check := func(what string, got, want map[string]state) {
				t.Helper()
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(state{})); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			with := func(changes map[string]state, applied string) map[string]state {
				want := map[string]state{}
				for name := range vms {
					want[name] = state{applied: applied, drift: "unchanged", health: "Current"}
				}
				want[all] = state{applied: applied, drift: "unchanged", health: "InProgress"}
				for name, change := range changes {
					want[name] = change
				}
				return want
			}
			first, _ := reconcile(t, namespace, prefix, vms, "-apply")
			// KubeVirt's controllers write finalizers and statuses meanwhile; what differs is compared when they have settled.
			for name, each := range first {
				if each.applied != "created" || each.drift != "unchanged" {
					t.Errorf("%s: %+v", name, each)
				}
			}
			settled(t, namespace, vms)
			again, waited := reconcile(t, namespace, prefix, vms, "-apply", "-wait=2s")
			check("a second time", again, with(nil, "unchanged"))
			if !strings.Contains(waited, "timeout waiting for: [VirtualMachine/"+namespace+"/flux-all status: 'InProgress'") {
				t.Errorf("waiting for a machine that does not run yet: %s", waited)
			}

			drift(t, namespace, vms)
			changed := state{drift: "configured", health: "Current", differs: true}
			got, _ := reconcile(t, namespace, prefix, vms)
			// virt-controller reports the machine that is not to run any more later.
			got[all] = state{drift: got[all].drift, health: changed.health, differs: got[all].differs}
			check("after a change", got, with(map[string]state{lists: changed, all: changed}, ""))
			got, _ = reconcile(t, namespace, prefix, vms, "-apply")
			if got[lists].applied != "configured" || got[all].applied != "configured" || got[short].applied != "unchanged" {
				t.Errorf("the change is not undone: %+v", got)
			}

			runs(t, namespace, vms)
			got, waited = reconcile(t, namespace, prefix, vms, "-apply", "-wait="+time.Minute.String())
			check("when all run", got, with(map[string]state{all: {applied: "unchanged", drift: "unchanged", health: "Current"}}, "unchanged"))
			if waited != "" {
				t.Error(waited)
			}
		})
	}
}
