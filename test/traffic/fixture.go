package traffic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/install"
)

// fixture is what the traffic creates before it writes, and deletes at the end.
type fixture struct {
	options Options
	kube    kubernetes.Interface
	admin   dynamic.Interface
	// prefix begins the names of all VirtualMachines and users of this traffic.
	prefix    string
	namespace string
	// users are those that were made for this traffic; roleNamespaces are where they have permissions, the whole cluster when empty.
	users, roleNamespaces []string
	writers               map[Kind]writer
}

// newFixture returns what it has created also with an error.
func newFixture(ctx context.Context, options Options) (*fixture, error) {
	f := &fixture{options: options, namespace: options.Namespace, writers: map[Kind]writer{}, prefix: "traffic-" + rand.String(6)}
	var err1, err2 error
	f.kube, err1 = kubernetes.NewForConfig(options.Plane.AdminConfig())
	f.admin, err2 = dynamic.NewForConfig(options.Plane.AdminConfig())
	if err := errors.Join(err1, err2); err != nil {
		return f, fmt.Errorf("making clients of the administrator: %w", err)
	}
	if options.Namespace == "" {
		_, err := f.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: f.prefix, Labels: options.NamespaceLabels},
		}, metav1.CreateOptions{})
		if err != nil {
			return f, fmt.Errorf("creating a namespace: %w", err)
		}
		f.namespace = f.prefix
	}
	return f, f.makeWriters(ctx)
}

// makeWriters makes the users, the VirtualMachines that are changed, and the writer of each kind.
func (f *fixture) makeWriters(ctx context.Context) error {
	modifiers := []gen.UserModifier{gen.Permits(f.namespace, ownVMs)}
	f.roleNamespaces = append(f.roleNamespaces, f.namespace)
	subject := []gen.Modifier{gen.SmallSpec()}
	if reference := f.options.Template; reference != "" {
		namespace, name, qualified := strings.Cut(reference, "/")
		if !qualified {
			namespace, name = f.namespace, reference
		}
		modifiers = append(modifiers, gen.UsesTemplates(namespace, name))
		f.roleNamespaces = append(f.roleNamespaces, namespace)
		// This works also where VirtualMachines without a template are denied.
		subject = []gen.Modifier{gen.FromTemplate(reference)}
	}
	user, userVMs, err := f.user(ctx, "owner", modifiers...)
	if err != nil {
		return err
	}
	labeller, _, err := f.user(ctx, "labeller", gen.Permits("", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "patch"},
	}))
	if err != nil {
		return err
	}
	f.roleNamespaces = append(f.roleNamespaces, "")
	labellerClient, err := dynamic.NewForConfig(labeller.Config())
	if err != nil {
		return fmt.Errorf("making a client of %s: %w", labeller.Name, err)
	}
	controllerVMs, err := f.controller(ctx)
	if err != nil {
		return err
	}
	// Each kind changes its own, one after the other: on a slow machine, writes of the same object would conflict until they time out.
	names, created := map[Kind][]string{}, 0
	for _, kind := range []Kind{UpdateVMSpec, UpdateVMStatus, AnnotateVM} {
		for range subjects {
			name := fmt.Sprintf("%s-subject-%d", f.prefix, created)
			if _, err := userVMs.Create(ctx, gen.VM(name, subject...), metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating a VirtualMachine to change: %w", err)
			}
			names[kind] = append(names[kind], name)
			created++
		}
	}
	f.writers = map[Kind]writer{
		CreateVM:             {user.Name, createVM(userVMs, f.prefix+"-plain", gen.SmallSpec())},
		CreateVMFromTemplate: {user.Name, createVM(userVMs, f.prefix+"-templated", gen.FromTemplate(f.options.Template))},
		UpdateVMSpec:         {user.Name, updateVMSpec(userVMs, names[UpdateVMSpec])},
		LabelNamespace:       {labeller.Name, label(labellerClient.Resource(namespaces), f.namespace)},
		UpdateVMStatus:       {controllerUser, updateVMStatus(controllerVMs, names[UpdateVMStatus])},
		AnnotateVM:           {controllerUser, annotate(controllerVMs, names[AnnotateVM])},
	}
	return nil
}

// ownVMs is what the role edit permits on VirtualMachines, and is there on planes without roles, too.
var ownVMs = rbacv1.PolicyRule{
	APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"},
	Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
}

// user makes a user of this traffic, with a client of VirtualMachines.
func (f *fixture) user(ctx context.Context, role string, modifiers ...gen.UserModifier) (*controlplane.User, dynamic.ResourceInterface, error) {
	name := f.prefix + "-" + role
	f.users = append(f.users, name)
	user, err := gen.User(ctx, f.options.Plane, name, modifiers...)
	if err != nil {
		return nil, nil, err
	}
	client, err := f.vmsOf(user)
	return user, client, err
}

// controller returns the client of virt-controller's service account. Where KubeVirt does not run, it gets the permissions of KubeVirt's own role.
func (f *fixture) controller(ctx context.Context) (dynamic.ResourceInterface, error) {
	user, err := f.options.Plane.User(controllerUser, "system:serviceaccounts", "system:serviceaccounts:kubevirt")
	if err != nil {
		return nil, fmt.Errorf("making the user %s: %w", controllerUser, err)
	}
	_, err = f.kube.CoreV1().ServiceAccounts("kubevirt").Get(ctx, "kubevirt-controller", metav1.GetOptions{})
	if err != nil {
		err := f.options.Plane.Grant(ctx, user, f.namespace, rbacv1.PolicyRule{
			APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines", "virtualmachines/status"}, Verbs: []string{"get", "update", "patch"},
		})
		if err == nil {
			// The manager finds no KubeVirt either.
			err = f.options.Plane.Grant(ctx, user, "", install.Bypass())
		}
		if err != nil {
			return nil, err
		}
	}
	return f.vmsOf(user)
}

func (f *fixture) vmsOf(user *controlplane.User) (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(user.Config())
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", user.Name, err)
	}
	return client.Resource(vms).Namespace(f.namespace), nil
}

// cleanUpLimit bounds the deletion of the traffic's objects: some hundred VirtualMachines after a soak, with finalizers that virt-controller removes.
const cleanUpLimit = 10 * time.Minute

// cleanUp deletes what the fixture and the traffic created, and returns when the VirtualMachines no longer exist.
func (f *fixture) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	if f.admin == nil || f.namespace == "" {
		return nil
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	left := 0
	for {
		found, err := f.deleteVMs(ctx)
		if err == nil {
			left = found
			if left == 0 {
				break
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cleaning up after the traffic: %d VirtualMachines are left: %w (%w)", left, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
	err := f.deletePermissions(ctx)
	if f.options.Namespace == "" {
		err = errors.Join(err, f.kube.CoreV1().Namespaces().Delete(ctx, f.namespace, metav1.DeleteOptions{}))
	}
	if err != nil {
		return fmt.Errorf("cleaning up after the traffic: %w", err)
	}
	return nil
}

// deleteVMs deletes the VirtualMachines that are not being deleted yet, and returns how many there are.
func (f *fixture) deleteVMs(ctx context.Context) (left int, err error) {
	client := f.admin.Resource(vms).Namespace(f.namespace)
	listed, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("listing VirtualMachines: %w", err)
	}
	for i := range listed.Items {
		vm := &listed.Items[i]
		if !strings.HasPrefix(vm.GetName(), f.prefix) {
			continue
		}
		left++
		if vm.GetDeletionTimestamp() == nil {
			if err := client.Delete(ctx, vm.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return left, fmt.Errorf("deleting the VirtualMachine %s: %w", vm.GetName(), err)
			}
		}
	}
	return left, nil
}

// deletePermissions deletes the bindings of the users of this traffic, with their roles, which have the same names.
func (f *fixture) deletePermissions(ctx context.Context) error {
	rbac, now := f.kube.RbacV1(), metav1.DeleteOptions{}
	ours := func(subjects []rbacv1.Subject) bool {
		return len(subjects) == 1 && slices.Contains(f.users, subjects[0].Name)
	}
	for _, namespace := range f.roleNamespaces {
		if namespace == "" {
			bindings, err := rbac.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("listing ClusterRoleBindings: %w", err)
			}
			for _, one := range bindings.Items {
				if ours(one.Subjects) {
					err := errors.Join(rbac.ClusterRoleBindings().Delete(ctx, one.Name, now), rbac.ClusterRoles().Delete(ctx, one.RoleRef.Name, now))
					if err != nil {
						return err
					}
				}
			}
			continue
		}
		bindings, err := rbac.RoleBindings(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing RoleBindings: %w", err)
		}
		for _, one := range bindings.Items {
			if ours(one.Subjects) {
				err := errors.Join(rbac.RoleBindings(namespace).Delete(ctx, one.Name, now), rbac.Roles(namespace).Delete(ctx, one.RoleRef.Name, now))
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}
