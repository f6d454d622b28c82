package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// kinds are those that virt-operator reads, in the order of KubeVirt's own bundle.
var kinds = []string{
	"CustomResourceDefinition", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Service", "Deployment",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "APIService", "NetworkPolicy", "ValidatingWebhookConfiguration",
}

// names are those that virt-operator requires of some objects.
var names = map[string]string{
	"Deployment/" + release + "-manager":                          release + "-controller",
	"RoleBinding/" + release + "-apiserver-authentication-reader": release + "-apiserver-auth-reader",
}

const (
	// protected is the name of the ConfigMap with the manifests that stencil-manager creates, and of the ClusterRole that permits it.
	protected = release + "-protected-objects"
	// protectedAnnotation and requiresAnnotation of package selfprotection.
	protectedAnnotation = "stencil.kubevirt.io/protected-objects"
	requiresAnnotation  = "stencil.kubevirt.io/requires-configmap"
	// definitions is the policy that denies deleting the CustomResourceDefinitions. virt-operator owns them here, and deletes them when it is
	// uninstalled.
	definitions = release + "-definitions"
)

// bundle returns the objects that virt-operator installs, of those that the chart renders.
func bundle(rendered []object) ([]object, error) {
	var bundled []object
	var manifests, role object
	for _, one := range rendered {
		clean(one)
		parenthesize(one)
		switch {
		case one.String() == "ConfigMap/"+protected:
			manifests = one.child("data")
		case one.kind() == "ConfigMap", one.kind() == "MutatingWebhookConfiguration", one.name() == definitions, filled(one):
		case slices.Contains(kinds, one.kind()):
			if name, ok := names[one.String()]; ok {
				one.child("metadata")["name"] = name
			}
			if one.String() == "ClusterRole/"+protected {
				role = one
			}
			bundled = append(bundled, one)
		default:
			return nil, fmt.Errorf("%s is of none of the kinds that virt-operator installs", one)
		}
	}
	if manifests == nil || role == nil {
		return nil, fmt.Errorf("the chart renders no ConfigMap and ClusterRole %s", protected)
	}
	if err := moveManifests(manifests, role); err != nil {
		return nil, err
	}
	slices.SortFunc(bundled, func(a, b object) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.kind()), slices.Index(kinds, b.kind())), strings.Compare(a.name(), b.name()))
	})
	return bundled, nil
}

// productLabels are what virt-operator writes to Deployments and their pods itself: from its own configuration, or not at all.
var productLabels = []string{"app.kubernetes.io/part-of", "app.kubernetes.io/version", "app.kubernetes.io/component"}

// clean removes the marks of Helm, and product labels of Deployments.
func clean(one object) {
	for _, metadata := range []object{one.child("metadata"), one.child("spec").child("template").child("metadata")} {
		delete(metadata.child("labels"), "app.kubernetes.io/managed-by")
		delete(metadata.child("labels"), "helm.sh/chart")
		if one.kind() == "Deployment" {
			for _, label := range productLabels {
				delete(metadata.child("labels"), label)
			}
		}
		delete(metadata.child("annotations"), "helm.sh/resource-policy")
	}
}

// parenthesize puts expressions of policies that are a string between parentheses. virt-operator removes the single quotes in which YAML has them.
func parenthesize(one object) {
	for _, item := range one.child("spec").list("variables") {
		variable, _ := item.(map[string]any)
		if text := object(variable).text("expression"); strings.HasPrefix(text, `"`) {
			variable["expression"] = "(" + text + ")"
		}
	}
}

// filled reports whether stencil-manager writes the content of an object. virt-operator would revert that.
func filled(one object) bool {
	switch one.kind() {
	case "ValidatingWebhookConfiguration":
		return len(one.list("webhooks")) == 0
	case "ClusterRoleBinding":
		return len(one.list("subjects")) == 0
	}
	return false
}

// moveManifests writes the manifests that virt-operator does not install to an annotation of the ClusterRole.
func moveManifests(manifests, role object) error {
	moved := map[string]string{}
	for key := range maps.Keys(manifests) {
		var one object
		if err := yaml.Unmarshal([]byte(manifests.text(key)), &one); err != nil {
			return fmt.Errorf("decoding %s: %w", key, err)
		}
		clean(one)
		if _, byManager := one.child("metadata").child("annotations")[requiresAnnotation]; !byManager && one.kind() != "MutatingWebhookConfiguration" && !filled(one) {
			continue
		}
		text, err := yaml.Marshal(one)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", one, err)
		}
		moved[key] = string(text)
	}
	text, err := yaml.Marshal(moved)
	if err != nil {
		return fmt.Errorf("encoding the protected objects: %w", err)
	}
	role.annotate(protectedAnnotation, string(text))
	return nil
}

// operatorPermissions returns the permissions that virt-operator needs besides its own: the API server permits it to create a role only if it
// has all permissions of the role, and a policy only if it can read the parameters of the policy.
func operatorPermissions(bundled []object, namespace string) []object {
	const name = release + "-operator"
	permissions := func(kind string) []object {
		var rules []any
		for _, one := range bundled {
			if one.kind() == kind {
				rules = append(rules, one.list("rules")...)
			}
		}
		metadata := map[string]any{"name": name}
		if kind == "Role" {
			metadata["namespace"] = namespace
		} else {
			// The parameters of policies are a ConfigMap.
			rules = append(rules, map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}})
		}
		return []object{
			{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules},
			{
				"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind + "Binding", "metadata": metadata,
				"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": "kubevirt-operator"}},
			},
		}
	}
	return append(permissions("ClusterRole"), permissions("Role")...)
}
