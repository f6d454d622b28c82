package approval

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// selects reports whether labels meet all requirements of a selector. Like the admission policies, it evaluates the selector as stored, so that both
// agree also about an invalid one: a requirement with an unsupported operator excludes nothing.
func selects(s *v1alpha1.LabelSelector, labels map[string]string) bool {
	for key, want := range s.MatchLabels {
		if value, found := labels[key]; !found || value != want {
			return false
		}
	}
	for i := range s.MatchExpressions {
		if !requires(&s.MatchExpressions[i], labels) {
			return false
		}
	}
	return true
}

func requires(r *v1alpha1.LabelSelectorRequirement, labels map[string]string) bool {
	value, found := labels[r.Key]
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return found && slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return !found || !slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpExists:
		return found
	case metav1.LabelSelectorOpDoesNotExist:
		return !found
	default:
		return true
	}
}

func validateSelector(s *v1alpha1.LabelSelector, path *field.Path) field.ErrorList {
	var causes field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		at := path.Child("matchLabels").Key(key)
		causes = append(causes, validateLabelKey(key, at)...)
		causes = append(causes, validateLabelValue(s.MatchLabels[key], at)...)
	}
	for i, r := range s.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		causes = append(causes, validateLabelKey(r.Key, at.Child("key"))...)
		for j, value := range r.Values {
			causes = append(causes, validateLabelValue(value, at.Child("values").Index(j))...)
		}
		switch r.Operator {
		case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
			if len(r.Values) == 0 {
				causes = append(causes, field.Required(at.Child("values"), fmt.Sprintf("operator %s needs values", r.Operator)))
			}
		case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				causes = append(causes, field.Forbidden(at.Child("values"), fmt.Sprintf("operator %s takes no values", r.Operator)))
			}
		default:
			causes = append(causes, field.NotSupported(at.Child("operator"), r.Operator, []metav1.LabelSelectorOperator{
				metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
			}))
		}
	}
	return causes
}

func validateLabelKey(key string, at *field.Path) field.ErrorList {
	return invalids(at, key, validation.IsQualifiedName(key))
}

func validateLabelValue(value string, at *field.Path) field.ErrorList {
	return invalids(at, value, validation.IsValidLabelValue(value))
}

// invalids makes causes of the problems that a function of Kubernetes' validation package returned.
func invalids(at *field.Path, value string, problems []string) field.ErrorList {
	var causes field.ErrorList
	for _, problem := range problems {
		causes = append(causes, field.Invalid(at, shown(value), problem))
	}
	return causes
}
