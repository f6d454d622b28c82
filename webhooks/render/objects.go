package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/mutation"
	"github.com/vmstencil/stencil/internal/objects"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// Objects are the dependencies for templates with other objects.
type Objects struct {
	// Kinds finds where objects are created.
	Kinds interface {
		Resource(apiVersion, kind string) (schema.GroupVersionResource, error)
		// Lent returns why templates may not lend the right to create a resource; empty if they may.
		Lent(resource schema.GroupResource) objects.Denied
	}
	// Try creates an object in a dry run. The error is an objects.Denied if it cannot be created.
	Try func(ctx context.Context, resource schema.GroupVersionResource, namespace string, manifest []byte) error
	// VirtualMachine reads a VM; nil if there is none.
	VirtualMachine func(ctx context.Context, namespace, name string) (map[string]any, error)
	// Keys returns the keys that encrypt objects until they are created.
	Keys func() objects.Keys
	// Now returns the time.
	Now func() time.Time
}

// attached are the other objects of a template that are created for a VM.
type attached struct {
	// rendered is the list of them, and names their kinds and names as in the template, which show no values.
	rendered json.RawMessage
	names    []string
	// lent reports for each whether the template lends the right to create it.
	lent []bool
	// sensitive are the values of sensitive parameters.
	sensitive []string
	binding   objects.Binding
}

// hold adds to a rendered spec the annotation that holds the VM back until its objects exist.
func hold(spec json.RawMessage) (json.RawMessage, error) {
	decoded, err := machine.Decode(spec)
	if err != nil {
		return nil, err
	}
	return json.Marshal(holding(decoded))
}

// holding adds the annotation to a decoded spec, and returns it.
func holding(spec map[string]any) map[string]any {
	within := spec
	for _, key := range []string{"template", "metadata", "annotations"} {
		next, is := within[key].(map[string]any)
		if !is {
			next = map[string]any{}
			within[key] = next
		}
		within = next
	}
	within[contract.AnnotationHold] = held
	return spec
}

// sensitiveValues returns the values of sensitive parameters.
func sensitiveValues(compiled *template.Compiled, binding *template.Binding) []string {
	var values []string
	for name, value := range binding.Values() {
		if value != "" && compiled.Sensitive(name) {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return values
}

// lentObjects reports for each object whether the template lends the right to create it.
func lentObjects(compiled *template.Compiled) []bool {
	lent := make([]bool, len(compiled.Objects()))
	for i := range lent {
		lent[i] = compiled.LendsObject(i)
	}
	return lent
}

// held is the value of the annotation.
const held = "objects"

// attach adds the encrypted objects to the patch of a new VM, if the user may create all of them.
func (h *Handler) attach(ctx context.Context, request admission.Request, requester authenticationv1.UserInfo, ref machine.Reference, decided *result) *admission.Response {
	others := decided.objects
	if len(others.names) == 0 {
		return nil
	}
	at := field.NewPath(fmt.Sprintf("template[%s]", ref), "spec", "objects")
	if h.objects == nil {
		response := deny.Invalid(others.binding.Name, field.ErrorList{field.Forbidden(at, machine.ObjectsDenial(ref.String(), ref.String(), others.names))})
		return &response
	}
	var manifests []json.RawMessage
	if err := json.Unmarshal(others.rendered, &manifests); err != nil {
		return unavailable("the objects of the template could not be read", err)
	}
	pending := objects.Pending{Sealed: h.objects.Now(), Sensitive: others.sensitive}
	// The API server compares it with the sender of the request, which is not always the requester.
	if others.binding.Requester = request.UserInfo.Username; request.DryRun != nil && *request.DryRun {
		others.binding.Requester = objects.DryRun(request.UserInfo.Username)
	}
	var causes field.ErrorList
	for i, manifest := range manifests {
		resource, denied, err := h.creatable(ctx, request, requester, manifest, others.lent[i])
		if err != nil {
			return unavailable("whether the objects of the template can be created could not be checked", err)
		}
		if denied != "" {
			causes = append(causes, field.Forbidden(at.Index(i), others.names[i]+": "+denied))
		}
		pending.Objects = append(pending.Objects, objects.Object{Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Manifest: manifest})
	}
	if len(causes) > 0 && h.taken(ctx, others.binding) {
		// To admit the request for the API server to answer the same would admit it with these causes if the VM is deleted meanwhile.
		response := deny.With(apierrors.NewAlreadyExists(vmResource, others.binding.Name).Status())
		return &response
	}
	if len(causes) > 0 {
		response := deny.Invalid(others.binding.Name, causes)
		return &response
	}
	text, err := pending.Seal(h.objects.Keys(), others.binding)
	var large *objects.TooLargeError
	switch {
	case errors.As(err, &large):
		response := deny.Invalid(others.binding.Name, field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())})
		return &response
	case err != nil:
		return unavailable("the objects of the template could not be encrypted", err)
	}
	decided.patch.Set(mutation.Pointer{"metadata", "annotations", contract.AnnotationPendingObjects}, text)
	return nil
}

// taken reports whether the VM exists already, and its objects too. Clients rely on the answer AlreadyExists.
func (h *Handler) taken(ctx context.Context, vm objects.Binding) bool {
	found, err := h.objects.VirtualMachine(ctx, vm.Namespace, vm.Name)
	return err == nil && found != nil
}

// creatable returns where an object is created, or why it is not: the reason must not contain values of the template.
func (h *Handler) creatable(ctx context.Context, request admission.Request, requester authenticationv1.UserInfo, manifest json.RawMessage, lent bool) (resource schema.GroupVersionResource, denied string, err error) {
	var kind struct{ APIVersion, Kind string }
	if err := json.Unmarshal(manifest, &kind); err != nil {
		return resource, "", err
	}
	resource, err = h.objects.Kinds.Resource(kind.APIVersion, kind.Kind)
	var unfit objects.Denied
	if errors.As(err, &unfit) {
		return resource, unfit.Error(), nil
	}
	if err != nil {
		return resource, "", err
	}
	may := lent
	if lent {
		if denied := h.objects.Kinds.Lent(resource.GroupResource()); denied != "" {
			return resource, denied.Error(), nil
		}
	} else if may, err = h.permissions.May(ctx, requester, permission.Action{
		Verb: permission.Create, Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Namespace: request.Namespace,
	}); err != nil {
		return resource, "", err
	}
	if !may {
		return resource, fmt.Sprintf("user %q may not create %s in namespace %q; ask for verb \"create\" on %[2]s there", requester.Username, resource.GroupResource(), request.Namespace), nil
	}
	err = h.objects.Try(ctx, resource, request.Namespace, manifest)
	if errors.As(err, &unfit) {
		return resource, unfit.Error(), nil
	}
	return resource, "", err
}
