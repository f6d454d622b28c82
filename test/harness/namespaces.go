package harness

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/controlplane"
)

// Namespaces are the namespaces of a package on a shared plane, one for each test. They end with the plane.
type Namespaces struct {
	Plane *controlplane.Plane
	// Prefix begins their names.
	Prefix string
	// Labels are on every namespace.
	Labels map[string]string
	// Members are ClusterRoles by the group that has them in every namespace.
	Members map[string]string
	// Prepare creates in a new namespace what its test requires. Optional.
	Prepare func(ctx context.Context, namespace string) error

	mutex sync.Mutex
	made  map[string]string
}

// Of returns the namespace of a test, which its subtests share. The first call creates it, and returns when the members have their roles
// and it is prepared.
func (n *Namespaces) Of(t *testing.T) string {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if name, found := n.made[test]; found {
		return name
	}
	name, err := n.create(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if n.made == nil {
		n.made = map[string]string{}
	}
	n.made[test] = name
	return name
}

func (n *Namespaces) create(ctx context.Context) (string, error) {
	client, err := kubernetes.NewForConfig(n.Plane.AdminConfig())
	if err != nil {
		return "", err
	}
	created, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: n.Prefix + "-", Labels: n.Labels},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	name := created.Name
	for group, role := range n.Members {
		_, err := client.RbacV1().RoleBindings(name).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: group},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
	}
	// The API server receives bindings in the order in which they were created: one that is active shows that the others are.
	if err := n.Plane.Grant(ctx, &controlplane.User{Name: n.Prefix + "-marker"}, name); err != nil || n.Prepare == nil {
		return name, err
	}
	return name, n.Prepare(ctx, name)
}
