package overrides

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/approval"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// MaxNote is the maximum size of a note, in bytes. Values that exceed it are left out, the largest first.
const MaxNote = 16 << 10

// Reasons why a note does not hold a value.
const (
	// Secret of a value that contains a sensitive or a generated parameter.
	Secret Reason = "Secret"
	// TooLarge of a value that exceeds the size of a note.
	TooLarge Reason = "TooLarge"
)

// Reason is why a note does not hold a value.
type Reason string

// Unknown stands in a base for a value that is not known.
type Unknown struct{ Reason Reason }

// Note lists the places of a spec that differ from the base, in the syntax of overrides of approvals, with what the base has there.
type Note map[string]Covered

// Covered is what the base has at a place: a value, nothing, or a value that the note does not hold.
type Covered struct {
	Value  any    `json:"value,omitempty"`
	Hidden Reason `json:"hidden,omitempty"`
}

// ParseNote reads a note; a text of another form is an empty one.
func ParseNote(text string) Note {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var n Note
	if decoder.Decode(&n) != nil {
		return nil
	}
	return n
}

// String returns the text of a note, empty for an empty one.
func (n Note) String() string {
	if len(n) == 0 {
		return ""
	}
	raw, err := json.Marshal(n)
	if err != nil {
		panic("encoding decoded JSON: " + err.Error())
	}
	return string(raw)
}

// Base returns the base of a spec with this note: a map, or an Unknown if the note does not fit its size. It shares no maps and lists with the spec.
func (n Note) Base(spec map[string]any, started machine.Base) any {
	if all, found := n[root]; found {
		return Unknown{all.Hidden}
	}
	base := runtime.DeepCopyJSONValue(spec)
	for _, text := range slices.Sorted(maps.Keys(n)) {
		if place, err := approval.ParseOverride(text); err == nil && place.Path()[0] == approval.Field(root) {
			base = put(base, place.Path()[1:], n[text])
		}
	}
	of, _ := base.(map[string]any)
	delete(of, "runStrategy")
	delete(of, "running")
	if started.RunStrategy != "" {
		of["runStrategy"] = started.RunStrategy
	}
	if started.Running != nil {
		of["running"] = *started.Running
	}
	return of
}

// put returns a value after it has put something else at a place in it.
func put(value any, at approval.Path, covered Covered) any {
	if len(at) == 0 {
		if covered.Hidden != "" {
			return Unknown{covered.Hidden}
		}
		return covered.Value
	}
	if value == nil && covered.Hidden == "" && covered.Value == nil {
		return nil
	}
	name, item := at[0].Name()
	if item {
		return putItem(value, name, at[1:], covered)
	}
	object, _ := value.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	if object[name] = put(object[name], at[1:], covered); object[name] == nil {
		delete(object, name)
	}
	return object
}

func putItem(value any, name string, at approval.Path, covered Covered) any {
	list, _ := value.([]any)
	position := slices.IndexFunc(list, func(item any) bool { return NameOf(item) == name })
	var before any
	if position >= 0 {
		before = list[position]
	}
	switch changed := put(before, at, covered); {
	case changed == nil && position >= 0:
		return slices.Delete(list, position, position+1)
	case changed == nil:
		return value
	case position >= 0:
		list[position] = changed
		return list
	default:
		return append(list, changed)
	}
}

// Compare returns the note of a spec with this base. secret are the places that contain sensitive or generated values.
func Compare(base, spec map[string]any, secret []string) Note {
	c := comparison{note: Note{}}
	for _, text := range secret {
		place, err := approval.ParseOverride(text)
		if err != nil {
			place, _ = approval.ParseOverride(root)
		}
		c.secret = append(c.secret, place.Path())
	}
	c.members(approval.Path{approval.Field(root)}, base, spec)
	return c.note.limited()
}

// root is the place that stands for all.
const root = "spec"

// limited returns the note without the values that exceed its size.
func (n Note) limited() Note {
	if all, found := n[root]; found {
		return Note{root: all}
	}
	sizes := make(map[string]int, len(n))
	total := 0
	for place, covered := range n {
		raw, err := json.Marshal(covered)
		if err != nil {
			panic("encoding decoded JSON: " + err.Error())
		}
		sizes[place] = len(raw)
		total += len(place) + len(raw) + len(`"":,`)
	}
	places := slices.SortedFunc(maps.Keys(n), func(a, b string) int {
		if sizes[a] != sizes[b] {
			return sizes[b] - sizes[a]
		}
		return strings.Compare(a, b)
	})
	const hidden = len(`{"hidden":"TooLarge"}`)
	for _, place := range places {
		if total <= MaxNote {
			break
		}
		if sizes[place] > hidden {
			total -= sizes[place] - hidden
			n[place] = Covered{Hidden: TooLarge}
		}
	}
	if total > MaxNote {
		return Note{root: {Hidden: TooLarge}}
	}
	return n
}

type comparison struct {
	note   Note
	secret []approval.Path
}

func (c *comparison) compare(at approval.Path, base, value any) {
	baseMap, baseIsMap := base.(map[string]any)
	valueMap, isMap := value.(map[string]any)
	baseList, list, named := NamedLists(base, value)
	switch unknown, is := base.(Unknown); {
	case is:
		c.add(at, Covered{Hidden: unknown.Reason})
	case base == nil && value == nil:
	case base == nil:
		c.add(at, Covered{})
	case baseIsMap && isMap:
		c.members(at, baseMap, valueMap)
	case named:
		c.items(at, baseList, list)
	case !reflect.DeepEqual(base, value):
		c.cover(at, base)
	}
}

func (c *comparison) items(at approval.Path, base, list []any) {
	inBase, inList := byName(base), byName(list)
	for _, item := range base {
		c.compare(child(at, approval.Item(NameOf(item))), item, inList[NameOf(item)])
	}
	for _, item := range list {
		if inBase[NameOf(item)] == nil {
			c.add(child(at, approval.Item(NameOf(item))), Covered{})
		}
	}
}

func (c *comparison) members(at approval.Path, base, value map[string]any) {
	for key := range base {
		if !isRun(at, key) {
			c.compare(child(at, approval.Field(key)), base[key], value[key])
		}
	}
	for key := range value {
		if base[key] == nil && !isRun(at, key) {
			c.compare(child(at, approval.Field(key)), nil, value[key])
		}
	}
}

// isRun reports whether a member starts and stops the VirtualMachine. The record holds what the template has there.
func isRun(parent approval.Path, key string) bool {
	return len(parent) == 1 && (key == "runStrategy" || key == "running")
}

// cover adds a place where the base has a value.
func (c *comparison) cover(at approval.Path, base any) {
	covered := Covered{Value: base}
	unknown := false
	unknowns(nil, base, func(_ approval.Path, reason Reason) { covered, unknown = Covered{Hidden: reason}, true })
	if !unknown && slices.ContainsFunc(c.secret, func(secret approval.Path) bool { return related(at, secret) }) {
		covered = Covered{Hidden: Secret}
	}
	c.add(at, covered)
}

func (c *comparison) add(at approval.Path, covered Covered) {
	text := at.String()
	if _, err := approval.ParseOverride(text); err != nil {
		text, covered = root, Covered{Hidden: TooLarge}
	}
	c.note[text] = covered
}

// related reports whether one of two places contains the other.
func related(a, b approval.Path) bool {
	shorter := min(len(a), len(b))
	return slices.Equal(a[:shorter], b[:shorter])
}

// Unknowns returns the places of a spec that are unknown, and why.
func Unknowns(spec any) map[string]Reason {
	found := map[string]Reason{}
	unknowns(approval.Path{approval.Field(root)}, spec, func(at approval.Path, reason Reason) { found[at.String()] = reason })
	return found
}

// Places returns the places of a spec that are unknown as paths of overrides. A list without names counts as one place.
func Places(spec any) []string {
	found := map[string]bool{}
	unknowns(approval.Path{approval.Field(root)}, spec, func(at approval.Path, _ Reason) {
		text := at.String()
		for i := range at {
			if _, err := approval.ParseOverride(text); err == nil {
				break
			}
			text = at[:len(at)-1-i].String()
		}
		found[text] = true
	})
	return slices.Sorted(maps.Keys(found))
}

func unknowns(at approval.Path, value any, found func(approval.Path, Reason)) {
	switch value := value.(type) {
	case Unknown:
		found(at, value.Reason)
	case map[string]any:
		for key, below := range value {
			unknowns(child(at, approval.Field(key)), below, found)
		}
	case []any:
		named := UniquelyNamed(value)
		for i, item := range value {
			step := approval.Index(i)
			if named {
				step = approval.Item(NameOf(item))
			}
			unknowns(child(at, step), item, found)
		}
	}
}

func child(at approval.Path, step approval.Step) approval.Path {
	return append(at[:len(at):len(at)], step)
}
