package render

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
)

// maxSecretPlaces is the number of places with secret values that a record lists. With more, all of the spec counts as one.
const maxSecretPlaces = 64

// baseOf returns what the record holds of a rendered spec, for later updates. Generated values are secret unless the VM shows them: they are in its
// name or in an annotation.
func baseOf(compiled *template.Compiled, spec map[string]any, name string, explicit map[string]string) *machine.Base {
	base := &machine.Base{RunStrategy: machine.StringAt(spec, "runStrategy")}
	if running, is := spec["running"].(bool); is {
		base.Running = &running
	}
	named, err := compiled.BindName(name, explicit)
	if err != nil {
		named = nil
	}
	secret := map[string]bool{}
	for _, p := range compiled.Parameters() {
		_, isNamed := named[p.Name]
		_, isExplicit := explicit[p.Name]
		secret[p.Name] = p.Sensitive || p.Generate != "" && !isNamed && !isExplicit
	}
	concealed := compiled.Conceal(map[string]any{"spec": spec}, func(name string) bool { return secret[name] }, overrides.Unknown{Reason: overrides.Secret})
	if base.Secret = overrides.Places(concealed["spec"]); len(base.Secret) > maxSecretPlaces {
		base.Secret = []string{"spec"}
	}
	return base
}

// base returns the stored spec without overrides; nil if it is not known. It sets u.original if something in the base is unknown.
func (u *update) base(from machine.Record) any {
	if from.Base == nil {
		return nil
	}
	base := overrides.ParseNote(machine.StringAt(u.stored.Annotations, contract.AnnotationOverrides)).Base(u.stored.Spec, *from.Base)
	if len(overrides.Unknowns(base)) == 0 || reflect.DeepEqual(u.object.Spec, u.stored.Spec) || u.find == nil {
		return base
	}
	if u.original = u.find(from); u.original == nil {
		return base
	}
	return filled(base, u.rendered(from, base))
}

// originalOf returns the template of a record if its content is the same as when the VM was rendered, nil otherwise.
func (h *Handler) originalOf(ctx context.Context, from machine.Record) *template.Compiled {
	found := h.templates.Wait(ctx, from.Namespace, from.Name, 0)
	if found == nil {
		return nil
	}
	if compiled, err := found.Compiled(); err == nil && compiled.Digest() == from.Digest {
		return compiled
	}
	return nil
}

// rendered renders the template with the values that the VM still shows. Places that depend on others are unknown.
func (u update) rendered(from machine.Record, base any) any {
	// The overrides show nothing of the values.
	vm := maps.Clone(u.stored.Object)
	vm["spec"] = filled(base, u.stored.Spec)
	found, err := u.original.Match(vm, template.Ignoring(func(path ...string) bool {
		return len(path) > 0 && path[0] == "spec" && isUnknown(base, path[1:])
	}))
	if err != nil {
		return nil
	}
	values := found.Values()
	named, err := u.original.BindName(u.stored.Name(), u.stored.Parameters())
	if err == nil {
		maps.Copy(values, named)
	}
	maps.Copy(values, u.stored.Parameters())
	made, err := u.original.Reconstruct(found.With(values))
	if err != nil {
		return nil
	}
	vm, err = machine.Decode(made.JSON())
	if err != nil {
		panic("reading back a rendered VirtualMachine: " + err.Error())
	}
	lost := map[string]bool{}
	for _, p := range u.original.Parameters() {
		_, known := values[p.Name]
		lost[p.Name] = !known && !keepsDefault(p, from)
	}
	return u.original.Conceal(vm, func(name string) bool { return lost[name] }, overrides.Unknown{Reason: overrides.Secret})["spec"]
}

// keepsDefault reports whether a parameter without a known value had its default.
func keepsDefault(p v1beta1.Parameter, from machine.Record) bool {
	return p.Generate == "" && !slices.Contains(from.Sensitive, p.Name) && (p.Value != "" || !p.Required)
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

// filled returns a base with the values of what was rendered again in place of the unknown ones.
func filled(base, rendered any) any {
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
			known[key] = filled(below, again[key])
		}
		return known
	case []any:
		again, _ := rendered.([]any)
		known := slices.Clone(value)
		for i, item := range value {
			for _, other := range again {
				if name := overrides.NameOf(item); name != "" && overrides.NameOf(other) == name {
					known[i] = filled(item, other)
				}
			}
		}
		return known
	default:
		return base
	}
}

// lost returns a cause for each place of a new spec that would have to be that of the template, and is unknown.
func (u update) lost(spec any, from machine.Record) (causes field.ErrorList) {
	places := overrides.Unknowns(spec)
	for _, place := range slices.Sorted(maps.Keys(places)) {
		why := "it contains a sensitive or a generated value"
		if places[place] == overrides.TooLarge {
			why = "it is too large"
		}
		template := machine.Reference{Namespace: from.Namespace, Name: from.Name}
		if u.original == nil {
			why += ", and the template has changed since or is gone"
		}
		causes = append(causes, field.Forbidden(field.NewPath(place), fmt.Sprintf(
			"this override cannot be removed: the value of template %s is not stored with the VirtualMachine, because %s; keep the field, or set it to the value that you want", template, why)))
	}
	return causes
}
