package approval

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// subjects are users and groups, by the names that authentication returns.
type subjects struct {
	users  map[string]bool
	groups map[string]bool
}

func newSubjects(listed []v1alpha1.Subject) subjects {
	s := subjects{users: map[string]bool{}, groups: map[string]bool{}}
	for _, subject := range listed {
		switch subject.Kind {
		case v1alpha1.SubjectKindUser:
			s.users[subject.Name] = true
		case v1alpha1.SubjectKindGroup:
			s.groups[subject.Name] = true
		case v1alpha1.SubjectKindServiceAccount:
			s.users["system:serviceaccount:"+subject.Namespace+":"+subject.Name] = true
		}
	}
	return s
}

func (s subjects) include(user authenticationv1.UserInfo) bool {
	return s.users[user.Username] || slices.ContainsFunc(user.Groups, func(group string) bool { return s.groups[group] })
}

func validateSubjects(listed []v1alpha1.Subject, path *field.Path) field.ErrorList {
	var causes field.ErrorList
	for i, subject := range listed {
		at := path.Index(i)
		if subject.Name == "" {
			causes = append(causes, field.Required(at.Child("name"), ""))
		}
		switch subject.Kind {
		case v1alpha1.SubjectKindUser, v1alpha1.SubjectKindGroup:
			if subject.Namespace != "" {
				causes = append(causes, field.Forbidden(at.Child("namespace"), "only a ServiceAccount has a namespace"))
			}
		case v1alpha1.SubjectKindServiceAccount:
			if subject.Namespace == "" {
				causes = append(causes, field.Required(at.Child("namespace"), "a ServiceAccount needs a namespace"))
			} else {
				causes = append(causes, invalids(at.Child("namespace"), subject.Namespace, validation.IsDNS1123Label(subject.Namespace))...)
			}
			if subject.Name != "" {
				causes = append(causes, invalids(at.Child("name"), subject.Name, validation.IsDNS1123Subdomain(subject.Name))...)
			}
		default:
			causes = append(causes, field.NotSupported(at.Child("kind"), subject.Kind, []v1alpha1.SubjectKind{
				v1alpha1.SubjectKindUser, v1alpha1.SubjectKindGroup, v1alpha1.SubjectKindServiceAccount,
			}))
		}
	}
	return causes
}
