package gen

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/controlplane"
)

// UserModifier adds groups or permissions to a user.
type UserModifier func(*account)

// account holds the groups and permissions of a user.
type account struct {
	groups []string
	// grants grant the permissions once the user exists.
	grants []func(ctx context.Context, plane *controlplane.Plane, user *controlplane.User) error
}

// User makes a user of a plane and returns when the API server acts according to all of the user's permissions. Without modifiers the
// user has those of every authenticated user only.
func User(ctx context.Context, plane *controlplane.Plane, name string, modifiers ...UserModifier) (*controlplane.User, error) {
	var made account
	for _, modify := range modifiers {
		modify(&made)
	}
	user, err := plane.User(name, made.groups...)
	if err != nil {
		return nil, fmt.Errorf("making the user %s: %w", name, err)
	}
	for _, grant := range made.grants {
		if err := grant(ctx, plane, user); err != nil {
			return nil, fmt.Errorf("making the user %s: %w", name, err)
		}
	}
	return user, nil
}

// Group makes the user a member of groups.
func Group(names ...string) UserModifier {
	return func(a *account) { a.groups = append(a.groups, names...) }
}

// Role binds a ClusterRole to the user in a namespace, or in the whole cluster when namespace is empty. Those that users usually have
// are admin, edit and view of Kubernetes, and kubevirt.io:admin, kubevirt.io:edit and kubevirt.io:view of KubeVirt. The former
// contain the latter, and need a plane with Options.ControllerManager, which aggregates them.
func Role(namespace, clusterRole string) UserModifier {
	return granting(func(ctx context.Context, plane *controlplane.Plane, user *controlplane.User) error {
		return plane.Bind(ctx, user, namespace, clusterRole)
	})
}

// UsesTemplates permits the user to create VirtualMachines from templates of a namespace: from those that are named, or from all when
// none is. It does not permit reading them.
func UsesTemplates(namespace string, names ...string) UserModifier {
	return Permits(namespace, rbacv1.PolicyRule{
		APIGroups: []string{templatev1beta1.GroupVersion.Group}, Resources: []string{"virtualmachinetemplates"},
		ResourceNames: names, Verbs: []string{"use"},
	})
}

// Permits grants rules to the user in a namespace, or in the whole cluster when namespace is empty: for what no ClusterRole fits.
func Permits(namespace string, rules ...rbacv1.PolicyRule) UserModifier {
	return granting(func(ctx context.Context, plane *controlplane.Plane, user *controlplane.User) error {
		return plane.Grant(ctx, user, namespace, rules...)
	})
}

func granting(grant func(context.Context, *controlplane.Plane, *controlplane.User) error) UserModifier {
	return func(a *account) { a.grants = append(a.grants, grant) }
}
