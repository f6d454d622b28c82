package uninstall

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/preflight"
	"github.com/vmstencil/stencil/reconcilers/audit"
)

var lease = types.NamespacedName{Namespace: "stencil-system", Name: "stencil-manager"}

// removal returns a run in a cluster with objects of the kinds other than requests, which package capture tests, and with the Lease of a former leader.
func removal(t *testing.T, steps *[]Step) *run {
	t.Helper()
	var objects []runtime.Object
	for _, text := range []string{
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: virtualmachinetemplaterequests.template.kubevirt.io, labels: {app.kubernetes.io/managed-by: Helm}}}`,
		`{apiVersion: stencil.kubevirt.io/v1alpha1, kind: GoldenImage, metadata: {namespace: golden, name: fedora, finalizers: [stencil.kubevirt.io/golden-image, example.com/other]}}`,
		`{apiVersion: stencil.kubevirt.io/v1alpha1, kind: GoldenImage, metadata: {namespace: golden, name: new}}`,
		`{apiVersion: openreports.io/v1alpha1, kind: Report, metadata: {namespace: shop, name: stencil, labels: {app.kubernetes.io/managed-by: stencil-manager}}}`,
		`{apiVersion: openreports.io/v1alpha1, kind: Report, metadata: {namespace: shop, name: other}}`,
		`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: shop, name: waits, annotations: {objects.template.kubevirt.io/pending: x}}}`,
		`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: shop, name: web}}`,
	} {
		objects = append(objects, fixture.Object(t, text))
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		requests: "VirtualMachineTemplateRequestList", goldenImages: "GoldenImageList", virtualMachines: "VirtualMachineList", audit.ReportResource: "ReportList",
	}, objects...)
	leases := fake.NewClientset(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("manager-1"), RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}, LeaseTransitions: ptr.To[int32](3)},
	})
	return &run{
		Options: Options{Lease: lease, Hold: time.Minute, Report: func(step Step) { *steps = append(*steps, step) }},
		client:  client,
		lock:    &lock{client: leases.CoordinationV1().Leases(lease.Namespace), name: lease, hold: time.Minute, now: time.Now},
	}
}

func TestWhatIsRemoved(t *testing.T) {
	var steps []Step
	r := removal(t, &steps)
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	pending := Step{"warning", "VirtualMachine shop/waits", "objects of its template do not exist, and without Stencil it starts without them: stop it, or delete it"}
	if diff := cmp.Diff([]Step{
		{"stopped", "Lease stencil-system/stencil-manager", "manager-1 led"}, {"released", "GoldenImage golden/fedora", ""}, {"deleted", "Report shop/stencil", ""}, pending,
	}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	image, err := r.client.Resource(goldenImages).Namespace("golden").Get(t.Context(), "fedora", metav1.GetOptions{})
	if err != nil || !cmp.Equal(image.GetFinalizers(), []string{"example.com/other"}) {
		t.Errorf("the finalizers are %v, %v", image.GetFinalizers(), err)
	}
	taken, err := r.lock.client.Get(t.Context(), lease.Name, metav1.GetOptions{})
	if err != nil || holder(taken) != Identity || *taken.Spec.LeaseDurationSeconds != 60 || *taken.Spec.LeaseTransitions != 4 || time.Since(taken.Spec.RenewTime.Time) > time.Minute {
		t.Errorf("the Lease is %+v, %v", taken, err)
	}

	// The second time there is nothing left to do. It begins a minute later, so that it does not wait for the first.
	steps = nil
	r.lock.now = func() time.Time { return time.Now().Add(time.Minute) }
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Step{{"stopped", "Lease stencil-system/stencil-manager", "an earlier run has it"}, pending}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	var steps []Step
	r := removal(t, &steps)
	r.DryRun = true
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(steps) != 4 || steps[1].Action != "release" || steps[2].Action != "delete" {
		t.Errorf("steps are %v", steps)
	}
	for _, action := range r.client.(*dynamicfake.FakeDynamicClient).Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "get" {
			t.Errorf("%s %s", verb, action.GetResource().Resource)
		}
	}
	if stored, err := r.lock.client.Get(t.Context(), lease.Name, metav1.GetOptions{}); err != nil || holder(stored) != "manager-1" {
		t.Errorf("the Lease is %+v, %v", stored, err)
	}
}

func TestTheWaitIsLimited(t *testing.T) {
	var steps []Step
	r := removal(t, &steps)
	held, err := r.lock.client.Get(t.Context(), lease.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	held.Spec.LeaseDurationSeconds, held.Spec.RenewTime = ptr.To[int32](1<<30), &metav1.MicroTime{Time: time.Now()}
	if _, err := r.lock.client.Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if from, wait, err := r.lock.take(t.Context()); from != "manager-1" || wait != time.Minute || err != nil {
		t.Errorf("taken from %q, waiting %s, %v", from, wait, err)
	}
}

func TestTheLeaseIsRenewedDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []Step
		r := removal(t, &steps)
		held, err := r.lock.client.Get(t.Context(), lease.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		held.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		if _, err := r.lock.client.Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		began, ended := time.Now(), make(chan error)
		go func() { ended <- r.stop(t.Context()) }()
		time.Sleep(2*renewal + time.Second)
		held, err = r.lock.client.Get(t.Context(), lease.Name, metav1.GetOptions{})
		if err != nil || held.Spec.RenewTime.Sub(began) != 2*renewal {
			t.Errorf("renewed %s after the begin, %v, want %s", held.Spec.RenewTime.Sub(began), err, 2*renewal)
		}
		if err := <-ended; err != nil || time.Since(began) != LeaseDuration {
			t.Errorf("waited %s, %v, want %s", time.Since(began), err, LeaseDuration)
		}
	})
}

func TestALeaseThatAManagerTookBack(t *testing.T) {
	var steps []Step
	r := removal(t, &steps)
	if err := r.lock.extend(t.Context(), true); err == nil || err.Error() != "manager manager-1 took Lease stencil-system/stencil-manager in the meantime: run it again" {
		t.Errorf("error %v", err)
	}
}

func TestRequestsOfKubeVirtAreNotTouched(t *testing.T) {
	for owner, want := range map[string]bool{"Helm": true, "": true, "virt-operator": false} {
		t.Run("requests of "+owner, func(t *testing.T) {
			var steps []Step
			r := removal(t, &steps)
			definition, err := r.client.Resource(preflight.Definitions).Get(t.Context(), requests.GroupResource().String(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			definition.SetLabels(map[string]string{"app.kubernetes.io/managed-by": owner})
			if _, err := r.client.Resource(preflight.Definitions).Update(t.Context(), definition, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := r.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if listed := slices.ContainsFunc(r.client.(*dynamicfake.FakeDynamicClient).Actions(), func(action clienttesting.Action) bool {
				return action.GetVerb() == "list" && action.GetResource() == requests
			}); listed != want {
				t.Errorf("requests are listed: %t, want %t", listed, want)
			}
		})
	}
}
