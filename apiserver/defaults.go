package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/internal/guestdefaults"
	"github.com/vmstencil/stencil/internal/mutation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Defaults are the dependencies of the resource defaults.
type Defaults struct {
	// Filler requests the defaults. Its Namespaces are not used.
	guestdefaults.Filler
	// Labels returns the labels of a namespace. Its errors are those of the API server.
	Labels func(ctx context.Context, namespace string) (map[string]string, error)
	Logger logr.Logger
}

// defaults fills in the defaults of a VirtualMachine that is sent, as the webhook for defaults does on its creation.
func (h *handler) defaults(request *http.Request, path map[string]string, raw []byte) (reply, error) {
	if h.options.Defaults == nil {
		status := apierrors.NewNotFound(schema.GroupResource{Group: h.version.Group, Resource: defaults}, "")
		status.ErrStatus.Message = "defaults are not filled in on this cluster: its administrator has to set defaulting.enabled of the chart, which gives stencil-apiserver the flag --defaulting-socket"
		return reply{}, status
	}
	ctx := request.Context()
	vm, warnings, err := decodeVM(raw, path[namespace])
	if err != nil {
		return reply{}, err
	}
	labels, err := h.options.Defaults.Labels(ctx, path[namespace])
	if err != nil {
		return reply{}, err
	}
	// The patch is applied to the text: the values of vm are changed together with it.
	text, err := json.Marshal(vm.Object)
	if err != nil {
		return reply{}, apierrors.NewInternalError(fmt.Errorf("encoding the VirtualMachine: %w", err))
	}
	patch := &mutation.Patch{}
	more, err := h.fill(ctx, patch, vm, path[namespace], labels)
	if err != nil {
		return reply{}, err
	}
	filled, err := apply(patch, text)
	if err != nil {
		return reply{}, apierrors.NewInternalError(err)
	}
	return reply{body: filled, warnings: append(warnings, more...), code: http.StatusCreated}, nil
}

// fill adds the defaults to the patch of a VirtualMachine, and returns what the user should know about it.
func (h *handler) fill(ctx context.Context, patch *mutation.Patch, vm machine.Object, namespace string, labels map[string]string) (warnings []string, err error) {
	const skips = " excludes it from defaults, and nothing was filled in"
	if labels[contract.AnnotationDefaultsSkip] == "true" {
		// The webhook is not called.
		return []string{"label " + contract.AnnotationDefaultsSkip + " of the namespace" + skips}, nil
	}
	if machine.StringAt(vm.Annotations, contract.AnnotationDefaultsSkip) == "true" {
		guestdefaults.Stamp(vm, patch, "", "")
		return []string{"annotation " + contract.AnnotationDefaultsSkip + skips}, nil
	}
	requester, found := genericrequest.UserFrom(ctx)
	if !found {
		return nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	filler := h.options.Defaults.Filler
	sizes := &readable{handler: h, requester: requester, resolver: filler.Instancetypes}
	filler.Instancetypes = sizes
	filler.Namespaces = labelled(labels)
	response, unresolved, err := filler.Request(ctx, &guestdefaults.Subject{Namespace: namespace, VM: vm})
	if sizes.failed != nil {
		return nil, sizes.failed
	}
	if err != nil {
		return nil, h.failure(vm.Name(), err)
	}
	for _, each := range unresolved {
		warnings = append(warnings, each.Error())
	}
	rejection, err := guestdefaults.Write(patch, vm, machine.Object{}, response)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if rejection != "" {
		return append(warnings, rejection), nil
	}
	return append(warnings, leftOpen(response.Skipped)...), nil
}

// leftOpen returns a warning for each reason for which fields are left empty.
func leftOpen(skipped []defaulting.Skipped) (warnings []string) {
	paths := map[string][]string{}
	var reasons []string
	for _, each := range skipped {
		if paths[each.Reason] == nil {
			reasons = append(reasons, each.Reason)
		}
		if !slices.Contains(paths[each.Reason], each.Path) {
			paths[each.Reason] = append(paths[each.Reason], each.Path)
		}
	}
	for _, reason := range reasons {
		warnings = append(warnings, "left open: "+strings.Join(paths[reason], ", ")+": "+reason)
	}
	return warnings
}

// failure converts an error of the defaulter to an API status.
func (h *handler) failure(name string, err error) error {
	if causes := guestdefaults.Rejection(err); causes != nil {
		return apierrors.NewInvalid(vmKind, name, causes)
	}
	if errors.Is(err, guestdefaults.ErrUnsynced) {
		return apierrors.NewServiceUnavailable(err.Error() + "; try again in a moment")
	}
	h.options.Defaults.Logger.Info("defaults could not be filled in", "name", name, "cause", err.Error())
	var problem *defaulting.Problem
	if !errors.As(err, &problem) {
		problem = defaulting.Unavailable("%s; if this remains, see the container defaulter of stencil-apiserver", guestdefaults.Reason(err))
		if errors.Is(err, context.DeadlineExceeded) {
			problem.Status = http.StatusGatewayTimeout
		}
	}
	seconds := int(math.Ceil(problem.RetryAfter.Seconds()))
	when := "; try again in a moment"
	if seconds > 0 {
		when = fmt.Sprintf("; try again in %d s", seconds)
	}
	switch problem.Status {
	case http.StatusBadRequest:
		return apierrors.NewBadRequest(problem.Detail)
	case http.StatusRequestEntityTooLarge:
		return apierrors.NewRequestEntityTooLargeError(problem.Detail)
	case http.StatusTooManyRequests:
		return apierrors.NewTooManyRequests(problem.Detail+when, seconds)
	case http.StatusGatewayTimeout:
		return apierrors.NewTimeoutError(problem.Detail+when, seconds)
	}
	status := apierrors.NewServiceUnavailable(problem.Detail + when)
	status.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
	return status
}

// apply returns a VirtualMachine with its patch.
func apply(patch *mutation.Patch, text []byte) (json.RawMessage, error) {
	operations, err := patch.Marshal()
	if err != nil || operations == nil {
		return text, err
	}
	decoded, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, fmt.Errorf("reading the patch: %w", err)
	}
	filled, err := decoded.Apply(text)
	if err != nil {
		return nil, fmt.Errorf("filling in the defaults: %w", err)
	}
	return filled, nil
}

// labelled are the labels of the namespace of a request.
type labelled map[string]string

// Namespace implements guestdefaults.Namespaces.
func (l labelled) Namespace(context.Context, string) (labels, annotations map[string]string, found bool) {
	return l, nil, true
}
