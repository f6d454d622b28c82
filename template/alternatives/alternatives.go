// Package alternatives lists the fields of a VirtualMachine that exclude each other: an interface is bound by masquerade or by bridge, a volume has one source.
// Where a template has one of them and a request another, that of the request replaces that of the template.
//
// The table is made from the Go types of KubeVirt: their documentation says where only one member may be set, and what it does not say is in declared.
// No client, no I/O.
package alternatives

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	virtv1 "kubevirt.io/api/core/v1"
)

// Place is a place in a VirtualMachine: a map, or a list. Its methods accept nil, which is a place without alternatives below it.
type Place struct {
	// groups are sets of fields of which one may be set.
	groups [][]string
	fields map[string]*Place
	// items is the place of each item of a list, or of each value of a map.
	items *Place
}

// Spec returns the place of the spec of a VirtualMachine.
var Spec = sync.OnceValue(func() *Place { return of(reflect.TypeFor[virtv1.VirtualMachineSpec](), map[reflect.Type]*Place{}) })

// declared are groups that the documentation of a type does not have in the words of the others.
var declared = map[reflect.Type][][]string{
	reflect.TypeFor[virtv1.VirtualMachineSpec]():           {{"running", "runStrategy"}},
	reflect.TypeFor[virtv1.InstancetypeMatcher]():          {{"name", "inferFromVolume"}},
	reflect.TypeFor[virtv1.PreferenceMatcher]():            {{"name", "inferFromVolume"}},
	reflect.TypeFor[virtv1.Bootloader]():                   {{"bios", "efi"}},
	reflect.TypeFor[virtv1.Handler]():                      {{"exec", "guestAgentPing", "httpGet", "tcpSocket"}},
	reflect.TypeFor[virtv1.CloudInitNoCloudSource]():       {{"userData", "userDataBase64"}, {"networkData", "networkDataBase64"}},
	reflect.TypeFor[virtv1.CloudInitConfigDriveSource]():   {{"userData", "userDataBase64"}, {"networkData", "networkDataBase64"}},
	reflect.TypeFor[virtv1.SysprepSource]():                {{"configMap", "secret"}},
	reflect.TypeFor[virtv1.Interface]():                    {{"ports", "portRanges"}},
	reflect.TypeFor[virtv1.UserPasswordAccessCredential](): nil, // Its members belong together, although its documentation has the words.
}

// joined are fields of a type that belong to the group of a type embedded in it.
var joined = map[reflect.Type]string{reflect.TypeFor[virtv1.Interface](): "binding"}

// exclusive reports whether the documentation of a type says that one of its members may be set.
func exclusive(t reflect.Type) bool {
	documented, is := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string })
	if !is {
		return false
	}
	text := strings.Join(strings.Fields(documented.SwaggerDoc()[""]), " ")
	return strings.Contains(text, "Only one of its members may be specified") || strings.Contains(text, "Exactly one of its members must be set")
}

// of returns the place of a type, nil if there are no alternatives in it.
func of(t reflect.Type, seen map[reflect.Type]*Place) *Place {
	// A quantity, a time. Types of KubeVirt's that read themselves have their fields all the same.
	if !strings.HasPrefix(t.PkgPath(), "kubevirt.io/api/") && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return of(t.Elem(), seen)
	case reflect.Slice, reflect.Map:
		if items := of(t.Elem(), seen); items != nil {
			return &Place{items: items}
		}
		return nil
	case reflect.Struct:
	default:
		return nil
	}
	if found, again := seen[t]; again {
		return found
	}
	place := &Place{fields: map[string]*Place{}}
	seen[t] = place
	place.add(t, seen)
	if len(place.groups) == 0 && len(place.fields) == 0 {
		seen[t] = nil
		return nil
	}
	return place
}

// add adds the members of a type to its place, and those of the types that it embeds.
func (p *Place) add(t reflect.Type, seen map[reflect.Type]*Place) {
	var members []string
	for field := range fieldsOf(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && field.Type.Kind() == reflect.Struct && (name == "" || strings.Contains(options, "inline")) {
			p.add(field.Type, seen)
			if own := joined[t]; own != "" && exclusive(field.Type) {
				last := len(p.groups) - 1
				p.groups[last] = append(p.groups[last], own)
			}
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		members = append(members, name)
		if below := of(field.Type, seen); below != nil {
			p.fields[name] = below
		}
	}
	groups, known := declared[t]
	if !known && exclusive(t) {
		groups = [][]string{members}
	}
	for _, group := range groups {
		if len(group) > 1 {
			p.groups = append(p.groups, slices.Clone(group))
		}
	}
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

func (p *Place) field(name string) *Place {
	switch {
	case p == nil:
		return nil
	case p.items != nil:
		return p.items
	}
	return p.fields[name]
}

// At returns the place below fields.
func (p *Place) At(fields ...string) *Place {
	for _, name := range fields {
		p = p.field(name)
	}
	return p
}

func (p *Place) item() *Place {
	if p == nil {
		return nil
	}
	return p.items
}

// Groups calls found for each group with the path of its place below a field, such as spec.template.spec.networks[*], in the order of paths.
func (p *Place) Groups(at string, found func(path string, group []string)) {
	p.walk(at, map[*Place]bool{}, found)
}

func (p *Place) walk(at string, on map[*Place]bool, found func(string, []string)) {
	if p == nil || on[p] {
		return
	}
	on[p] = true
	defer delete(on, p)
	for _, group := range p.groups {
		found(at, group)
	}
	p.items.walk(at+"[*]", on, found)
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		p.fields[name].walk(at+"."+name, on, found)
	}
}

// Without returns a base without what a request excludes: of a group of which the request sets a member, only the members that it sets. Lists are compared by
// the names of their items. null counts as not set. The base is not changed.
func (p *Place) Without(base, requested any) any {
	if p == nil {
		return base
	}
	switch base := base.(type) {
	case map[string]any:
		of, is := requested.(map[string]any)
		if !is {
			return base
		}
		left := maps.Clone(base)
		for _, group := range p.groups {
			if sets(of, group) {
				maps.DeleteFunc(left, func(key string, _ any) bool { return slices.Contains(group, key) && of[key] == nil })
			}
		}
		for key := range of {
			if below, stays := left[key]; stays {
				left[key] = p.field(key).Without(below, of[key])
			}
		}
		return left
	case []any:
		items, is := requested.([]any)
		if !is {
			return base
		}
		left := slices.Clone(base)
		for i := range left {
			if same := named(items, left[i]); same != nil {
				left[i] = p.item().Without(left[i], same)
			}
		}
		return left
	}
	return base
}

// Settle returns a request without what it excludes itself: of a group of which it has members that the stored value lacks, the members that it has
// from the stored value and that its manifest does not have. A client that adds a field to the object that it has read writes such a request. The manifest
// is nil if it is not known.
func (p *Place) Settle(stored, requested, manifest any) any {
	if p == nil {
		return requested
	}
	switch requested := requested.(type) {
	case map[string]any:
		was, is := stored.(map[string]any)
		if !is {
			return requested
		}
		written, _ := manifest.(map[string]any)
		left := maps.Clone(requested)
		for _, group := range p.groups {
			if slices.ContainsFunc(group, func(key string) bool { return requested[key] != nil && was[key] == nil }) {
				maps.DeleteFunc(left, func(key string, value any) bool {
					return slices.Contains(group, key) && was[key] != nil && written[key] == nil && value != nil
				})
			}
		}
		for key := range left {
			left[key] = p.field(key).Settle(was[key], left[key], written[key])
		}
		return left
	case []any:
		was, is := stored.([]any)
		if !is {
			return requested
		}
		written, _ := manifest.([]any)
		left := slices.Clone(requested)
		for i, item := range left {
			left[i] = p.item().Settle(named(was, item), item, named(written, item))
		}
		return left
	}
	return requested
}

// Keep returns a changed value without what was added to a group of which it had a member and still has it.
func (p *Place) Keep(changed, value any) any {
	if p == nil {
		return changed
	}
	switch changed := changed.(type) {
	case map[string]any:
		was, is := value.(map[string]any)
		if !is {
			return changed
		}
		left := maps.Clone(changed)
		for _, group := range p.groups {
			if slices.ContainsFunc(group, func(key string) bool { return changed[key] != nil && was[key] != nil }) {
				maps.DeleteFunc(left, func(key string, _ any) bool { return slices.Contains(group, key) && was[key] == nil })
			}
		}
		for key := range left {
			left[key] = p.field(key).Keep(left[key], was[key])
		}
		return left
	case []any:
		was, is := value.([]any)
		if !is {
			return changed
		}
		left := slices.Clone(changed)
		for i, item := range left {
			left[i] = p.item().Keep(item, named(was, item))
		}
		return left
	}
	return changed
}

// Restore returns a value in which the base has its alternatives again: the members of a group of which the value has none, and the stored value had others than
// the base. A request that removes an override brings the template's alternative back; one that removes that of the template has removed it.
func (p *Place) Restore(value, stored, base any) any {
	if p == nil {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		was, is := stored.(map[string]any)
		from, has := base.(map[string]any)
		if !is || !has {
			return value
		}
		restored := maps.Clone(value)
		for _, group := range p.groups {
			if sets(value, group) || !sets(was, group) {
				continue
			}
			for _, key := range group {
				if from[key] != nil && was[key] == nil {
					restored[key] = from[key]
				}
			}
		}
		for key := range value {
			restored[key] = p.field(key).Restore(value[key], was[key], from[key])
		}
		return restored
	case []any:
		was, is := stored.([]any)
		from, has := base.([]any)
		if !is || !has {
			return value
		}
		restored := slices.Clone(value)
		for i, item := range value {
			restored[i] = p.item().Restore(item, named(was, item), named(from, item))
		}
		return restored
	}
	return value
}

func sets(value map[string]any, group []string) bool {
	return slices.ContainsFunc(group, func(key string) bool { return value[key] != nil })
}

// named returns the item of a list with the name of another item, nil if there is none.
func named(list []any, item any) any {
	of, _ := item.(map[string]any)
	name, _ := of["name"].(string)
	if name == "" {
		return nil
	}
	for _, each := range list {
		if other, _ := each.(map[string]any); other != nil && other["name"] == name {
			return each
		}
	}
	return nil
}
