package rerender

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
)

// Changed returns the names of the parameters whose annotations an update adds, changes or removes, if the record of the VirtualMachine has all of
// them as mutable. It returns none otherwise: an admission policy denies the update then.
func Changed(stored, requested machine.Object, from machine.Record) []string {
	before, after := stored.Parameters(), requested.Parameters()
	changed := map[string]bool{}
	for name, value := range after {
		if was, found := before[name]; !found || was != value {
			changed[name] = true
		}
	}
	for name := range before {
		if _, found := after[name]; !found {
			changed[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(changed))
	if slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(from.Mutable, name) }) {
		return nil
	}
	return names
}

// Change is what a template makes of a stored VirtualMachine with the old and with the new values of mutable parameters.
type Change struct {
	// Values are the new values of all parameters that are known.
	Values   map[string]string
	old, now map[string]any
}

// NewChange renders a template with the values of a stored VirtualMachine, and with new values of the parameters in names, which are those that the
// request gives, or else the defaults. base is as in Find. Causes are values that the template rejects, at the annotations that give them, and places
// that contain a value that is not known, too.
func NewChange(compiled *template.Compiled, stored machine.Object, from machine.Record, base any, names []string, given map[string]string) (*Change, field.ErrorList) {
	changes := make(map[string]string, len(names))
	var causes field.ErrorList
	for _, name := range names {
		value, found := given[name]
		final, cause := compiled.Value(name, value, found)
		if cause != nil {
			cause.Field = machine.AnnotationsPath.Key(contract.AnnotationParameterPrefix + name).String()
			causes = append(causes, cause)
		}
		changes[name] = final
	}
	if len(causes) > 0 {
		return nil, causes
	}
	shown, err := Find(compiled, stored, from, base)
	if err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	c := &Change{Values: maps.Clone(shown.values)}
	maps.Copy(c.Values, changes)
	if c.old, err = shown.Render(nil); err == nil {
		c.now, err = shown.Render(changes)
	}
	if err != nil {
		return nil, field.ErrorList{field.Invalid(machine.AnnotationsPath, field.OmitValueType{}, err.Error())}
	}
	depends := shown.conceal(c.now, func(name string) bool { return slices.Contains(names, name) })
	for _, place := range both(nil, depends, shown.Conceal(c.now)) {
		causes = append(causes, field.Forbidden(field.NewPath(place), "this field cannot be rendered again: it depends on a parameter that changes and on a sensitive or generated value that is not stored with the VirtualMachine; leave the parameter as it is, or create the VirtualMachine again"))
	}
	return c, causes
}

// both returns the places that are unknown in both of two forms of a VirtualMachine.
func both(at *field.Path, one, other any) (places []string) {
	_, unknown := one.(overrides.Unknown)
	_, otherUnknown := other.(overrides.Unknown)
	switch value := one.(type) {
	case map[string]any:
		members, _ := other.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := members[key]
			if otherUnknown {
				below = other
			}
			places = append(places, both(child(at, key), value[key], below)...)
		}
	case []any:
		items, _ := other.([]any)
		for i, item := range value {
			var below any
			if i < len(items) {
				below = items[i]
			}
			if otherUnknown {
				below = other
			}
			step := at.Index(i)
			if overrides.UniquelyNamed(value) {
				step = at.Key("name=" + overrides.NameOf(item))
			}
			places = append(places, both(step, item, below)...)
		}
	default:
		if unknown && (otherUnknown || len(overrides.Unknowns(other)) > 0) {
			return []string{at.String()}
		}
	}
	return places
}

func child(at *field.Path, key string) *field.Path {
	if at == nil {
		return field.NewPath(key)
	}
	return at.Child(key)
}

// Spec returns a spec with the new values of the template in place of the old ones. Other values are overrides, and stay. So do the values in pinned,
// which is what the manifest of the sender has.
func (c *Change) Spec(spec, pinned any) any {
	return overrides.Replace(spec, c.old["spec"], c.now["spec"], pinned)
}

// Strings is Spec for metadata.labels or metadata.annotations.
func (c *Change) Strings(key string, values, pinned map[string]any) map[string]any {
	changed, _ := overrides.Replace(members(values), members(machine.MapAt(c.old, "metadata", key)), members(machine.MapAt(c.now, "metadata", key)), members(pinned)).(map[string]any)
	return changed
}

// members returns a map as a value, nil without one.
func members(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

// Object returns a stored VirtualMachine with the new values.
func (c *Change) Object(stored machine.Object) machine.Object {
	changed := maps.Clone(stored.Object)
	metadata := maps.Clone(stored.Metadata)
	for key, values := range map[string]map[string]any{"labels": stored.Labels, "annotations": stored.Annotations} {
		if now := c.Strings(key, values, nil); now != nil {
			metadata[key] = now
		}
	}
	changed["metadata"], changed["spec"] = metadata, c.Spec(stored.Spec, nil)
	object, _ := machine.Read(changed)
	return object
}
