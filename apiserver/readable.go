package apiserver

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// readable resolves the instance types and preferences that a user may get: the defaults show what is in them.
type readable struct {
	handler   *handler
	requester user.Info
	resolver  sizing.Resolver
	// failed is the error of a permission check.
	failed error
}

// Resolve implements sizing.Resolver.
func (r *readable) Resolve(ctx context.Context, reference sizing.Reference) (map[string]any, error) {
	if reference.Revision != "" && !reference.Loose {
		return nil, errors.New("revisions are not read for defaults: leave out revisionName")
	}
	resource := sizing.Resources[reference.Kind]
	wanted := authorizer.AttributesRecord{
		User: r.requester, Verb: "get", Name: reference.Name,
		APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource,
	}
	if reference.Namespaced() {
		wanted.Namespace = reference.Namespace
	}
	may, err := r.handler.allowed(ctx, wanted)
	if err != nil {
		r.failed = err
		return nil, err
	}
	if !may {
		return nil, fmt.Errorf("user %q may not get it", r.requester.GetName())
	}
	return r.resolver.Resolve(ctx, reference)
}
