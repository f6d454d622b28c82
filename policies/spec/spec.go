package spec

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// DefaultTimeout is the timeout of one evaluation if a policy does not set it.
const DefaultTimeout = 100 * time.Millisecond

// Spec is a policy in the types of the engine.
type Spec struct {
	// Definition is the definition to compile.
	Definition rego.Definition
	// Cases are the policy's tests.
	Cases []suite.Case
	// Match, Enforcement, FailureMode and Timeout are the fields of a policyset.Entry.
	Match       policyset.Match
	Enforcement policyset.Enforcement
	FailureMode policyset.FailureMode
	Timeout     time.Duration
}

// Entry returns the entry of a set for the policy with the settings of the spec.
func (s *Spec) Entry(policy policyset.Policy) policyset.Entry {
	return policyset.Entry{
		Policy: policy, Match: s.Match, Enforcement: s.Enforcement, FailureMode: s.FailureMode, Timeout: s.Timeout,
	}
}

// Read converts a policy, which it does not change or retain. It returns all errors;
// the spec holds the fields that could be read.
func Read(policy *v1alpha1.VirtualMachinePolicy) (*Spec, field.ErrorList) {
	at, from := field.NewPath("spec"), &policy.Spec
	r := &reader{}
	s := &Spec{
		Definition: rego.Definition{
			Name:       policy.Name,
			Source:     from.Rego,
			Parameters: r.object(at.Child("parameters"), from.Parameters),
			Schema:     r.object(at.Child("parametersSchema"), from.ParametersSchema),
			Kinds:      kinds(from.Match.Kinds),
			Data:       r.references(at.Child("data"), from.Data),
		},
		Match:       r.match(at.Child("match"), &from.Match),
		Enforcement: policyset.EnforcementDeny,
		FailureMode: policyset.FailureModeDeny,
		Timeout:     DefaultTimeout,
	}
	if s.Definition.Parameters == nil {
		// A policy without parameters has none, and may not read any.
		s.Definition.Parameters = map[string]any{}
	}
	if from.Enforcement != "" {
		s.Enforcement = policyset.Enforcement(from.Enforcement)
	}
	if from.FailureMode != "" {
		s.FailureMode = policyset.FailureMode(from.FailureMode)
	}
	if from.TimeoutMilliseconds > 0 {
		s.Timeout = time.Duration(from.TimeoutMilliseconds) * time.Millisecond
	}
	for i := range from.Tests {
		s.Cases = append(s.Cases, r.test(at.Child("tests").Index(i), &from.Tests[i], s.Definition.Kinds))
	}
	return s, r.problems
}

// reader collects errors.
type reader struct{ problems field.ErrorList }

// object decodes a JSON object; it returns nil if there is none. Whole numbers become
// int64.
func (r *reader) object(at *field.Path, raw *runtime.RawExtension) map[string]any {
	if raw == nil || len(raw.Raw) == 0 {
		return nil
	}
	var value map[string]any
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		r.problems = append(r.problems, field.Invalid(at, field.OmitValueType{}, "must be a JSON object"))
		return nil
	}
	return value
}

func (r *reader) references(at *field.Path, listed []v1alpha1.PolicyData) []rego.Reference {
	var all []rego.Reference
	for i, each := range listed {
		one := rego.Reference{Name: each.Name}
		if from := each.ConfigMapKey; from != nil {
			one.ConfigMap, one.Key = from.Name, from.Key
		}
		if from := each.VirtualMachines; from != nil {
			one.VirtualMachines = &rego.VirtualMachines{}
			if selector := r.selector(at.Index(i).Child("virtualMachines", "selector"), from.Selector); selector != nil {
				one.VirtualMachines.Selector = selector.String()
			}
		}
		if from := each.ResourceQuota; from != nil {
			one.ResourceQuota = from.Name
		}
		all = append(all, one)
	}
	return all
}

func kinds(listed []v1alpha1.PolicyKind) []string {
	if len(listed) == 0 {
		return []string{rego.KindVirtualMachine}
	}
	return texts(listed)
}

// texts converts strings of another type to plain strings.
func texts[T ~string](list []T) []string {
	if list == nil {
		return nil
	}
	plain := make([]string, len(list))
	for i, each := range list {
		plain[i] = string(each)
	}
	return plain
}

func (r *reader) match(at *field.Path, from *v1alpha1.PolicyMatch) policyset.Match {
	m := policyset.Match{
		Operations: texts(from.Operations),
		Kinds:      kinds(from.Kinds),
		Namespaces: r.selector(at.Child("namespaceSelector"), from.NamespaceSelector),
		Objects:    r.selector(at.Child("objectSelector"), from.ObjectSelector),
	}
	if len(m.Operations) == 0 {
		m.Operations = []string{string(v1alpha1.PolicyOperationCreate), string(v1alpha1.PolicyOperationUpdate)}
	}
	for i := range from.Templates {
		one := &from.Templates[i]
		m.Templates = append(m.Templates, policyset.TemplateMatch{
			Namespace: one.Namespace,
			Name:      one.Name,
			Selector:  r.selector(at.Child("templates").Index(i).Child("selector"), one.Selector),
		})
	}
	if from.Subjects != nil {
		m.Include, m.Exclude = from.Subjects.Include, from.Subjects.Exclude
	}
	return m
}

// selector returns nil, which selects everything, for a selector that is not given.
func (r *reader) selector(at *field.Path, from *v1alpha1.LabelSelector) labels.Selector {
	if from == nil {
		return nil
	}
	plain := &metav1.LabelSelector{MatchLabels: from.MatchLabels}
	for _, each := range from.MatchExpressions {
		plain.MatchExpressions = append(plain.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: each.Key, Operator: each.Operator, Values: each.Values,
		})
	}
	selector, err := metav1.LabelSelectorAsSelector(plain)
	if err != nil {
		r.problems = append(r.problems, field.Invalid(at, field.OmitValueType{}, err.Error()))
		// A caller that uses the selector despite the error fails closed.
		return labels.Everything()
	}
	return selector
}
