package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

const (
	// protectedObjects is the end of the name of a ConfigMap that every revision of a release has, with a key KIND.NAME.yaml for each object about
	// admission.
	protectedObjects = "-protected-objects"
	// policyAnnotation is Helm's annotation of objects that an uninstallation keeps, with the value keep.
	policyAnnotation = "helm.sh/resource-policy"
)

func resources(group string, names ...string) (all []schema.GroupVersionResource) {
	for _, name := range names {
		all = append(all, schema.GroupVersionResource{Group: group, Version: "v1", Resource: name})
	}
	return all
}

// admission are the kinds about admission, everywhere the other kinds of the chart without a namespace or with another than that of the release, and
// inNamespace those in that namespace.
var (
	admission = resources("admissionregistration.k8s.io",
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicybindings", "validatingadmissionpolicies")
	everywhere = slices.Concat(
		resources("apiregistration.k8s.io", "apiservices"),
		resources("rbac.authorization.k8s.io", "clusterrolebindings", "clusterroles", "rolebindings", "roles"),
	)
	inNamespace = slices.Concat(
		resources("apps", "deployments"),
		resources("", "services", "serviceaccounts", "configmaps"),
		resources("policy", "poddisruptionbudgets"),
		resources("networking.k8s.io", "networkpolicies"),
	)
	configMaps = resources("", "configmaps")[0]
)

// Release is a Helm release of Stencil. Its objects have the labels of the chart and the annotations of Helm.
type Release types.NamespacedName

// has reports whether an object belongs to the release, and Helm deletes it at an uninstallation.
func (r Release) has(object metav1.Object) bool {
	annotations := object.GetAnnotations()
	return annotations["meta.helm.sh/release-name"] == r.Name && annotations["meta.helm.sh/release-namespace"] == r.Namespace &&
		annotations[policyAnnotation] != "keep"
}

// Leftovers deletes the objects of a release that Helm has not recorded: an upgrade that failed may have created them, and Helm deletes those of the last
// revision only. While the release is installed, it deletes only objects about admission that the installed revision does not have. An error lists all
// objects that could not be read or deleted.
func Leftovers(ctx context.Context, config *rest.Config, release Release, dryRun bool, report func(Step)) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	return leftovers(ctx, client, release, dryRun, report)
}

func leftovers(ctx context.Context, client dynamic.Interface, release Release, dryRun bool, report func(Step)) error {
	selector := metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=stencil,app.kubernetes.io/instance=" + release.Name}
	var failures []error
	each := func(resource schema.GroupVersionResource, namespace string, do func(*unstructured.Unstructured)) {
		listed, err := client.Resource(resource).Namespace(namespace).List(ctx, selector)
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("listing %s: %w", resource.GroupResource(), err))
			return
		}
		for i := range listed.Items {
			if release.has(&listed.Items[i]) {
				do(&listed.Items[i])
			}
		}
	}
	var revision map[string]any
	each(configMaps, release.Namespace, func(object *unstructured.Unstructured) {
		if strings.HasSuffix(object.GetName(), protectedObjects) {
			revision, _ = object.Object["data"].(map[string]any)
		}
	})
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	remove := func(resource schema.GroupVersionResource) func(*unstructured.Unstructured) {
		return func(object *unstructured.Unstructured) {
			if _, has := revision[object.GetKind()+"."+object.GetName()+".yaml"]; has {
				return
			}
			step := Step{"delete", strings.Replace(nameOf(object), " /", " ", 1), "a revision that failed had created it"}
			if dryRun {
				report(step)
				return
			}
			err := client.Resource(resource).Namespace(object.GetNamespace()).Delete(ctx, object.GetName(),
				metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(object.GetUID())}})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				failures = append(failures, fmt.Errorf("deleting %s: %w", step.Object, err))
				return
			}
			step.Action = "deleted"
			report(step)
		}
	}
	for _, resource := range admission {
		each(resource, metav1.NamespaceAll, remove(resource))
	}
	if revision != nil {
		return errors.Join(failures...)
	}
	for _, resource := range everywhere {
		each(resource, metav1.NamespaceAll, remove(resource))
	}
	for _, resource := range inNamespace {
		each(resource, release.Namespace, remove(resource))
	}
	return errors.Join(failures...)
}
