package apiserver

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"kubevirt.io/api/instancetype"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"

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

// sizeResources are the resources of the kinds that a VirtualMachine refers to.
var sizeResources = map[string]string{
	sizing.KindInstancetype:        instancetype.PluralResourceName,
	sizing.KindClusterInstancetype: instancetype.ClusterPluralResourceName,
	sizing.KindPreference:          instancetype.PluralPreferenceResourceName,
	sizing.KindClusterPreference:   instancetype.ClusterPluralPreferenceResourceName,
}

// Resolve implements sizing.Resolver.
func (r *readable) Resolve(ctx context.Context, reference sizing.Reference) (map[string]any, error) {
	if reference.Revision != "" && !reference.Loose {
		return nil, errors.New("revisions are not read for defaults: leave out revisionName")
	}
	wanted := authorizer.AttributesRecord{
		User: r.requester, Verb: "get", Name: reference.Name,
		APIGroup: instancetypev1beta1.SchemeGroupVersion.Group, APIVersion: instancetypev1beta1.SchemeGroupVersion.Version, Resource: sizeResources[reference.Kind],
	}
	if reference.Kind == sizing.KindInstancetype || reference.Kind == sizing.KindPreference {
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
