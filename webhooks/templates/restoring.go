package templates

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/template/extensions"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// Approvals returns the approvals of the cluster.
type Approvals interface {
	Synced() bool
	Approvals() []*approval.Approval
}

// Restoring restores the extensions of templates and writes their annotation. The next handler receives the result.
type Restoring struct{ next admission.Handler }

// NewRestoring returns a Restoring.
func NewRestoring(next admission.Handler) *Restoring { return &Restoring{next: next} }

// Handle implements admission.Handler.
func (r *Restoring) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" || request.Resource.Resource != "virtualmachinetemplates" {
		return r.next.Handle(ctx, request)
	}
	before, after, err := versions(request)
	if err != nil {
		// The next handler and the API server report it.
		return r.next.Handle(ctx, request)
	}
	decision := extensions.Decide(before, after)
	operations := patch(decision, after)
	if len(operations) > 0 {
		if request.Object.Raw, err = patched(request.Object.Raw, operations); err != nil {
			return deny.With(apierrors.NewInternalError(fmt.Errorf("restoring fields of the template: %w", err)).Status())
		}
	}
	response := r.next.Handle(ctx, request)
	if response.Allowed {
		response.Patches = append(operations, response.Patches...)
	}
	return response.WithWarnings(decision.Warnings...)
}

// versions returns the template of a request, and the stored one if the request updates it. A stored one that cannot be decoded has nothing.
func versions(request admission.Request) (before, after *extensions.Object, err error) {
	if request.Operation == admissionv1.Update {
		if before, err = extensions.Read(request.OldObject.Raw); err != nil {
			before = &extensions.Object{}
		}
	}
	after, err = extensions.Read(request.Object.Raw)
	return before, after, err
}

// patch returns the changes of a template. The object is not encoded again: its other fields stay as they were sent.
func patch(d extensions.Decision, after *extensions.Object) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	for _, field := range d.Restored.Fields(after.Spec) {
		operations = append(operations, jsonpatch.NewOperation("add", field.Pointer, field.Value))
	}
	annotations := maps.Clone(after.Metadata.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	if delete(annotations, contract.AnnotationExtensions); d.Annotation != "" {
		annotations[contract.AnnotationExtensions] = d.Annotation
	}
	if d.RemoveDrop {
		delete(annotations, contract.AnnotationDropExtensions)
	}
	if !maps.Equal(annotations, after.Metadata.Annotations) {
		operations = append(operations, jsonpatch.NewOperation("add", "/metadata/annotations", annotations))
	}
	return operations
}

func patched(raw []byte, operations []jsonpatch.Operation) ([]byte, error) {
	encoded, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	decoded, err := jsonpatchv4.DecodePatch(encoded)
	if err != nil {
		return nil, err
	}
	return decoded.Apply(raw)
}

// checkExtensions rejects a template that lost extensions and is named by an approval, and warns about another one.
func (h *Handler) checkExtensions(request admission.Request, object *v1beta1.VirtualMachineTemplate) (warnings []string, answer *admission.Response) {
	if h.Approvals == nil {
		return nil, nil
	}
	before, after, err := versions(request)
	if err != nil {
		return nil, new(deny.Malformed(err))
	}
	decision := extensions.Decide(before, after)
	switch {
	case !decision.Restored.Empty():
		// The mutating webhook has not answered, or another webhook has removed the fields.
		return nil, new(deny.Unavailable("fields that the published API lacks have not been restored: " + decision.Restored.String()))
	case decision.Loss == "":
		return nil, nil
	case !h.Approvals.Synced():
		return nil, new(deny.Unavailable("the approvals that name the template are unknown: the cache is not synced"))
	}
	if by := h.namedBy(request, object); by != "" {
		path := field.NewPath("metadata", "annotations").Key(contract.AnnotationExtensions)
		causes := field.ErrorList{field.Forbidden(path, fmt.Sprintf("TemplateApproval %s names the template: %s", by, decision.Loss))}
		return nil, new(deny.With(apierrors.NewInvalid(templateKind, object.Name, causes).Status()))
	}
	return []string{decision.Loss}, nil
}

// namedBy returns the name of an approval that lists the template, with its labels before or after the request.
func (h *Handler) namedBy(request admission.Request, object *v1beta1.VirtualMachineTemplate) string {
	var stored v1beta1.VirtualMachineTemplate
	_ = json.Unmarshal(request.OldObject.Raw, &stored)
	all := h.Approvals.Approvals()
	i := slices.IndexFunc(all, func(a *approval.Approval) bool {
		return slices.ContainsFunc([]map[string]string{object.Labels, stored.Labels}, func(labels map[string]string) bool {
			return a.ListsTemplate(approval.Template{Namespace: request.Namespace, Name: object.Name, Labels: labels})
		})
	})
	if i < 0 {
		return ""
	}
	return all[i].Name()
}
