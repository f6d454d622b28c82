package approval

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// SystemNamespaces are never selected by an approval: a cluster must be able to repair itself. Stencil's own namespace is excluded as well; see
// Excluding.
func SystemNamespaces() []string { return []string{"kube-system", "kube-public", "kube-node-lease"} }

// coverage is where an approval is enforced.
type coverage struct {
	named    map[string]bool
	selector *v1alpha1.LabelSelector
	// circular reports whether the selector uses the label that Stencil sets on selected namespaces. Only an approval that was stored without
	// validation does.
	circular bool
	excluded map[string]bool
}

func newCoverage(spec *v1alpha1.TemplateApprovalSpec, excluded []string) coverage {
	c := coverage{named: map[string]bool{}, selector: spec.NamespaceSelector, excluded: map[string]bool{}}
	c.circular = c.selector != nil && len(validateNotCircular(c.selector, nil)) > 0
	for _, namespace := range spec.Namespaces {
		c.named[namespace] = true
	}
	for _, namespace := range append(SystemNamespaces(), excluded...) {
		c.excluded[namespace] = true
	}
	return c
}

// SelectsNamespace reports whether the approval selects the namespace with that name and those labels.
func (a *Approval) SelectsNamespace(namespace string, labels map[string]string) bool {
	c := &a.coverage
	if c.circular {
		labels = maps.Clone(labels)
		delete(labels, v1alpha1.LabelGoverned)
	}
	return !c.excluded[namespace] && (c.named[namespace] || c.selector != nil && selects(c.selector, labels))
}

// SelectsByLabels reports whether the approval selects namespaces by their labels.
func (a *Approval) SelectsByLabels() bool { return a.coverage.selector != nil }

func validateCoverage(spec *v1alpha1.TemplateApprovalSpec, path *field.Path) field.ErrorList {
	var causes field.ErrorList
	if len(spec.Namespaces) == 0 && spec.NamespaceSelector == nil {
		causes = append(causes, field.Required(path.Child("namespaces"), "namespaces or namespaceSelector must say where the approval is enforced"))
	}
	for i, namespace := range spec.Namespaces {
		at := path.Child("namespaces").Index(i)
		causes = append(causes, invalids(at, namespace, validation.IsDNS1123Label(namespace))...)
		if slices.Contains(SystemNamespaces(), namespace) {
			causes = append(causes, field.Invalid(at, namespace, fmt.Sprintf("%s is never selected by an approval", namespace)))
		}
		if slices.Contains(spec.Namespaces[:i], namespace) {
			causes = append(causes, field.Duplicate(at, namespace))
		}
	}
	if spec.NamespaceSelector != nil {
		at := path.Child("namespaceSelector")
		causes = append(causes, validateSelector(spec.NamespaceSelector, at)...)
		causes = append(causes, validateNotCircular(spec.NamespaceSelector, at)...)
	}
	return causes
}

// validateNotCircular rejects a selector that uses the label that Stencil sets on selected namespaces: such an approval would select a namespace
// because it is selected, or alternate forever.
func validateNotCircular(s *v1alpha1.LabelSelector, path *field.Path) field.ErrorList {
	var causes field.ErrorList
	reject := func(at *field.Path) {
		causes = append(causes, field.Invalid(at, v1alpha1.LabelGoverned, "Stencil sets this label on the namespaces that an approval selects, so an approval cannot select namespaces by it"))
	}
	if _, found := s.MatchLabels[v1alpha1.LabelGoverned]; found {
		reject(path.Child("matchLabels").Key(v1alpha1.LabelGoverned))
	}
	for i := range s.MatchExpressions {
		if s.MatchExpressions[i].Key == v1alpha1.LabelGoverned {
			reject(path.Child("matchExpressions").Index(i).Child("key"))
		}
	}
	return causes
}
