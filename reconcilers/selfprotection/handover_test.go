package selfprotection

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writtenInBetween rejects this number of patches with a conflict. Each read returns the next version.
type writtenInBetween struct {
	client.Client
	conflicts, reads int
	patches          []string
}

func (w *writtenInBetween) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	text, err := patch.Data(object)
	if err != nil {
		return err
	}
	w.patches = append(w.patches, string(text))
	if len(w.patches) <= w.conflicts {
		return apierrors.NewConflict(schema.GroupResource{Resource: "validatingadmissionpolicies"}, object.GetName(), nil)
	}
	return nil
}

func (w *writtenInBetween) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	w.reads++
	object.SetResourceVersion(fmt.Sprint(1 + w.reads))
	return nil
}

func TestFieldsAreHandedOverAlthoughSomebodyWritesInBetween(t *testing.T) {
	for name, tc := range map[string]struct {
		conflicts   int
		wantVersion string
	}{
		"nobody does":         {conflicts: 0, wantVersion: "1"},
		"somebody does":       {conflicts: 1, wantVersion: "2"},
		"somebody does twice": {conflicts: 2, wantVersion: "3"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetName("stencil-template-reference")
			object.SetResourceVersion("1")
			object.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: fieldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
			}})
			w := &writtenInBetween{conflicts: tc.conflicts}
			r := &Reconciler{options: Options{Client: w, Reader: w}}
			if err := r.handOver(t.Context(), release{manager: "helm"}, object); err != nil {
				t.Fatal(err)
			}
			if len(w.patches) != tc.conflicts+1 || w.reads != tc.conflicts {
				t.Errorf("patched %d times and read %d times after %d conflicts", len(w.patches), w.reads, tc.conflicts)
			}
			if last := w.patches[len(w.patches)-1]; !strings.Contains(last, `"value":"`+tc.wantVersion+`"`) || !strings.Contains(last, `"manager":"helm"`) {
				t.Errorf("the last patch is of another version, or hands over to another: %s", last)
			}
		})
	}
}
