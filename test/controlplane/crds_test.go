package controlplane

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMergeCRDs(t *testing.T) {
	type versions = []apiextensionsv1.CustomResourceDefinitionVersion
	schema := func(text string) *apiextensionsv1.CustomResourceValidation {
		return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Description: text}}
	}
	definition := func(name string, versions ...apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Versions: versions},
		}
	}
	type version = apiextensionsv1.CustomResourceDefinitionVersion
	for name, tc := range map[string]struct {
		generated, operator []*apiextensionsv1.CustomResourceDefinition
		want                versions
		wantErr             string
	}{
		"each version gets the schema generated for it": {
			generated: []*apiextensionsv1.CustomResourceDefinition{
				definition("pools", version{Name: "v1alpha1", Schema: schema("old"), Storage: true}),
				definition("pools", version{Name: "v1beta1", Schema: schema("new"), Storage: true}),
			},
			operator: []*apiextensionsv1.CustomResourceDefinition{
				definition("pools", version{Name: "v1alpha1"}, version{Name: "v1beta1", Storage: true}),
			},
			want: versions{{Name: "v1alpha1", Schema: schema("old")}, {Name: "v1beta1", Schema: schema("new"), Storage: true}},
		},
		"a version without a schema takes that of another": {
			generated: []*apiextensionsv1.CustomResourceDefinition{definition("machines", version{Name: "v1", Schema: schema("machine")})},
			operator: []*apiextensionsv1.CustomResourceDefinition{
				definition("machines", version{Name: "v1alpha3"}, version{Name: "v1", Storage: true}),
			},
			want: versions{{Name: "v1alpha3", Schema: schema("machine")}, {Name: "v1", Schema: schema("machine"), Storage: true}},
		},
		"what only looks like a kind, and versions of a newer KubeVirt, are left out": {
			generated: []*apiextensionsv1.CustomResourceDefinition{
				definition("exports", version{Name: "v1beta1", Schema: schema("export")}),
				definition("exports", version{Name: "v1", Schema: schema("newer")}),
				definition("datavolumetemplatespecs", version{Name: "v1", Schema: schema("embedded")}),
			},
			operator: []*apiextensionsv1.CustomResourceDefinition{definition("exports", version{Name: "v1beta1", Storage: true})},
			want:     versions{{Name: "v1beta1", Schema: schema("export"), Storage: true}},
		},
		"a definition without any schema is an error that names it": {
			operator: []*apiextensionsv1.CustomResourceDefinition{definition("ghosts", version{Name: "v1", Storage: true})},
			wantErr:  "ghosts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			merged, err := mergeCRDs(tc.generated, tc.operator)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("want %q in the error, got %v", tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(merged) != 1 {
				t.Fatalf("want one definition, got %d", len(merged))
			}
			if diff := cmp.Diff(tc.want, merged[0].Spec.Versions); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVirtualizationCRDsAreServed(t *testing.T) {
	plane := shared.Plane(t)
	for resource, version := range map[string]string{
		"virtualmachines":                    "v1",
		"virtualmachineinstances":            "v1",
		"virtualmachineclusterinstancetypes": "v1beta1",
		"virtualmachinesnapshots":            "v1beta1",
		"datavolumes":                        "v1beta1",
		"datasources":                        "v1beta1",
		"dataimportcrons":                    "v1beta1",
	} {
		got := kubectl(t, plane, nil, "", "explain", resource+".spec")
		if line := regexp.MustCompile(`(?m)^VERSION: +` + version + `$`); got.Code != 0 || !line.MatchString(got.Stdout) {
			t.Errorf("want %s in version %s, got: %s%s", resource, version, got.Stdout, got.Stderr)
		}
	}
	// A CRD without the status subresource would let a user write the status along with the spec.
	got := kubectl(t, plane, nil, "", "get", "crd", "virtualmachines.kubevirt.io", "-o", "jsonpath={.spec.versions[?(@.name=='v1')].subresources}")
	if got.Stdout != `{"status":{}}` {
		t.Errorf("want a status subresource, got %s%s", got.Stdout, got.Stderr)
	}
}
