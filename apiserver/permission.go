package apiserver

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// mayCreate reports whether a user may create VirtualMachines in a namespace through this API, from the template of that name; from any template when
// it is empty.
func (h *handler) mayCreate(ctx context.Context, requester user.Info, namespace, template string) (bool, error) {
	return h.allowed(ctx, authorizer.AttributesRecord{
		User: requester, Verb: "create", Namespace: namespace, Name: template,
		APIGroup: h.version.Group, APIVersion: h.version.Version, Resource: templates, Subresource: "create",
	})
}

// mayWrite reports whether a user may create VirtualMachines in a namespace by manifests that refer to a template.
func (h *handler) mayWrite(ctx context.Context, requester user.Info, namespace string, path map[string]string) (bool, error) {
	may, err := h.allowed(ctx, authorizer.AttributesRecord{
		User: requester, Verb: "create", Namespace: namespace, APIGroup: "kubevirt.io", APIVersion: "v1", Resource: "virtualmachines",
	})
	if !may || err != nil {
		return false, err
	}
	return h.mayUse(ctx, requester, path)
}

// mayUse reports whether a user may create VirtualMachines that refer to a template.
func (h *handler) mayUse(ctx context.Context, requester user.Info, path map[string]string) (bool, error) {
	return h.allowed(ctx, authorizer.AttributesRecord{
		User: requester, Verb: "use", Namespace: path["namespace"], Name: path["name"],
		APIGroup: v1beta1.GroupVersion.Group, APIVersion: v1beta1.GroupVersion.Version, Resource: templates,
	})
}

func (h *handler) allowed(ctx context.Context, attributes authorizer.AttributesRecord) (bool, error) {
	attributes.ResourceRequest = true
	decision, _, err := h.options.Authorizer.Authorize(ctx, attributes)
	if err != nil {
		return false, apierrors.NewServiceUnavailable("the permission check failed; try again in a moment")
	}
	return decision == authorizer.DecisionAllow, nil
}
