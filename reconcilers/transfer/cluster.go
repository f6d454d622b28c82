package transfer

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/powers"
)

const fieldManager = "stencil-transfers"

// newClient returns a client that writes as an account; as the manager itself if that is empty.
func newClient(config *rest.Config, account string) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme, storagev1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making the client of transfers: %w", err)
		}
	}
	made, err := client.New(powers.As(config, account), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making the client of transfers: %w", err)
	}
	return client.WithFieldOwner(made, fieldManager), nil
}

// get reads an object; found is false if it does not exist.
func get(ctx context.Context, c client.Client, namespace, name string, into client.Object) (found bool, err error) {
	err = c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// ensure creates an object unless there is one of its name. It fails if that belongs to another transfer.
func ensure(ctx context.Context, c client.Client, object client.Object) error {
	err := c.Create(ctx, object)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := &metav1.PartialObjectMetadata{}
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	if gvk.Kind == "Secret" {
		// Its name has the UID of the transfer, from which its content derives. The account does not read Secrets.
		return nil
	}
	existing.SetGroupVersionKind(gvk)
	found, err := get(ctx, c, object.GetNamespace(), object.GetName(), existing)
	if err != nil || !found {
		return err
	}
	if existing.Labels[v1beta1.LabelTransferUID] != object.GetLabels()[v1beta1.LabelTransferUID] {
		return &permanentError{ReasonNameTaken, fmt.Sprintf("%s %s/%s exists already: delete it, or choose another name", gvk.Kind, object.GetNamespace(), object.GetName())}
	}
	return nil
}

// replace creates an object in the place of one of its name: the task of a mover that is started again may be another, after an upgrade.
func replace(ctx context.Context, c client.Client, object client.Object) error {
	before, _ := object.DeepCopyObject().(client.Object)
	if err := remove(ctx, c, before); err != nil {
		return err
	}
	return c.Create(ctx, object)
}

// permanentError is an error that retries cannot resolve.
type permanentError struct{ reason, message string }

func (e *permanentError) Error() string { return e.message }

// remove deletes an object, and what it owns.
func remove(ctx context.Context, c client.Client, object client.Object) error {
	return client.IgnoreNotFound(c.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}
