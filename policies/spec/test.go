package spec

import (
	stdjson "encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyinput "github.com/vmstencil/stencil/policies/input"
	suite "github.com/vmstencil/stencil/policies/tests"
	"github.com/vmstencil/stencil/rego"
)

// test converts one test. kinds are the kinds of the policy.
func (r *reader) test(at *field.Path, from *v1alpha1.PolicyTest, kinds []string) suite.Case {
	return suite.Case{
		Name:       from.Name,
		Document:   r.document(at.Child("input"), &from.Input, kinds),
		Parameters: r.object(at.Child("parameters"), from.Parameters),
		Data:       r.object(at.Child("data"), from.Data),
		Deny:       from.Deny,
		Warn:       from.Warn,
	}
}

// document returns the input of the policy for a request with this test input.
func (r *reader) document(at *field.Path, from *v1alpha1.PolicyTestInput, kinds []string) rego.Document {
	d := rego.Document{
		Object:       r.object(at.Child("object"), from.Object),
		OldObject:    r.object(at.Child("oldObject"), from.OldObject),
		Template:     r.template(at.Child("template"), from.Template),
		Parameters:   from.Parameters,
		Instancetype: r.object(at.Child("instancetype"), from.Instancetype),
		Preference:   r.object(at.Child("preference"), from.Preference),
	}
	for i := range from.Objects {
		d.Objects = append(d.Objects, r.object(at.Child("objects").Index(i), &from.Objects[i]))
	}
	d.Request = rego.Request{Operation: operation(from, d), Kind: kinds[0]}
	if from.Time != nil {
		d.Request.Time = from.Time.Time
	}
	subject := d.Object
	if subject == nil {
		subject = d.OldObject
	}
	if kind, ok := subject["kind"].(string); ok {
		d.Request.Kind = kind
	}
	seen := policyinput.Case{Request: d.Request, Object: d.Object, OldObject: d.OldObject}
	seen.View()
	d.Request, d.Object, d.OldObject = seen.Request, seen.Object, seen.OldObject
	metadata, _ := subject["metadata"].(map[string]any)
	d.Request.Name, _ = metadata["name"].(string)
	d.Request.Namespace, _ = metadata["namespace"].(string)
	d.Namespace = rego.Namespace{
		Name: d.Request.Namespace, Labels: from.NamespaceLabels, Annotations: from.NamespaceAnnotations,
	}
	if from.User != nil {
		d.Request.UserInfo = rego.UserInfo{Username: from.User.Username, Groups: from.User.Groups}
	}
	return d
}

func operation(from *v1alpha1.PolicyTestInput, d rego.Document) string {
	switch {
	case from.Operation != "":
		return string(from.Operation)
	case d.Object == nil:
		return string(v1alpha1.PolicyOperationDelete)
	case d.OldObject != nil:
		return string(v1alpha1.PolicyOperationUpdate)
	default:
		return string(v1alpha1.PolicyOperationCreate)
	}
}

// template decodes input.template of a test, which has the form of the input of
// policies.
func (r *reader) template(at *field.Path, raw *runtime.RawExtension) *rego.Template {
	if raw == nil || len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return nil
	}
	from := &rego.Template{}
	decoder := stdjson.NewDecoder(strings.NewReader(string(raw.Raw)))
	// A field that is not in the input of policies would have no effect.
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(from); err != nil {
		r.problems = append(r.problems, field.Invalid(at, field.OmitValueType{},
			"must be what policies read as input.template, with namespace, name, labels, annotations and parameters: "+err.Error()))
		return nil
	}
	return from
}
