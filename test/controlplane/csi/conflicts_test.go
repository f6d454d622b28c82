package csi

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestAConflictUsesNoRule expands a volume while another writer is faster: a rule that applies once applies to the step as a whole.
func TestAConflictUsesNoRule(t *testing.T) {
	size := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "disk"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv", Resources: corev1.VolumeResourceRequirements{Requests: size("2Gi")}},
		Status:     corev1.PersistentVolumeClaimStatus{Capacity: size("1Gi")},
	}
	kube := kubefake.NewClientset(claim, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{Capacity: size("1Gi")},
	})
	conflicts := map[string]int{}
	kube.PrependReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.GetResource().Resource
		if conflicts[name]++; conflicts[name] > 2 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), "a", errors.New("the object has been modified"))
	})
	driver := &Driver{kube: kube, dynamic: fake.NewSimpleDynamicClient(runtime.NewScheme())}
	driver.rules.changed = func() {}
	driver.When(ExpandVolume, Rule{Times: 1})
	if err := driver.expand(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if used := driver.rules.set[0].used; used != 1 {
		t.Errorf("the rule was used %d times", used)
	}
	volume, err := kube.CoreV1().PersistentVolumes().Get(t.Context(), "pv", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := kube.CoreV1().PersistentVolumeClaims("a").Get(t.Context(), "disk", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]corev1.ResourceList{"volume": volume.Spec.Capacity, "claim": stored.Status.Capacity} {
		if capacity := got[corev1.ResourceStorage]; capacity.String() != "2Gi" {
			t.Errorf("the %s has %s, want 2Gi", what, capacity.String())
		}
	}
}
