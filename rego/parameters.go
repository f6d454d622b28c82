package rego

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxParametersBytes is the length of the parameters, and of their schema, as JSON.
const maxParametersBytes = 256 << 10

var (
	parametersPath = field.NewPath("parameters")
	schemaPath     = field.NewPath("parametersSchema")
)

// checkParameters checks the schema and the parameters, and returns the parameters
// with the defaults of the schema.
func checkParameters(d Definition) (map[string]any, []Problem) {
	parameters := d.Parameters
	if parameters == nil {
		parameters = map[string]any{}
	}
	if size := jsonSize(parameters); size < 0 || size > maxParametersBytes {
		return nil, []Problem{{Code: CodeLimit, Field: parametersPath.String(), Message: fmt.Sprintf("must be JSON of at most %d bytes", maxParametersBytes)}}
	}
	if d.Schema == nil {
		return parameters, nil
	}
	if size := jsonSize(d.Schema); size < 0 || size > maxParametersBytes {
		return nil, []Problem{{Code: CodeLimit, Field: schemaPath.String(), Message: fmt.Sprintf("must be JSON of at most %d bytes", maxParametersBytes)}}
	}
	schema, props, problems := structuralSchema(d.Schema)
	if len(problems) > 0 {
		return nil, problems
	}
	completed, err := plainJSON(parameters)
	if err != nil {
		return nil, []Problem{{Code: CodeParameters, Field: parametersPath.String(), Message: err.Error()}}
	}
	defaulting.Default(completed, schema)
	undeclared := pruning.PruneWithOptions(runtime.DeepCopyJSON(completed), schema, false, structural.UnknownFieldPathOptions{
		TrackUnknownFieldPaths: true, ParentPath: []string{parametersPath.String()},
	})
	slices.Sort(undeclared)
	for _, path := range undeclared {
		problems = append(problems, Problem{Code: CodeParameters, Field: path, Message: "unknown field: parametersSchema does not have it"})
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, []Problem{{Code: CodeSchema, Field: schemaPath.String(), Message: err.Error()}}
	}
	problems = append(problems, fieldProblems(CodeParameters, validation.ValidateCustomResource(parametersPath, completed, validator))...)
	return completed, problems
}

// structuralSchema converts a schema like Kubernetes does for a CustomResourceDefinition.
func structuralSchema(given map[string]any) (*structural.Structural, *apiextensions.JSONSchemaProps, []Problem) {
	reject := func(err error) (*structural.Structural, *apiextensions.JSONSchemaProps, []Problem) {
		return nil, nil, []Problem{{Code: CodeSchema, Field: schemaPath.String(), Message: shorten(err.Error(), MaxMessageBytes)}}
	}
	text, err := json.Marshal(given)
	if err != nil {
		return reject(err)
	}
	var external apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &external); err != nil {
		return reject(err)
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, internal, nil); err != nil {
		return reject(err)
	}
	if internal.Type != "object" {
		return reject(errors.New(`the type must be "object"`))
	}
	schema, err := structural.NewStructural(internal)
	if err != nil {
		return reject(err)
	}
	if errs := structural.ValidateStructural(schemaPath, schema); len(errs) > 0 {
		return nil, nil, fieldProblems(CodeSchema, errs)
	}
	if usesValidationRules(schema) {
		return reject(errors.New("x-kubernetes-validations are not evaluated here; write the rule in Rego"))
	}
	return schema, internal, nil
}

func usesValidationRules(schema *structural.Structural) bool {
	found := false
	visitor := structural.Visitor{Structural: func(s *structural.Structural) bool {
		found = found || len(s.XValidations) > 0
		return false
	}}
	visitor.Visit(schema)
	return found
}

func fieldProblems(code string, errs field.ErrorList) []Problem {
	problems := make([]Problem, 0, len(errs))
	for _, err := range errs {
		problems = append(problems, Problem{Code: code, Field: err.Field, Message: shorten(err.ErrorBody(), MaxMessageBytes)})
	}
	return problems
}

func jsonSize(value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		return -1
	}
	return len(text)
}

// plainJSON copies a value, with the types that the libraries of Kubernetes expect.
func plainJSON(value map[string]any) (map[string]any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	copied := map[string]any{}
	if err := unmarshalIntegers(text, &copied); err != nil {
		return nil, err
	}
	return copied, nil
}

// parameterNames returns the names of the parameters of a policy, those that are set and those that its schema describes.
func parameterNames(d Definition) map[string]bool {
	names := map[string]bool{}
	for name := range d.Parameters {
		names[name] = true
	}
	properties, _ := d.Schema["properties"].(map[string]any)
	for name := range properties {
		names[name] = true
	}
	return names
}
