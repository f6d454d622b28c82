package policies_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	celgo "github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
)

// evaluated is a policy that is compiled in the same way as in the API server.
type evaluated struct {
	name string
	// validations are the validations of the policy; evaluator those of further expressions.
	validations, messages, evaluator cel.ConditionEvaluator
	static                           []string
}

// evaluate compiles a policy, with further expressions that may name its variables. settings replace variables.
func evaluate(t *testing.T, name string, settings map[string]string, expressions ...string) evaluated {
	t.Helper()
	policy, found := all(t)[name]
	if !found {
		t.Fatalf("there is no policy %s", name)
	}
	declared := cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(oldest))
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range policy.Spec.Variables {
		text, found := settings[variable.Name]
		if !found {
			text = variable.Expression
		}
		result := compiler.CompileAndStoreVariable(expression{name: variable.Name, text: text, yields: celgo.AnyType}, declared, environment.StoredExpressions)
		if result.Error != nil {
			t.Fatal(result.Error)
		}
	}
	compile := func(yields *celgo.Type, texts ...string) cel.ConditionEvaluator {
		var accessors []cel.ExpressionAccessor
		for _, text := range texts {
			accessors = append(accessors, expression{text: text, yields: yields})
		}
		compiled := compiler.CompileCondition(accessors, declared, environment.StoredExpressions)
		for _, err := range compiled.CompilationErrors() {
			t.Fatal(err)
		}
		return compiled
	}
	e := evaluated{name: name, evaluator: compile(celgo.BoolType, expressions...)}
	var validations, messages []string
	for _, validation := range policy.Spec.Validations {
		e.static = append(e.static, validation.Message)
		validations = append(validations, validation.Expression)
		text := validation.MessageExpression
		if text == "" {
			text = "''"
		}
		messages = append(messages, text)
	}
	e.validations, e.messages = compile(celgo.BoolType, validations...), compile(celgo.StringType, messages...)
	return e
}

// request is a request that a policy evaluates.
type request struct {
	operation         admission.Operation
	user              user.Info
	namespace         *corev1.Namespace
	resource, name    string
	object, oldObject map[string]any
	params            runtime.Object
	dryRun            bool
	// bypasses are the users with verb bypass on TemplateApprovals.
	bypasses bypasses
	// authorizer is used instead of bypasses, if it is set.
	authorizer authorizer.UnconditionalAuthorizer
	// of is the kind and its resource, if it is neither VirtualMachines nor the resource namespaces.
	of *kindOf
}

type kindOf struct {
	kind     schema.GroupVersionKind
	resource string
}

func (e evaluated) run(ctx context.Context, evaluator cel.ConditionEvaluator, r request, budget int64) ([]cel.EvaluationResult, int64, error) {
	gvk := schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}
	gvr := schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	namespace := ""
	if r.namespace != nil {
		namespace = r.namespace.Name
	}
	if r.resource == "namespaces" {
		gvk, gvr, namespace = corev1.SchemeGroupVersion.WithKind("Namespace"), corev1.SchemeGroupVersion.WithResource("namespaces"), ""
	}
	if r.of != nil {
		gvk, gvr = r.of.kind, r.of.kind.GroupVersion().WithResource(r.of.resource)
	}
	var object, old runtime.Object
	if r.object != nil {
		object = &unstructured.Unstructured{Object: r.object}
	}
	if r.oldObject != nil {
		old = &unstructured.Unstructured{Object: r.oldObject}
	}
	attributes := admission.NewAttributesRecord(object, old, gvk, namespace, r.name, gvr, "", r.operation, nil, r.dryRun, r.user)
	versioned, err := admission.NewVersionedAttributes(attributes, gvk, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("preparing the request: %w", err)
	}
	var permissions authorizer.UnconditionalAuthorizer = r.bypasses
	if r.authorizer != nil {
		permissions = r.authorizer
	}
	request := cel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(gvr), metav1.GroupVersionKind(gvk))
	return evaluator.ForInput(ctx, versioned, request, cel.OptionalVariableBindings{VersionedParams: r.params, Authorizer: permissions}, cel.CreateNamespaceObject(r.namespace), budget)
}

// decide returns the message if the policy denies the request, "" if it does not, and the remaining budget.
func (e evaluated) decide(t *testing.T, r request) (denial string, left int64) {
	t.Helper()
	results, left, err := e.run(t.Context(), e.validations, r, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatalf("%s: %v", e.name, err)
	}
	for i, result := range results {
		if result.Error != nil {
			t.Fatalf("%s: %v", e.name, result.Error)
		}
		if result.EvalResult.Value() == true {
			continue
		}
		messages, after, err := e.run(t.Context(), e.messages, r, left)
		if err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		// A message that cannot be built is replaced by the static one.
		if messages[i].Error == nil {
			if text, _ := messages[i].EvalResult.Value().(string); text != "" {
				return text, after
			}
		}
		return e.static[i], after
	}
	return "", left
}

// holds returns the result of the first of the further expressions.
func (e evaluated) holds(t *testing.T, r request) bool {
	t.Helper()
	results, _, err := e.run(t.Context(), e.evaluator, r, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatalf("%s: %v", e.name, err)
	}
	if results[0].Error != nil {
		t.Fatalf("%s: %v", e.name, results[0].Error)
	}
	return results[0].EvalResult.Value() == true
}

// bypasses are users with verb bypass on TemplateApprovals, which they need in the whole cluster. Those that an entry with wildcard names have every verb.
// No user has any other permission.
type bypasses []string

// wildcard begins the entry of a user that has every verb.
const wildcard = "*:"

func (b bypasses) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(b, wildcard+a.GetUser().GetName()) && a.GetNamespace() == "" {
		return authorizer.DecisionAllow, "", nil
	}
	if a.GetVerb() == "bypass" && a.GetAPIGroup() == "stencil.kubevirt.io" && a.GetResource() == "templateapprovals" && a.GetNamespace() == "" && a.GetName() == "" &&
		slices.Contains(b, a.GetUser().GetName()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}
