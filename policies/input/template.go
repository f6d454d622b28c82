package input

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Masked stands for what policies, or readers of the decision log, must not see.
const Masked = "***"

// Template is the template that a VirtualMachine was rendered from.
type Template struct {
	Namespace, Name     string
	Labels, Annotations map[string]string
	// Compiled is nil when the template is gone, is another object of the same name
	// by now, or does not compile. Labels and Annotations of a template that is gone
	// are nil, too.
	Compiled *template.Compiled
}

func (t *Template) document() *rego.Template {
	d := &rego.Template{Namespace: t.Namespace, Name: t.Name, Labels: t.Labels, Annotations: t.Annotations}
	if t.Compiled == nil {
		return d
	}
	for _, p := range t.Compiled.Parameters() {
		declared := rego.TemplateParameter{
			Name:        p.Name,
			DisplayName: p.DisplayName,
			Description: p.Description,
			Type:        string(p.Type),
			Required:    p.Required,
			Sensitive:   p.Sensitive,
			Value:       p.Value,
			Generate:    p.Generate,
			Pattern:     p.Pattern,
			Enum:        p.Enum,
		}
		if p.Sensitive {
			declared.Enum = nil
			if p.Value != "" {
				declared.Value = Masked
			}
		}
		d.Parameters = append(d.Parameters, declared)
	}
	return d
}

// values are those of parameters, and which of them are sensitive.
type values struct {
	all       map[string]string
	sensitive map[string]bool
}

// parameters are the values that a VirtualMachine of this template shows. Of a template
// that cannot be compared with any more, they are those that its owner gave.
func (t *Template) parameters(object map[string]any) values {
	vm, _ := machine.Read(object)
	v := values{all: vm.Parameters(), sensitive: map[string]bool{}}
	for _, name := range vm.Record().Sensitive {
		v.sensitive[name] = true
	}
	if t.Compiled == nil {
		return v
	}
	for _, p := range t.Compiled.Parameters() {
		v.sensitive[p.Name] = v.sensitive[p.Name] || p.Sensitive
	}
	if matched, err := t.Compiled.Match(object); err == nil {
		maps.Copy(v.all, matched.Values())
	}
	return v
}

func (v values) masked() map[string]string {
	shown := make(map[string]string, len(v.all))
	for name, value := range v.all {
		if v.sensitive[name] {
			value = Masked
		}
		shown[name] = value
	}
	return shown
}

// secrets are the values of sensitive parameters, and what encoders make of them.
func (v values) secrets() []string {
	var secrets []string
	for name, value := range v.all {
		if v.sensitive[name] && value != "" {
			secrets = append(append(secrets, value), template.Encodings(value)...)
		}
	}
	return secrets
}

// Origin is the template that a VirtualMachine says it comes from.
type Origin struct {
	machine.Reference
	// Record is what the render webhook wrote about the template; zero for a machine
	// that has not been through it.
	Record machine.Record
}

// OriginOf returns the template that a VirtualMachine comes from, as its stored record
// says, or else as its reference does. It is false for a machine without a template, and
// for one whose reference names none.
func OriginOf(object map[string]any, namespace string) (Origin, bool) {
	vm, _ := machine.Read(object)
	written, found := vm.Reference()
	if !found {
		return Origin{}, false
	}
	record := vm.Record()
	if record.Name != "" {
		return Origin{Reference: machine.Reference{Namespace: record.Namespace, Name: record.Name}, Record: record}, true
	}
	reference, errs := machine.ParseReference(written, namespace)
	if len(errs) > 0 {
		return Origin{}, false
	}
	return Origin{Reference: reference}, true
}

// Template is the template as policies see it, made of the object that has its name now;
// nil for none. An object that is not the one of the record has nothing to do with it.
func (o Origin) Template(now *metav1.ObjectMeta, compiled *template.Compiled) *Template {
	t := &Template{Namespace: o.Namespace, Name: o.Name}
	if now == nil || o.Record.UID != "" && o.Record.UID != now.UID {
		return t
	}
	t.Labels, t.Annotations, t.Compiled = now.Labels, now.Annotations, compiled
	return t
}
