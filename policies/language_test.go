package policies_test

import (
	"slices"
	"testing"

	celgo "github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// oldest is the oldest API server that the chart accepts.
var oldest = version.MajorMinor(1, 30)

// The compiler is that of the API server, configured with the functions of the oldest one.
func TestTheOldestAPIServerUnderstandsEveryExpression(t *testing.T) {
	for name, policy := range all(t) {
		t.Run(name, func(t *testing.T) {
			declared := cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
			compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(oldest))
			if err != nil {
				t.Fatal(err)
			}
			check := func(compiled cel.CompilationResult) {
				t.Helper()
				if compiled.Error != nil {
					t.Errorf("%s: %v", compiled.ExpressionAccessor.GetExpression(), compiled.Error)
				}
			}
			// Conditions are evaluated without the variables.
			bare := cel.NewCompiler(environment.MustBaseEnvSet(oldest))
			for _, condition := range policy.Spec.MatchConditions {
				check(bare.CompileCELExpression(expression{text: condition.Expression, yields: celgo.BoolType}, declared, environment.NewExpressions))
			}
			for _, variable := range policy.Spec.Variables {
				check(compiler.CompileAndStoreVariable(expression{name: variable.Name, text: variable.Expression, yields: celgo.AnyType}, declared, environment.NewExpressions))
			}
			for _, validation := range policy.Spec.Validations {
				check(compiler.CompileCELExpression(expression{text: validation.Expression, yields: celgo.BoolType}, declared, environment.NewExpressions))
				if validation.MessageExpression != "" {
					// A message must not and cannot use the authorizer.
					declared := cel.OptionalVariableDeclarations{HasParams: declared.HasParams}
					check(compiler.CompileCELExpression(expression{text: validation.MessageExpression, yields: celgo.StringType}, declared, environment.NewExpressions))
				}
			}
		})
	}
}

// expression is the input of the API server's compiler.
type expression struct {
	name, text string
	yields     *celgo.Type
}

func (e expression) GetName() string            { return e.name }
func (e expression) GetExpression() string      { return e.text }
func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{e.yields} }

// CEL has no shared functions. A variable that several policies define under one name must be the same in all of them, so that a fix in
// one is not missed in the others.
func TestVariablesOfOneNameHaveOneMeaning(t *testing.T) {
	type definition struct{ policy, expression string }
	known := map[string]definition{}
	for name, policy := range all(t) {
		for _, variable := range policy.Spec.Variables {
			before, ok := known[variable.Name]
			if !ok {
				known[variable.Name] = definition{policy: name, expression: variable.Expression}
				continue
			}
			if before.expression != variable.Expression {
				t.Errorf("%s of %s is\n%s\nand of %s\n%s", variable.Name, name, variable.Expression, before.policy, before.expression)
			}
		}
	}
}

// The settings that the installer of the policies replaces must exist, with default values: no user is exempt and no entry point is open.
func TestSettingsAreClosed(t *testing.T) {
	want := map[string]string{
		"stencilNamespace":  "'stencil-system'",
		"managerUser":       "'system:serviceaccount:stencil-system:stencil-manager'",
		"uninstallUser":     "'system:serviceaccount:stencil-system:stencil-uninstall'",
		"exemptUsers":       "[]",
		"exemptAccounts":    "[]",
		"openEntryPoints":   "[]",
		"ownWebhooks":       "{}",
		"ownAddresses":      "[]",
		"ownPolicyWebhooks": "''",
		"writableKeys":      "[]",
	}
	found := map[string]bool{}
	for name, policy := range all(t) {
		for _, variable := range policy.Spec.Variables {
			expression, isSetting := want[variable.Name]
			if !isSetting {
				continue
			}
			found[variable.Name] = true
			if variable.Expression != expression {
				t.Errorf("%s of %s is %s, want %s", variable.Name, name, variable.Expression, expression)
			}
		}
	}
	for name := range want {
		if !found[name] {
			t.Errorf("no policy has the setting %s", name)
		}
	}
}

// An API server that has just started does not serve custom resources, and denies every request that a policy with such a parameter
// matches. A policy is also evaluated once for each parameter.
func TestParametersAreTheIndexAlone(t *testing.T) {
	for name, policy := range all(t) {
		if policy.Spec.ParamKind == nil {
			continue
		}
		want := admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
		if *policy.Spec.ParamKind != want {
			t.Errorf("the parameters of %s are %v", name, *policy.Spec.ParamKind)
		}
		if len(policy.Spec.MatchConditions) == 0 {
			t.Errorf("%s has no condition", name)
		}
	}
}

// On UPDATE of a Namespace namespaceSelector uses the new labels and namespaceObject is null.
func TestPoliciesOnNamespacesHaveNoSelector(t *testing.T) {
	for name, policy := range all(t) {
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			if slices.Contains(rule.Resources, "namespaces") && policy.Spec.MatchConstraints.NamespaceSelector != nil {
				t.Errorf("%s has a namespaceSelector", name)
			}
		}
	}
}
