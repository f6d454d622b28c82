package input

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/rego"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Masked replaces values that policies, or readers of the decision log, must not see.
const Masked = "***"

// Template is the template that a VirtualMachine was rendered from.
type Template struct {
	Namespace, Name     string
	Labels, Annotations map[string]string
	// Compiled is nil if the template does not exist, was replaced by another object
	// of the same name, or does not compile. Labels and Annotations of a template
	// that does not exist are nil as well.
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

// values are the values of parameters, and the names of the sensitive ones.
type values struct {
	all       map[string]string
	sensitive map[string]bool
}

// parameters returns the values of parameters in a VirtualMachine of this template. If
// the template is not available for a comparison, they are the values in the
// annotations of the VirtualMachine.
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

// secrets returns the values of sensitive parameters, and their encodings.
func (v values) secrets() []string {
	var secrets []string
	for name, value := range v.all {
		if v.sensitive[name] && value != "" {
			secrets = append(append(secrets, value), template.Encodings(value)...)
		}
	}
	return secrets
}

// Origin is the template that a VirtualMachine refers to.
type Origin struct {
	machine.Reference
	// Record is the record that the render webhook wrote about the template; zero for a
	// VirtualMachine that it has not rendered.
	Record machine.Record
}

// OriginOf returns the template that a VirtualMachine comes from, by its stored record
// or else by its reference. It returns false for a VirtualMachine without a template,
// and for one with an invalid reference.
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

// Template returns the template for the input of policies, made of the object that has
// its name now; now is nil if there is none. An object with another UID than that of the
// record is ignored.
func (o Origin) Template(now *metav1.ObjectMeta, compiled *template.Compiled) *Template {
	t := &Template{Namespace: o.Namespace, Name: o.Name}
	if now == nil || o.Record.UID != "" && o.Record.UID != now.UID {
		return t
	}
	t.Labels, t.Annotations, t.Compiled = now.Labels, now.Annotations, compiled
	return t
}
