package traffic

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/gen"
)

var (
	vms        = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// roundKey is the label and the annotation that are changed, to the number of the write.
const roundKey = "traffic.stencil.test/round"

// writer makes the writes of one kind.
type writer struct {
	user string
	// write makes the n-th write, and returns how often it was sent again after a conflict.
	write func(ctx context.Context, n int) (conflicts int, err error)
}

// createVM writes a VirtualMachine each time.
func createVM(client dynamic.ResourceInterface, prefix string, modifiers ...gen.Modifier) func(context.Context, int) (int, error) {
	return func(ctx context.Context, n int) (int, error) {
		_, err := client.Create(ctx, gen.VM(fmt.Sprintf("%s-%d", prefix, n), modifiers...), metav1.CreateOptions{})
		return 0, err
	}
}

// updateVMSpec changes a field that every VirtualMachine can have.
func updateVMSpec(client dynamic.ResourceInterface, names []string) func(context.Context, int) (int, error) {
	return func(ctx context.Context, n int) (int, error) {
		return update(ctx, client, names[n%len(names)], func(vm *unstructured.Unstructured) error {
			return unstructured.SetNestedField(vm.Object, int64(n), "spec", "template", "spec", "terminationGracePeriodSeconds")
		}, client.Update)
	}
}

// updateVMStatus changes the status as a controller does, which works on what it has read.
func updateVMStatus(client dynamic.ResourceInterface, names []string) func(context.Context, int) (int, error) {
	updateStatus := func(ctx context.Context, vm *unstructured.Unstructured, options metav1.UpdateOptions, _ ...string) (*unstructured.Unstructured, error) {
		return client.UpdateStatus(ctx, vm, options)
	}
	return func(ctx context.Context, n int) (int, error) {
		return update(ctx, client, names[n%len(names)], func(vm *unstructured.Unstructured) error {
			return unstructured.SetNestedSlice(vm.Object, []any{map[string]any{
				"type": "Traffic", "status": "True", "reason": fmt.Sprintf("Round%d", n),
			}}, "status", "conditions")
		}, updateStatus)
	}
}

// annotate changes an annotation, as controllers do: by a patch.
func annotate(client dynamic.ResourceInterface, names []string) func(context.Context, int) (int, error) {
	return func(ctx context.Context, n int) (int, error) {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, roundKey, n)
		_, err := client.Patch(ctx, names[n%len(names)], types.MergePatchType, patch, metav1.PatchOptions{})
		return 0, err
	}
}

// label changes a label, as kubectl label does.
func label(client dynamic.ResourceInterface, name string) func(context.Context, int) (int, error) {
	return func(ctx context.Context, n int) (int, error) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, roundKey, n)
		_, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return 0, err
	}
}

type updater func(context.Context, *unstructured.Unstructured, metav1.UpdateOptions, ...string) (*unstructured.Unstructured, error)

// update reads, changes and writes an object, and repeats this with a fresh read after a conflict.
func update(ctx context.Context, client dynamic.ResourceInterface, name string, change func(*unstructured.Unstructured) error, write updater) (conflicts int, err error) {
	for {
		object, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return conflicts, err
		}
		if err := change(object); err != nil {
			return conflicts, err
		}
		_, err = write(ctx, object, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) || conflicts == maxConflicts {
			return conflicts, err
		}
		conflicts++
	}
}
