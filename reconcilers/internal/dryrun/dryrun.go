// Package dryrun creates VirtualMachines in dry runs, and interprets the answers of the API server.
package dryrun

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Timeout is the timeout of a dry run: each webhook may take up to 30 s, and several are called.
const Timeout = time.Minute

// Machines are VirtualMachines.
var Machines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// VM returns a rendered VirtualMachine, which has no kind, as an object to create.
func VM(rendered map[string]any) *unstructured.Unstructured {
	rendered["apiVersion"], rendered["kind"] = Machines.GroupVersion().String(), "VirtualMachine"
	return &unstructured.Unstructured{Object: rendered}
}

// Create creates a VirtualMachine in a dry run. Its errors are those of the API server, because Evaluate interprets them.
func Create(ctx context.Context, client dynamic.Interface, vm *unstructured.Unstructured, fieldManager string) error {
	_, err := client.Resource(Machines).Namespace(vm.GetNamespace()).Create(ctx, vm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})
	return err
}

// Result is the result of a dry run.
type Result int

// Results of a dry run. NotTried means that neither is known: the API server or a webhook did not answer, or the client has no permission.
const (
	NotTried Result = iota
	Denied
	Accepted
)

// Evaluate returns the result for an answer of the API server, and its text if it is not accepted. Secrets in the text are replaced: an answer may
// quote them.
func Evaluate(err error, secrets []string) (Result, string) {
	if err == nil || apierrors.IsAlreadyExists(err) {
		// An existing VM of the same name is reported last, after all admission checks.
		return Accepted, ""
	}
	text := err.Error()
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "(sensitive)")
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsForbidden(err) && !strings.Contains(text, "cannot create resource") ||
		status.Status().Code == 422 || status.Status().Code == 409 || status.Status().Code == 413) {
		return Denied, text
	}
	return NotTried, text
}
