package exemptions

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/internal/exemption"
)

// gather returns the namespaces in which KubeVirt and CDI are installed, and the configured accounts that exist there.
func (r *Reconciler) gather(ctx context.Context) (components, []exemption.Account, error) {
	kubevirts, err := r.kubevirts(ctx)
	if err != nil {
		return components{}, nil, err
	}
	bound := map[string][]string{}
	for _, name := range []string{kubevirtAccount, cdiAccount} {
		if bound[name], err = r.bound(ctx, name); err != nil {
			return components{}, nil, err
		}
	}
	installed := locate(kubevirts, bound)
	var existing []exemption.Account
	for _, account := range installed.candidates(r.options.Names) {
		_, err := r.options.Client.CoreV1().ServiceAccounts(account.Namespace).Get(ctx, account.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			existing = append(existing, account)
		case !apierrors.IsNotFound(err):
			return components{}, nil, fmt.Errorf("reading service account %s/%s: %w", account.Namespace, account.Name, err)
		}
	}
	return installed, existing, nil
}

// kubevirts returns the namespaces that have a KubeVirt object, sorted.
func (r *Reconciler) kubevirts(ctx context.Context) ([]string, error) {
	objects, err := r.options.KubeVirts.Resource(kubevirtv1.SchemeGroupVersion.WithResource("kubevirts")).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing KubeVirt objects: %w", err)
	}
	var namespaces []string
	for i := range objects.Items {
		if objects.Items[i].GetDeletionTimestamp() == nil {
			namespaces = append(namespaces, objects.Items[i].GetNamespace())
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), nil
}

// bound returns the namespaces of the service accounts with this name that the ClusterRoleBinding of the same name binds.
func (r *Reconciler) bound(ctx context.Context, name string) ([]string, error) {
	binding, err := r.options.Client.RbacV1().ClusterRoleBindings().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ClusterRoleBinding %s: %w", name, err)
	}
	var namespaces []string
	for _, subject := range binding.Subjects {
		if subject.Kind == rbacv1.ServiceAccountKind && subject.Name == name && !slices.Contains(namespaces, subject.Namespace) {
			namespaces = append(namespaces, subject.Namespace)
		}
	}
	return namespaces, nil
}
