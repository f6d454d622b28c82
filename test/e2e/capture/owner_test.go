package capture_test

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// standIn adds to the role edit the permissions of KubeVirt and CDI, which are not installed on the fake stage.
func (s *stage) standIn(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.platform.Plane.AdminConfig())
	if err != nil {
		return err
	}
	_, err = client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "played-edit", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{virtualMachines.Group, snapshots.Group, dataVolumes.Group}, Resources: []string{"*"}, Verbs: []string{"*"},
		}},
	}, metav1.CreateOptions{})
	return err
}

// addOwner makes the owner, and returns when the role edit has the rules of CDI.
func (s *stage) addOwner(ctx context.Context) (err error) {
	if s.owner, err = gen.User(ctx, s.platform.Plane, "owner"); err != nil {
		return err
	}
	if s.own, err = dynamic.NewForConfig(s.owner.Config()); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(s.platform.Plane.AdminConfig())
	if err != nil {
		return err
	}
	return deadline.Wait(ctx, "the role edit has the rules of CDI", harness.Limit, func(ctx context.Context) error {
		return controlplane.EditHasRules(ctx, client, dataVolumes.Group)
	})
}

// does runs kubectl as the owner, requires success, and returns the standard output.
func (s *stage) does(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, s.platform.Plane, s.owner, stdin, arguments...).Stdout
}
