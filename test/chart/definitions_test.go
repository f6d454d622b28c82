package chart

import (
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/vmstencil/stencil/test/controlplane"
)

// An API server rejects a definition with a rule that it cannot compile. Before 1.32, for example, the field namespace was __namespace__ only.
func TestTheOldestAPIServerUnderstandsTheRulesOfTheDefinitions(t *testing.T) {
	oldest := environment.MustBaseEnvSet(version.MajorMinor(1, 30))
	definitions, err := controlplane.ReadCRDs(filepath.Join(chartFolder(t), "files", "crds"))
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, definition := range definitions {
		for _, served := range definition.Spec.Versions {
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(served.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				t.Fatal(err)
			}
			root, err := schema.NewStructural(&internal)
			if err != nil {
				t.Fatal(err)
			}
			visitor := schema.Visitor{Structural: func(s *schema.Structural) bool {
				compiled, err := cel.Compile(s, model.SchemaDeclType(s, s == root), apiservercel.PerCallLimit, oldest, cel.NewExpressionsEnvLoader())
				if err != nil {
					t.Errorf("%s %s: %v", definition.Name, served.Name, err)
				}
				for i, rule := range compiled {
					rules++
					if rule.Error != nil {
						t.Errorf("%s %s: %s: %v", definition.Name, served.Name, s.XValidations[i].Rule, rule.Error)
					}
				}
				return false
			}}
			visitor.Visit(root)
		}
	}
	if rules == 0 {
		t.Error("no definition has a rule")
	}
}
