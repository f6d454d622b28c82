package capture

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// interrupted returns a world in which the manager was killed before the write n of a capture.
func interrupted(t *testing.T, n int) *world {
	t.Helper()
	w := newWorld(t, vm, rootSnapshot, templateRequest("golden", ""))
	w.killAt = n
	manager := w.manager()
	for {
		_, err := manager.Reconcile(t.Context(), reconcile.Request{NamespacedName: golden})
		if errors.Is(err, errKilled) {
			w.killAt = -1
			return w
		}
		w.simulate()
	}
}

// checkConcluded checks a request that was concluded: it is ready with its template, or has failed and left nothing.
func checkConcluded(t *testing.T, w *world) {
	t.Helper()
	// KubeVirt deletes the content of a snapshot.
	w.simulate()
	request := w.request(golden)
	if !IsConcluded(request) {
		t.Fatalf("the request is %+v", request)
	}
	if (&state{request: request}).ready() {
		checkReady(t, w)
		return
	}
	if left := slices.Concat(w.names(snapshots), w.names(dataVolumes), w.names(templates)); len(left) > 0 || len(request.OwnerReferences) > 0 {
		t.Errorf("left over: %v, with the owners %v", left, request.OwnerReferences)
	}
	for _, condition := range request.Status.Conditions {
		if condition.Type == v1beta1.ConditionReady && (condition.Reason != v1beta1.ReasonUninstalled || condition.Message != "it was removed") {
			t.Errorf("the condition is %+v", condition)
		}
	}
}

// TestConcludeAtAnyWrite concludes a request at each write of its capture, by a process that is itself killed before and after each of its writes.
func TestConcludeAtAnyWrite(t *testing.T) {
	undisturbed := newWorld(t, vm, rootSnapshot, templateRequest("golden", ""))
	undisturbed.run(golden)
	results := map[Concluded]int{}
	for n := range undisturbed.writes {
		t.Run(fmt.Sprintf("write %d", n), func(t *testing.T) {
			w := interrupted(t, n)
			before := len(w.writes)
			result, err := w.manager().Conclude(t.Context(), golden, v1beta1.ReasonUninstalled, "it was removed")
			if err != nil {
				t.Fatal(err)
			}
			results[result]++
			checkConcluded(t, w)
			if again, err := w.manager().Conclude(t.Context(), golden, v1beta1.ReasonUninstalled, "it was removed"); err != nil || again != Untouched {
				t.Errorf("the second time: %q, %v", again, err)
			}
			for kill := before; kill < len(w.writes); kill++ {
				for _, done := range []bool{false, true} {
					w := interrupted(t, n)
					w.killAt, w.done = kill, done
					if _, err := w.manager().Conclude(t.Context(), golden, v1beta1.ReasonUninstalled, "it was removed"); !errors.Is(err, errKilled) {
						t.Fatalf("killed at write %d: %v", kill, err)
					}
					if _, err := w.manager().Conclude(t.Context(), golden, v1beta1.ReasonUninstalled, "it was removed"); err != nil {
						t.Fatalf("after write %d: %v", kill, err)
					}
					checkConcluded(t, w)
				}
			}
		})
	}
	for _, result := range []Concluded{Ended, Finished, Cleaned} {
		if results[result] == 0 {
			t.Errorf("no request was %s: %v", result, results)
		}
	}
}

func TestConcludeARequestThatIsBeingDeleted(t *testing.T) {
	w := interrupted(t, 6)
	for _, each := range w.all(requests) {
		now := metav1.NewTime(w.clock.Now())
		each.SetDeletionTimestamp(&now)
		w.change(requests, each)
	}
	if result, err := w.manager().Conclude(t.Context(), golden, v1beta1.ReasonUninstalled, ""); err != nil || result != Cleaned {
		t.Fatalf("%q, %v", result, err)
	}
	if left := slices.Concat(w.names(snapshots), w.names(dataVolumes), w.names(templates)); len(left) > 0 || len(w.request(golden).Finalizers) > 0 {
		t.Errorf("left over: %v, and the finalizers %v", left, w.request(golden).Finalizers)
	}
}

func TestConcludeWithoutARequest(t *testing.T) {
	if result, err := newWorld(t).manager().Conclude(t.Context(), golden, v1beta1.ReasonUninstalled, ""); err != nil || result != Untouched {
		t.Errorf("%q, %v", result, err)
	}
}
