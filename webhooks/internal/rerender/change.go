package rerender

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/template"
	"github.com/vmstencil/stencil/template/alternatives"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
)

// Changed returns the names of the parameters whose annotations an update adds, changes or removes, if the record of the VirtualMachine has all of
// them as mutable. It returns none otherwise: an admission policy denies the update then.
func Changed(stored, requested machine.Object) []string {
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
	if len(changed) == 0 {
		return nil
	}
	names, from := slices.Sorted(maps.Keys(changed)), stored.Record()
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
// request gives, or else the defaults. base is as in Find. Causes are values that the template rejects, at the annotations that give them.
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
		return nil, causesOf(err, from)
	}
	c := &Change{Values: maps.Clone(shown.values)}
	maps.Copy(c.Values, changes)
	if c.old, err = shown.Render(nil); err == nil {
		c.now, err = shown.Render(changes)
	}
	if err != nil {
		return nil, causesOf(err, from)
	}
	return c, nil
}

// causesOf converts an error of the engine. Places in the template are marked as such.
func causesOf(err error, from machine.Record) field.ErrorList {
	var invalid *template.InvalidError
	if !errors.As(err, &invalid) {
		return field.ErrorList{field.InternalError(machine.AnnotationsPath.Key(contract.AnnotationTemplateRef), err)}
	}
	causes := make(field.ErrorList, 0, len(invalid.Causes))
	for _, cause := range invalid.Causes {
		located := *cause
		located.Field = fmt.Sprintf("template[%s/%s].%s", from.Namespace, from.Name, cause.Field)
		causes = append(causes, &located)
	}
	return causes
}

// Spec returns a spec with the new values of the template in place of the old ones. Other values are overrides, and stay: also those of fields with a
// value that is not known. So do the values in pinned, which is what the manifest of the sender has.
func (c *Change) Spec(spec, pinned any) any {
	return alternatives.Spec().Keep(overrides.Replace(spec, c.old["spec"], c.now["spec"], pinned), spec)
}

// Strings is Spec for metadata.labels or metadata.annotations.
func (c *Change) Strings(key string, values, pinned map[string]any) map[string]any {
	changed, _ := overrides.Replace(overrides.Members(values), overrides.Members(machine.MapAt(c.old, "metadata", key)), overrides.Members(machine.MapAt(c.now, "metadata", key)), overrides.Members(pinned)).(map[string]any)
	return changed
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
