package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// FieldManager is the field manager of the objects.
const FieldManager = "stencil-objects"

// Try creates an object in a dry run. The error is a Denied if the object cannot be created, and temporary otherwise.
func Try(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string, manifest []byte) error {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(manifest); err != nil {
		return Denied("it cannot be decoded")
	}
	object.SetNamespace(namespace)
	_, err := client.Resource(resource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: FieldManager})
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err):
		return Denied("an object of this name exists already in namespace " + namespace + "; if it is left of a VirtualMachine that was deleted, try again in a moment")
	case Temporary(err):
		return err
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if _, policy := invalidFields(status.Status()); policy {
			// It is written for users, and this is the answer to one.
			return Denied(status.Status().Message)
		}
	}
	return Denied(Explain(err))
}

// Temporary reports whether an error of the API server does not depend on the request, which may even have been carried out.
func Temporary(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

// Explain returns why the API server did not create an object, without values of its fields, which may be secret: messages about invalid objects
// repeat them.
func Explain(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "the API server does not answer"
	}
	fields, policy := invalidFields(status.Status())
	switch reason := status.Status().Reason; {
	case reason == metav1.StatusReasonForbidden:
		return status.Status().Message
	case len(fields) > 0:
		return fmt.Sprintf("it is invalid (%s)", strings.Join(fields, ", "))
	case policy:
		return "an admission policy denies it"
	case reason != "":
		return string(reason)
	default:
		return fmt.Sprintf("HTTP status %d", status.Status().Code)
	}
}

// invalidFields returns the fields that the API server rejected, and why. The denial of an admission policy names no field.
func invalidFields(status metav1.Status) (fields []string, policy bool) {
	if status.Reason != metav1.StatusReasonInvalid || status.Details == nil {
		return nil, false
	}
	for _, cause := range status.Details.Causes {
		if cause.Field != "" {
			fields = append(fields, fmt.Sprintf("%s: %s", cause.Field, cause.Type))
		}
	}
	return fields, len(fields) == 0 && len(status.Details.Causes) > 0
}
