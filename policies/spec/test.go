package spec

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
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
	request, namespace := from.Request, from.Namespace
	if request == nil {
		request = &v1alpha1.PolicyTestRequest{}
	}
	if namespace == nil {
		namespace = &v1alpha1.PolicyTestNamespace{}
	}
	subject := d.Object
	if subject == nil {
		subject = d.OldObject
	}
	kind, _ := subject["kind"].(string)
	d.Request = rego.Request{
		Operation: r.operation(at, from, request, d),
		Kind:      r.one(at.Child("request", "kind"), request.Kind, at.Child("object", "kind"), kind),
		DryRun:    request.DryRun,
	}
	if d.Request.Kind == "" {
		d.Request.Kind = kinds[0]
	}
	if set := either(r, at.Child("request", "time"), request.Time, at.Child("time"), from.Time); set != nil {
		d.Request.Time = set.Time
	}
	seen := policyinput.Case{Request: d.Request, Object: d.Object, OldObject: d.OldObject}
	seen.View()
	d.Request, d.Object, d.OldObject = seen.Request, seen.Object, seen.OldObject
	d.Request.RequestKind = r.one(at.Child("request", "requestKind"), request.RequestKind, at.Child("object", "kind"), d.Request.RequestKind)
	metadata, _ := subject["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	in, _ := metadata["namespace"].(string)
	d.Request.Name = r.one(at.Child("request", "name"), request.Name, at.Child("object", "metadata", "name"), name)
	in = r.one(at.Child("namespace", "name"), namespace.Name, at.Child("object", "metadata", "namespace"), in)
	d.Request.Namespace = r.one(at.Child("request", "namespace"), request.Namespace, at.Child("namespace", "name"), in)
	d.Namespace = rego.Namespace{Name: d.Request.Namespace, Labels: namespace.Labels, Annotations: namespace.Annotations}
	if from.NamespaceLabels != nil {
		r.twice(at.Child("namespace", "labels"), namespace.Labels != nil, at.Child("namespaceLabels"))
		d.Namespace.Labels = from.NamespaceLabels
	}
	if from.NamespaceAnnotations != nil {
		r.twice(at.Child("namespace", "annotations"), namespace.Annotations != nil, at.Child("namespaceAnnotations"))
		d.Namespace.Annotations = from.NamespaceAnnotations
	}
	if user := either(r, at.Child("request", "userInfo"), request.UserInfo, at.Child("user"), from.User); user != nil {
		d.Request.UserInfo = rego.UserInfo{Username: user.Username, UID: user.UID, Groups: user.Groups, Extra: user.Extra}
	}
	return d
}

func (r *reader) operation(at *field.Path, from *v1alpha1.PolicyTestInput, request *v1alpha1.PolicyTestRequest, d rego.Document) string {
	set := r.one(at.Child("request", "operation"), string(request.Operation), at.Child("operation"), string(from.Operation))
	switch {
	case set != "":
		return set
	case d.Object == nil:
		return string(v1alpha1.PolicyOperationDelete)
	case d.OldObject != nil:
		return string(v1alpha1.PolicyOperationUpdate)
	default:
		return string(v1alpha1.PolicyOperationCreate)
	}
}

// one returns a text that a test may give at two places. Two different texts are a mistake.
func (r *reader) one(at *field.Path, value string, other *field.Path, otherwise string) string {
	if value != "" && otherwise != "" && value != otherwise {
		r.problems = append(r.problems, field.Invalid(at, value, fmt.Sprintf("%s is %q", other, otherwise)))
	}
	return cmp.Or(value, otherwise)
}

// either returns what a test gives at one of two places.
func either[T any](r *reader, at *field.Path, value *T, other *field.Path, otherwise *T) *T {
	r.twice(at, value != nil && otherwise != nil, other)
	return cmp.Or(value, otherwise)
}

// twice reports what a test gives at two places.
func (r *reader) twice(at *field.Path, is bool, other *field.Path) {
	if is {
		r.problems = append(r.problems, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("%s gives it as well; keep one of them", other)))
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
