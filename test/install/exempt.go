package install

import (
	"context"
	"errors"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
)

// Bypass returns the permission that the manager grants to the controllers of the installed KubeVirt and CDI. With it, a user with the name of one of
// them is exempt on a plane without them. It works only when granted in the whole cluster.
func Bypass() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"stencil.kubevirt.io"}, Resources: []string{"templateapprovals"}, Verbs: []string{"bypass"}}
}

// MayBypass reports whether a user has this permission.
func MayBypass(ctx context.Context, plane *controlplane.Plane, user string) (bool, error) {
	answer, err := plane.Kubectl(ctx, nil, "", "auth", "can-i", "bypass", "templateapprovals.stencil.kubevirt.io", "--as="+user)
	return err == nil && strings.TrimSpace(answer.Stdout) == "yes", err
}

// AwaitExempt returns when the manager has found these users, and the API server enforces their exemption.
func AwaitExempt(ctx context.Context, plane *controlplane.Plane, users ...string) error {
	for _, user := range users {
		if err := deadline.Wait(ctx, user+" is exempt", policyLimit, func(ctx context.Context) error {
			may, err := MayBypass(ctx, plane, user)
			if err == nil && !may {
				err = errors.New("it may not bypass templateapprovals.stencil.kubevirt.io")
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
