package controlplane

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestKubeVirtIsReportedAsDeployedDespiteConflicts(t *testing.T) {
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	conflicts := 0
	client.PrependReactor("update", "kubevirts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts++; conflicts > 3 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), "kubevirt", errors.New("the object has been modified"))
	})
	if err := new(Plane).deployKubeVirt(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	stored, err := client.Resource(resourceOf("kubevirt.io/v1", "KubeVirt")).Namespace(kubevirtNamespace).Get(t.Context(), "kubevirt", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if phase, _, _ := unstructured.NestedString(stored.Object, "status", "phase"); phase != "Deployed" {
		t.Errorf("phase is %q after %d conflicts", phase, conflicts)
	}
}
