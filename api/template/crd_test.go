package template_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	subresourcesv1alpha1 "github.com/vmstencil/stencil/api/subresources/v1alpha1"
	subresourcesv1beta1 "github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/api/template/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// definition is the part of a CustomResourceDefinition that these tests check.
type definition struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind       string   `json:"kind"`
			Plural     string   `json:"plural"`
			ShortNames []string `json:"shortNames"`
		} `json:"names"`
		Scope      string         `json:"scope"`
		Conversion map[string]any `json:"conversion"`
		Versions   []version      `json:"versions"`
	} `json:"spec"`
}

type version struct {
	Name                     string         `json:"name"`
	Served                   bool           `json:"served"`
	Storage                  bool           `json:"storage"`
	Deprecated               bool           `json:"deprecated"`
	DeprecationWarning       string         `json:"deprecationWarning"`
	Schema                   map[string]any `json:"schema"`
	Subresources             map[string]any `json:"subresources"`
	AdditionalPrinterColumns []column       `json:"additionalPrinterColumns"`
}

type column struct {
	Name     string `json:"name"`
	JSONPath string `json:"jsonPath"`
}

func TestDefinitionsAreThePublishedOnes(t *testing.T) {
	ready := column{Name: "Ready", JSONPath: `.status.conditions[?(@.type=="Ready")].status`}
	// The column of Stencil, after the published columns.
	sources := column{Name: "Sources", JSONPath: `.status.conditions[?(@.type=="SourcesReady")].reason`}
	age := column{Name: "Age", JSONPath: ".metadata.creationTimestamp"}

	for name, tc := range map[string]struct {
		file, kind, plural string
		shortNames         []string
		columns            []column
	}{
		"templates": {
			file: "template.kubevirt.io_virtualmachinetemplates.yaml", kind: "VirtualMachineTemplate", plural: "virtualmachinetemplates",
			shortNames: []string{"vmt", "vmts"}, columns: []column{age, ready, sources},
		},
		"requests": {
			file: "template.kubevirt.io_virtualmachinetemplaterequests.yaml", kind: "VirtualMachineTemplateRequest", plural: "virtualmachinetemplaterequests",
			shortNames: []string{"vmtr", "vmtrs"}, columns: []column{
				{Name: "Template", JSONPath: ".status.templateRef.name"}, age, ready,
				{Name: "Progressing", JSONPath: `.status.conditions[?(@.type=="Progressing")].status`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join("..", "..", "charts", "stencil", "files", "crds", tc.file))
			if err != nil {
				t.Fatal(err)
			}
			var got definition
			if err := yaml.Unmarshal(content, &got); err != nil {
				t.Fatal(err)
			}
			names := got.Spec.Names
			if got.Spec.Group != "template.kubevirt.io" || names.Kind != tc.kind || names.Plural != tc.plural || got.Spec.Scope != "Namespaced" {
				t.Errorf("got %s of %s, called %s, scope %s", names.Kind, got.Spec.Group, names.Plural, got.Spec.Scope)
			}
			if diff := cmp.Diff(tc.shortNames, names.ShortNames); diff != "" {
				t.Errorf("short names (-want +got):\n%s", diff)
			}
			if got.Spec.Conversion != nil {
				t.Errorf("conversion is %v, want the default, None", got.Spec.Conversion)
			}
			if policy := got.Metadata.Annotations["helm.sh/resource-policy"]; policy != "keep" {
				t.Errorf("helm's resource policy is %q, so that an uninstall would delete every template", policy)
			}
			if len(got.Spec.Versions) != 2 {
				t.Fatalf("got %d versions, want 2", len(got.Spec.Versions))
			}
			alpha, beta := got.Spec.Versions[0], got.Spec.Versions[1]
			if alpha.Name != "v1alpha1" || !alpha.Served || alpha.Storage || !alpha.Deprecated || alpha.DeprecationWarning == "" {
				t.Errorf("%s: served %v, stored %v, deprecated %v %q", alpha.Name, alpha.Served, alpha.Storage, alpha.Deprecated, alpha.DeprecationWarning)
			}
			if beta.Name != "v1beta1" || !beta.Served || !beta.Storage || beta.Deprecated {
				t.Errorf("%s: served %v, stored %v, deprecated %v", beta.Name, beta.Served, beta.Storage, beta.Deprecated)
			}
			if diff := cmp.Diff(alpha.Schema, beta.Schema); diff != "" {
				t.Errorf("the schemas differ (-v1alpha1 +v1beta1):\n%s", diff)
			}
			for _, v := range got.Spec.Versions {
				if diff := cmp.Diff(tc.columns, v.AdditionalPrinterColumns); diff != "" {
					t.Errorf("columns of %s (-want +got):\n%s", v.Name, diff)
				}
				if v.Subresources["status"] == nil {
					t.Errorf("%s has no status subresource", v.Name)
				}
			}
		})
	}
}

// These conversions compile only while the versions consist of the same fields.
var (
	_ = v1beta1.VirtualMachineTemplate(v1alpha1.VirtualMachineTemplate{})
	_ = v1beta1.VirtualMachineTemplateRequest(v1alpha1.VirtualMachineTemplateRequest{})
	_ = subresourcesv1beta1.VirtualMachineTemplate(subresourcesv1alpha1.VirtualMachineTemplate{})
	_ = subresourcesv1beta1.ProcessOptions(subresourcesv1alpha1.ProcessOptions{})
	_ = subresourcesv1beta1.ProcessedVirtualMachineTemplate(subresourcesv1alpha1.ProcessedVirtualMachineTemplate{})
)

func TestVersionsHaveTheSameJSON(t *testing.T) {
	for name, tc := range map[string]struct{ alpha, beta any }{
		"VirtualMachineTemplate":                       {v1alpha1.VirtualMachineTemplate{}, v1beta1.VirtualMachineTemplate{}},
		"VirtualMachineTemplateRequest":                {v1alpha1.VirtualMachineTemplateRequest{}, v1beta1.VirtualMachineTemplateRequest{}},
		"subresources VirtualMachineTemplate":          {subresourcesv1alpha1.VirtualMachineTemplate{}, subresourcesv1beta1.VirtualMachineTemplate{}},
		"subresources ProcessOptions":                  {subresourcesv1alpha1.ProcessOptions{}, subresourcesv1beta1.ProcessOptions{}},
		"subresources ProcessedVirtualMachineTemplate": {subresourcesv1alpha1.ProcessedVirtualMachineTemplate{}, subresourcesv1beta1.ProcessedVirtualMachineTemplate{}},
	} {
		t.Run(name, func(t *testing.T) {
			alpha, beta := reflect.TypeOf(tc.alpha), reflect.TypeOf(tc.beta)
			for i := range alpha.NumField() {
				if got, want := alpha.Field(i).Tag, beta.Field(i).Tag; got != want {
					t.Errorf("field %s: got tag %q, want %q", alpha.Field(i).Name, got, want)
				}
			}
		})
	}
}

func TestSchemesKnowAllKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme, subresourcesv1alpha1.AddToScheme, subresourcesv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for want, object := range map[string]runtime.Object{
		"template.kubevirt.io/v1alpha1, Kind=VirtualMachineTemplate":                      &v1alpha1.VirtualMachineTemplate{},
		"template.kubevirt.io/v1alpha1, Kind=VirtualMachineTemplateRequestList":           &v1alpha1.VirtualMachineTemplateRequestList{},
		"template.kubevirt.io/v1beta1, Kind=VirtualMachineTemplateList":                   &v1beta1.VirtualMachineTemplateList{},
		"template.kubevirt.io/v1beta1, Kind=VirtualMachineTemplateRequest":                &v1beta1.VirtualMachineTemplateRequest{},
		"subresources.template.kubevirt.io/v1alpha1, Kind=ProcessOptions":                 &subresourcesv1alpha1.ProcessOptions{},
		"subresources.template.kubevirt.io/v1beta1, Kind=ProcessedVirtualMachineTemplate": &subresourcesv1beta1.ProcessedVirtualMachineTemplate{},
		"subresources.template.kubevirt.io/v1beta1, Kind=VirtualMachineTemplate":          &subresourcesv1beta1.VirtualMachineTemplate{},
	} {
		kinds, _, err := scheme.ObjectKinds(object)
		if err != nil || len(kinds) != 1 || kinds[0].String() != want {
			t.Errorf("got %v (%v), want %s alone", kinds, err, want)
		}
	}
}

func TestEmptyFieldsAreLeftOut(t *testing.T) {
	for want, object := range map[string]any{
		`{"spec":{"virtualMachine":null}}`:  v1beta1.VirtualMachineTemplate{},
		`{"spec":{"virtualMachineRef":{}}}`: v1beta1.VirtualMachineTemplateRequest{},
		`{}`:                                subresourcesv1beta1.ProcessOptions{},
		`{"virtualMachine":null}`:           subresourcesv1beta1.ProcessedVirtualMachineTemplate{},
		`{"name":"A","minimum":0}`:          v1beta1.Parameter{Name: "A", Minimum: new(int64)},
	} {
		got, err := json.Marshal(object)
		if err != nil || string(got) != want {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
	}
}
