package input

import (
	"k8s.io/apimachinery/pkg/labels"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Operations of a Case.
const (
	operationDelete = "DELETE"
)

// Case is one request that policies are to judge, or one stored object. It is not safe for
// concurrent use, and must not be changed once its Document has been made.
type Case struct {
	Request rego.Request
	// Object is the object as decoded JSON, nil on DELETE; OldObject the one that is
	// stored, nil on CREATE.
	Object, OldObject map[string]any
	Namespace         rego.Namespace
	// Template is that of a VirtualMachine, nil without one.
	Template *Template
	// Instancetype and Preference are what a VirtualMachine names, nil when it names
	// none; Resolve fills them in.
	Instancetype, Preference map[string]any
	// Anyone says that nobody knows who asks, as in an audit: policies are asked
	// whomever they are about.
	Anyone bool

	// compared holds what the comparison with the template has found, which is made once.
	compared *values
}

// View turns an object that is no VirtualMachine but runs one, such as a
// VirtualMachineInstance, into the VirtualMachine that it amounts to, see machine.View. Others
// stay what they are, and so does what is deleted: an instance that goes is a restart.
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

// Query is what decides which policies the case is subject to.
func (c *Case) Query() policyset.Query {
	q := policyset.Query{
		Operation:       c.Request.Operation,
		Kind:            c.Request.Kind,
		Namespace:       c.Request.Namespace,
		NamespaceLabels: c.Namespace.Labels,
		ObjectLabels:    labelsOf(c.Object),
		OldObjectLabels: labelsOf(c.OldObject),
		User:            c.Request.UserInfo,
		HasUser:         !c.Anyone,
	}
	if c.Template != nil {
		q.Template = &policyset.TemplateRef{Namespace: c.Template.Namespace, Name: c.Template.Name, Labels: c.Template.Labels}
	}
	return q
}

// Document is what the policies see.
func (c *Case) Document() rego.Document {
	d := rego.Document{
		Request:      c.Request,
		Object:       c.Object,
		OldObject:    c.OldObject,
		Namespace:    c.Namespace,
		Instancetype: c.Instancetype,
		Preference:   c.Preference,
	}
	if c.Template != nil {
		d.Template = c.Template.document()
		d.Parameters = c.parameters().masked()
	}
	return d
}

// subject is the object that the case is about: the one that is deleted, on DELETE.
func (c *Case) subject() map[string]any {
	if c.Request.Operation == operationDelete {
		return c.OldObject
	}
	return c.Object
}

// parameters are those of a case with a template.
func (c *Case) parameters() values {
	if c.compared == nil {
		found := c.Template.parameters(c.subject())
		c.compared = &found
	}
	return *c.compared
}

// secrets are the values of sensitive parameters.
func (c *Case) secrets() []string {
	if c.Template == nil {
		return nil
	}
	return c.parameters().secrets()
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
