package input

import (
	"k8s.io/apimachinery/pkg/labels"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Operations of a Case.
const (
	operationDelete = "DELETE"
)

// Case is one request that policies evaluate, or one stored object. It is not safe for
// concurrent use, and must not be changed after the first call of Document.
type Case struct {
	Request rego.Request
	// Object is the object as decoded JSON, nil on DELETE; OldObject is the stored
	// object, nil on CREATE.
	Object, OldObject map[string]any
	Namespace         rego.Namespace
	// Template is the template of a VirtualMachine, nil without one.
	Template *Template
	// Instancetype and Preference are the objects that a VirtualMachine names, nil if it
	// names none; Resolve sets them.
	Instancetype, Preference map[string]any
	// Objects are the objects that are created with a new VirtualMachine because its
	// template has them.
	Objects []map[string]any
	// Secrets are the values of sensitive parameters in Objects. Those that the
	// VirtualMachine does not contain are only here.
	Secrets []string
	// IgnoreSubjects is true if the user is unknown, as in an audit: the subjects of policies are
	// ignored.
	IgnoreSubjects bool

	// compared caches the result of the comparison with the template.
	compared *values
}

// View converts an object that runs a VM, such as a VirtualMachineInstance, into the
// equivalent VirtualMachine, see machine.View. Other objects are not changed, nor are deleted
// ones: the deletion of an instance is a restart.
func (c *Case) View() {
	if c.Object == nil {
		return
	}
	object, ok := machine.View(c.Request.Kind, c.Object)
	if !ok {
		return
	}
	if c.OldObject != nil {
		c.OldObject, _ = machine.View(c.Request.Kind, c.OldObject)
	}
	c.Object, c.Request.RequestKind, c.Request.Kind = object, c.Request.Kind, rego.KindVirtualMachine
}

// Viewed reports whether View has changed the case. Such a VirtualMachine comes from no
// template, regardless of its annotations.
func (c *Case) Viewed() bool { return c.Request.RequestKind != "" }

// Query returns the query for the policies that apply to the case.
func (c *Case) Query() policyset.Query {
	q := policyset.Query{
		Operation:       c.Request.Operation,
		Kind:            c.Request.Kind,
		Namespace:       c.Request.Namespace,
		NamespaceLabels: c.Namespace.Labels,
		ObjectLabels:    labelsOf(c.Object),
		OldObjectLabels: labelsOf(c.OldObject),
		User:            c.Request.UserInfo,
		HasUser:         !c.IgnoreSubjects,
	}
	if c.Template != nil {
		q.Template = &policyset.TemplateRef{Namespace: c.Template.Namespace, Name: c.Template.Name, Labels: c.Template.Labels}
	}
	return q
}

// Document returns the input of the policies.
func (c *Case) Document() rego.Document {
	d := rego.Document{
		Request:      c.Request,
		Object:       c.Object,
		OldObject:    c.OldObject,
		Namespace:    c.Namespace,
		Instancetype: c.Instancetype,
		Preference:   c.Preference,
	}
	for _, object := range c.Objects {
		d.Objects = append(d.Objects, withoutSecretData(object))
	}
	if c.Template != nil {
		d.Template = c.Template.document()
		d.Parameters = c.parameters().masked()
	}
	return d
}

// subject returns the object of the case: on DELETE the deleted object.
func (c *Case) subject() map[string]any {
	if c.Request.Operation == operationDelete {
		return c.OldObject
	}
	return c.Object
}

// parameters returns the parameters of a case with a template.
func (c *Case) parameters() values {
	if c.compared == nil {
		found := c.Template.parameters(c.subject())
		c.compared = &found
	}
	return *c.compared
}

// secrets returns the values of sensitive parameters.
func (c *Case) secrets() []string {
	var secrets []string
	if c.Template != nil {
		secrets = c.parameters().secrets()
	}
	for _, value := range c.Secrets {
		if value != "" {
			secrets = append(append(secrets, value), template.Encodings(value)...)
		}
	}
	return secrets
}

func labelsOf(object map[string]any) labels.Set {
	metadata, _ := object["metadata"].(map[string]any)
	written, _ := metadata["labels"].(map[string]any)
	if len(written) == 0 {
		return nil
	}
	set := make(labels.Set, len(written))
	for key := range written {
		set[key] = machine.StringAt(written, key)
	}
	return set
}
