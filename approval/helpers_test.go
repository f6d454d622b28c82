package approval_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

// tree decodes YAML as objects of admission requests are decoded.
func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	var decoded map[string]any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// object is a TemplateApproval of that name and spec, which by default selects team-a and lists golden/fedora.
func object(t testing.TB, name, spec string) *v1alpha1.TemplateApproval {
	t.Helper()
	o := &v1alpha1.TemplateApproval{Spec: v1alpha1.TemplateApprovalSpec{
		Namespaces: []string{"team-a"},
		Templates:  []v1alpha1.ApprovedTemplate{{Namespace: "golden", Name: "fedora"}},
	}}
	o.Name = name
	var given v1alpha1.TemplateApprovalSpec
	if err := yaml.UnmarshalStrict([]byte(spec), &given); err != nil {
		t.Fatalf("%v in %s", err, spec)
	}
	if given.Namespaces == nil && given.NamespaceSelector == nil {
		given.Namespaces = o.Spec.Namespaces
	}
	if given.Templates == nil {
		given.Templates = o.Spec.Templates
	}
	o.Spec = given
	return o
}

func compile(t testing.TB, name, spec string) *approval.Approval {
	t.Helper()
	a, err := approval.Compile(object(t, name, spec))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func texts(paths []approval.Path) []string {
	var texts []string
	for _, path := range paths {
		texts = append(texts, path.String())
	}
	return texts
}

func none(string) bool { return false }

// sorted compares lists of paths without regard to their order.
var sorted = cmpopts.SortSlices(strings.Compare)
