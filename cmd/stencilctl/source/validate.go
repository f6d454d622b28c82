package source

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Limits in the definition of VirtualMachinePolicy.
const (
	maxTimeoutMilliseconds = 500
	maxTests               = 64
)

// validate returns what an API server would reject in a manifest by the definition of
// VirtualMachinePolicy. Limits on the length of lists and strings are left to the API server,
// except the limit on tests.
func validate(policy *v1alpha1.VirtualMachinePolicy) field.ErrorList {
	var errs field.ErrorList
	name := field.NewPath("metadata", "name")
	if policy.Name == "" {
		errs = append(errs, field.Required(name, ""))
	} else {
		for _, problem := range validation.IsDNS1123Subdomain(policy.Name) {
			errs = append(errs, field.Invalid(name, policy.Name, problem))
		}
	}
	at, spec := field.NewPath("spec"), &policy.Spec
	errs = append(errs, oneOf(at.Child("enforcement"), spec.Enforcement, "", v1alpha1.EnforcementDeny, v1alpha1.EnforcementWarn, v1alpha1.EnforcementAudit)...)
	errs = append(errs, oneOf(at.Child("failureMode"), spec.FailureMode, "", v1alpha1.FailureModeDeny, v1alpha1.FailureModeAllow)...)
	if spec.TimeoutMilliseconds < 0 || spec.TimeoutMilliseconds > maxTimeoutMilliseconds {
		errs = append(errs, field.Invalid(at.Child("timeoutMilliseconds"), spec.TimeoutMilliseconds, "must be from 1 to 500"))
	}
	errs = append(errs, validateMatch(at.Child("match"), &spec.Match)...)
	return append(errs, validateTests(at.Child("tests"), spec.Tests)...)
}

func oneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	named := slices.DeleteFunc(slices.Clone(allowed), func(each T) bool { return each == "" })
	return field.ErrorList{field.NotSupported(at, value, named)}
}

func validateMatch(at *field.Path, match *v1alpha1.PolicyMatch) field.ErrorList {
	var errs field.ErrorList
	for i, operation := range match.Operations {
		errs = append(errs, oneOf(at.Child("operations").Index(i), operation,
			v1alpha1.PolicyOperationCreate, v1alpha1.PolicyOperationUpdate, v1alpha1.PolicyOperationDelete)...)
	}
	for i, kind := range match.Kinds {
		errs = append(errs, oneOf(at.Child("kinds").Index(i), kind,
			v1alpha1.PolicyKindVirtualMachine, v1alpha1.PolicyKindVirtualMachineTemplate, v1alpha1.PolicyKindVirtualMachineTemplateRequest,
			v1alpha1.PolicyKindVirtualMachineTemplateImport, v1alpha1.PolicyKindVirtualMachineTemplateExport)...)
	}
	templates := at.Child("templates")
	if len(match.Templates) > 0 && len(match.Kinds) > 0 && !slices.Contains(match.Kinds, v1alpha1.PolicyKindVirtualMachine) {
		errs = append(errs, field.Forbidden(templates, "templates are those of VirtualMachines, which kinds does not list"))
	}
	for i, template := range match.Templates {
		if template.Namespace == "" {
			errs = append(errs, field.Required(templates.Index(i).Child("namespace"), ""))
		}
		if template.Name != "" && template.Selector != nil {
			errs = append(errs, field.Forbidden(templates.Index(i).Child("name"), "only one of name and selector may be given"))
		}
	}
	if match.Subjects != nil {
		subjects := at.Child("subjects")
		errs = append(errs, validateSubjects(subjects.Child("include"), match.Subjects.Include)...)
		errs = append(errs, validateSubjects(subjects.Child("exclude"), match.Subjects.Exclude)...)
	}
	return errs
}

func validateSubjects(at *field.Path, subjects []v1alpha1.Subject) field.ErrorList {
	var errs field.ErrorList
	for i, subject := range subjects {
		errs = append(errs, oneOf(at.Index(i).Child("kind"), subject.Kind,
			v1alpha1.SubjectKindUser, v1alpha1.SubjectKindGroup, v1alpha1.SubjectKindServiceAccount)...)
		if subject.Name == "" {
			errs = append(errs, field.Required(at.Index(i).Child("name"), ""))
		}
		if (subject.Kind == v1alpha1.SubjectKindServiceAccount) != (subject.Namespace != "") {
			errs = append(errs, field.Invalid(at.Index(i).Child("namespace"), subject.Namespace, "a ServiceAccount needs a namespace, a User or Group takes none"))
		}
	}
	return errs
}

func validateTests(at *field.Path, tests []v1alpha1.PolicyTest) field.ErrorList {
	var errs field.ErrorList
	if len(tests) > maxTests {
		errs = append(errs, field.TooMany(at, len(tests), maxTests))
	}
	names := map[string]bool{}
	for i := range tests {
		test, here := &tests[i], at.Index(i)
		switch {
		case test.Name == "":
			errs = append(errs, field.Required(here.Child("name"), ""))
		case names[test.Name]:
			errs = append(errs, field.Duplicate(here.Child("name"), test.Name))
		}
		names[test.Name] = true
		if test.Input.Object == nil && test.Input.OldObject == nil {
			errs = append(errs, field.Required(here.Child("input", "object"), "object or, for a DELETE, oldObject must be given"))
		}
		errs = append(errs, oneOf(here.Child("input", "operation"), test.Input.Operation, "",
			v1alpha1.PolicyOperationCreate, v1alpha1.PolicyOperationUpdate, v1alpha1.PolicyOperationDelete)...)
	}
	return errs
}
