package controlplane

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/deadline"
)

// markerGroup is an API group that does not exist. Grant and Bind use a permission in it to detect that the API server has observed what they
// created: it reads RBAC objects from watches, a little behind the store.
const markerGroup = "marker.controlplane.stencil"

// Grant binds the rules to a user in one namespace or, when namespace is empty, in all namespaces and for cluster-scoped resources. It returns when
// the API server enforces them.
func (p *Plane) Grant(ctx context.Context, user *User, namespace string, rules ...rbacv1.PolicyRule) error {
	client, err := kubernetes.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	marker := "m" + hex.EncodeToString(randomBytes(8))
	rules = append(append([]rbacv1.PolicyRule{}, rules...), rbacv1.PolicyRule{
		APIGroups: []string{markerGroup}, Resources: []string{marker}, Verbs: []string{"get"},
	})
	reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Name: marker}
	meta := metav1.ObjectMeta{Name: marker, Namespace: namespace}
	if namespace == "" {
		reference.Kind = "ClusterRole"
		_, err = client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	} else {
		reference.Kind = "Role"
		_, err = client.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("creating a role for %s: %w", user.Name, err)
	}
	if err := bind(ctx, client, user, meta, reference); err != nil {
		return err
	}
	return awaitPermission(ctx, client, user, authorizationv1.ResourceAttributes{
		Namespace: namespace, Group: markerGroup, Resource: marker, Verb: "get",
	})
}

// Bind grants an existing ClusterRole to a user, in one namespace, or in all when namespace is empty. It returns when the API server enforces it.
// kube-controller-manager fills the rules of an aggregated ClusterRole, such as edit: to bind one, the plane must have it.
func (p *Plane) Bind(ctx context.Context, user *User, namespace, clusterRole string) error {
	client, err := kubernetes.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	role, err := client.RbacV1().ClusterRoles().Get(ctx, clusterRole, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && strings.HasPrefix(clusterRole, "kubevirt.io:") && !p.options.KubeVirt {
		return fmt.Errorf("the ClusterRole %s does not exist on a plane without Options.KubeVirt: %w", clusterRole, err)
	}
	if err != nil {
		return fmt.Errorf("looking for the ClusterRole %s: %w", clusterRole, err)
	}
	if role.AggregationRule != nil && !p.has(controllerManager) {
		return fmt.Errorf("the ClusterRole %s is aggregated and stays empty without Options.ControllerManager or StartControllerManager", clusterRole)
	}
	meta := metav1.ObjectMeta{Name: "b" + hex.EncodeToString(randomBytes(8)), Namespace: namespace}
	reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole}
	if err := bind(ctx, client, user, meta, reference); err != nil {
		return err
	}
	// Bindings of one kind arrive in the order in which they were created, so once a later marker is observed this one was, too.
	return p.Grant(ctx, user, namespace)
}

func bind(ctx context.Context, client kubernetes.Interface, user *User, meta metav1.ObjectMeta, role rbacv1.RoleRef) error {
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user.Name}}
	var err error
	if meta.Namespace == "" {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	} else {
		binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}
		_, err = client.RbacV1().RoleBindings(meta.Namespace).Create(ctx, binding, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("binding %s %s to %s: %w", role.Kind, role.Name, user.Name, err)
	}
	return nil
}

// awaitPermission returns when the API server reports that the user has the permission.
func awaitPermission(ctx context.Context, client kubernetes.Interface, user *User, attributes authorizationv1.ResourceAttributes) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Name, Groups: user.Groups, ResourceAttributes: &attributes,
	}}
	return deadline.Wait(ctx, "the permissions of "+user.Name+" take effect", startLimit, func(ctx context.Context) error {
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("reviewing access: %w", err)
		}
		if !answer.Status.Allowed {
			return fmt.Errorf("%s %s is not allowed: %s", attributes.Verb, attributes.Resource, answer.Status.Reason)
		}
		return nil
	})
}
