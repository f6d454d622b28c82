package rerender

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
)

// Base returns the stored spec without overrides, nil if the record does not have what that needs. Values that are not known are overrides.Unknown.
func Base(stored machine.Object, from machine.Record) any {
	if from.Base == nil {
		return nil
	}
	return overrides.ParseNote(machine.StringAt(stored.Annotations, contract.AnnotationOverrides)).Base(stored.Spec, *from.Base)
}

// Shown are the values of parameters that a stored VirtualMachine shows: in its fields, its name and its annotations.
type Shown struct {
	compiled *template.Compiled
	found    *template.Match
	values   map[string]string
	// lost are the parameters whose values are not known: sensitive and generated ones.
	lost map[string]bool
}

// Find finds the values in a stored VirtualMachine that was rendered from this content of the template. base is the spec without overrides, which show
// nothing of the values; nil if it is not known.
func Find(compiled *template.Compiled, stored machine.Object, from machine.Record, base any) (*Shown, error) {
	vm := stored.Object
	if base != nil {
		vm = maps.Clone(stored.Object)
		vm["spec"] = Filled(base, stored.Spec)
	}
	found, err := compiled.Match(vm, template.Ignoring(func(path ...string) bool {
		return len(path) > 0 && path[0] == "spec" && isUnknown(base, path[1:])
	}))
	if err != nil {
		return nil, fmt.Errorf("comparing the VirtualMachine with its template: %w", err)
	}
	s := &Shown{compiled: compiled, found: found, values: found.Values(), lost: map[string]bool{}}
	if named, err := compiled.BindName(stored.Name(), stored.Parameters()); err == nil {
		maps.Copy(s.values, named)
	}
	maps.Copy(s.values, stored.Parameters())
	for _, p := range compiled.Parameters() {
		_, known := s.values[p.Name]
		s.lost[p.Name] = !known && !keepsDefault(p, from)
	}
	return s, nil
}

// keepsDefault reports whether a parameter without a known value had its default.
func keepsDefault(p v1beta1.Parameter, from machine.Record) bool {
	return p.Generate == "" && !slices.Contains(from.Sensitive, p.Name) && (p.Value != "" || !p.Required)
}

// Render renders the template with the values, of which changes replaces some. Places that depend on values that are not known have arbitrary ones.
func (s *Shown) Render(changes map[string]string) (map[string]any, error) {
	values := maps.Clone(s.values)
	maps.Copy(values, changes)
	made, err := s.compiled.Reconstruct(s.found.With(values))
	if err != nil {
		return nil, err
	}
	return machine.Decode(made.JSON())
}

// Conceal returns a rendered VirtualMachine with overrides.Unknown in place of the values that depend on what is not known.
func (s *Shown) Conceal(vm map[string]any) map[string]any {
	return s.compiled.Conceal(vm, func(name string) bool { return s.lost[name] }, overrides.Unknown{Reason: overrides.Secret})
}

// isUnknown reports whether a place in the VM, with the steps that template.Ignoring has, is unknown in the base.
func isUnknown(base any, path []string) bool {
	at := base
	for _, step := range path {
		switch value := at.(type) {
		case map[string]any:
			at = value[step]
		case []any:
			item := slices.IndexFunc(value, func(item any) bool { return step == "[name="+overrides.NameOf(item)+"]" })
			if index, err := strconv.Atoi(strings.Trim(step, "[]")); item < 0 && err == nil && index < len(value) {
				item = index
			}
			if item < 0 {
				return false
			}
			at = value[item]
		default:
			_, unknown := at.(overrides.Unknown)
			return unknown
		}
	}
	_, unknown := at.(overrides.Unknown)
	return unknown
}

// Filled returns a base with the values of what was rendered again in place of the unknown ones.
func Filled(base, rendered any) any {
	switch value := base.(type) {
	case overrides.Unknown:
		if rendered == nil {
			return base
		}
		return rendered
	case map[string]any:
		again, _ := rendered.(map[string]any)
		known := make(map[string]any, len(value))
		for key, below := range value {
			known[key] = Filled(below, again[key])
		}
		return known
	case []any:
		again, _ := rendered.([]any)
		known := slices.Clone(value)
		for i, item := range value {
			for _, other := range again {
				if name := overrides.NameOf(item); name != "" && overrides.NameOf(other) == name {
					known[i] = Filled(item, other)
				}
			}
		}
		return known
	default:
		return base
	}
}
