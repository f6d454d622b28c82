package kubelet

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestRegisterSurvivesConflicts has the node lifecycle controller change the node between its creation and its status.
func TestRegisterSurvivesConflicts(t *testing.T) {
	client := fake.NewClientset()
	conflicts := 0
	client.PrependReactor("update", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "status" || conflicts == 3 {
			return false, nil, nil
		}
		conflicts++
		stored, err := client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", Node)
		if err != nil {
			return true, nil, err
		}
		node := stored.(*corev1.Node).DeepCopy()
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		if err := client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), node, ""); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), Node, errors.New("the object has been modified"))
	})
	if err := register(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Get(t.Context(), Node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if conflicts != 3 || len(node.Status.Conditions) != 1 || node.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("want a ready node after 3 conflicts, got %v after %d", node.Status.Conditions, conflicts)
	}
	if len(node.Spec.Taints) != 1 {
		t.Error("the status was not written on what the other writer had written")
	}
}

func TestHeartbeatsRenewTheLease(t *testing.T) {
	client := fake.NewClientset()
	var times []string
	for range 2 {
		if err := renew(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), Node, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, lease.Spec.RenewTime.UTC().Format(metav1.RFC3339Micro))
	}
	if times[0] >= times[1] {
		t.Errorf("renewed at %v", times)
	}
}
