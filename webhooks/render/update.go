package render

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/internal/mutation"
	"github.com/vmstencil/stencil/template"
	"github.com/vmstencil/stencil/template/alternatives"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
	"github.com/vmstencil/stencil/webhooks/internal/rerender"
)

// update is the input of the decision about an update.
type update struct {
	// raw is the object as the client sent it.
	raw            []byte
	object, stored machine.Object
	// user sends the request, in the namespace of the VM. lending reports that templates lend their disks.
	user      authenticationv1.UserInfo
	namespace string
	lending   bool
	// fieldManager is the field manager in the request's options.
	fieldManager string
	// find returns the template of a record if its content is still the same, and nil otherwise; original is what it has returned.
	find     func(machine.Record) *template.Compiled
	original *template.Compiled
	// mutated are the names of the mutable parameters that the request changes. original is set then.
	mutated []string
}

func (u update) decide() result {
	p := &mutation.Patch{}
	if _, templated := u.stored.Annotations[contract.AnnotationTemplateRef]; !templated {
		// A reference that is added later renders nothing. The admission policy on the reference denies it.
		return result{patch: p}
	}
	from := u.stored.Record()
	base := u.base(from)
	var changed []mutation.Pointer
	var spec any
	overlay := u.isOverlay(from)
	again, causes := u.rerendered(from, base)
	switch {
	case len(causes) > 0:
		return result{causes: causes}
	case overlay:
		if again != nil {
			u.stored, base = again.Object(u.stored), again.Spec(base, nil)
			u.changeMetadata(p, again, true)
		}
		spec = u.applyOverlay(p, base)
	default:
		spec, changed = u.complete(p, from, base)
		if again != nil {
			spec, base = u.change(p, again, spec), again.Spec(base, nil)
			u.changeMetadata(p, again, false)
		}
		u.retainStamps(p, "labels", u.object.Labels, u.stored.Labels, stampedLabels)
		u.retainStamps(p, "annotations", u.object.Annotations, u.stored.Annotations, stampedAnnotations)
	}
	if causes := u.lost(spec, from); len(causes) > 0 {
		return result{causes: causes}
	}
	if u.stored.Annotations[contract.AnnotationPendingObjects] == nil {
		// The manifest was read before the objects of the VM existed. It would hold the VM back for ever.
		release(p, u.object.Spec)
	}
	changed = append(changed, forget(p, u.object.Annotations, from.Sensitive)...)
	u.note(p, from, base, spec)
	u.grant(p, from, spec)
	if len(p.Operations) > 0 {
		if err := u.restoreClaims(p, changed); err != nil {
			return result{causes: field.ErrorList{field.InternalError(nil, err)}}
		}
	}
	return result{patch: p, warnings: u.forgottenWarnings(from)}
}

// rerendered returns what changes with the mutable parameters that the request changes, nil if it changes none.
func (u update) rerendered(from machine.Record, base any) (*rerender.Change, field.ErrorList) {
	if len(u.mutated) == 0 {
		return nil, nil
	}
	return rerender.NewChange(u.original, u.stored, from, base, u.mutated, u.object.Parameters())
}

// change puts the new values of the template into a complete spec. What the manifest of the sender has stays. It returns the new spec.
func (u update) change(p *mutation.Patch, again *rerender.Change, spec any) any {
	var pinned any
	if _, now, known := u.manifests(); known {
		pinned = values(overrides.Members(now.Spec), overrides.Members(u.object.Spec))
	}
	changed := again.Spec(spec, pinned)
	turn(p, mutation.Pointer{"spec"}, spec, changed)
	return changed
}

// changeMetadata puts the new values of the template into the labels and annotations of a request. A short manifest that is sent as a whole has
// none but its own.
func (u update) changeMetadata(p *mutation.Patch, again *rerender.Change, overlay bool) {
	_, now, known := u.manifests()
	switch {
	case known:
	case overlay:
		return
	default:
		now = machine.Object{}
	}
	for key, pinned := range map[string]map[string]any{"labels": now.Labels, "annotations": now.Annotations} {
		if requested, is := u.object.Metadata[key].(map[string]any); is {
			turn(p, mutation.Pointer{"metadata", key}, requested, overrides.Members(again.Strings(key, requested, pinned)))
		}
	}
}

var (
	stampedLabels      = []string{contract.LabelTemplate, contract.LabelTemplateNamespace, contract.LabelTemplateRevision}
	stampedAnnotations = []string{contract.AnnotationRendered, contract.AnnotationCreatedBy, contract.AnnotationPendingObjects, contract.AnnotationRenderedFor}
)

// isOverlay reports whether the client sent the manifest of a VM owner, with only the differences from the template,
// and not a whole VirtualMachine.
func (u update) isOverlay(from machine.Record) bool {
	return u.object.Spec == nil || u.object.Spec["template"] == nil ||
		from.Sent != "" && machine.Fingerprint(u.object.Spec) == from.Sent && !reflect.DeepEqual(u.object.Spec, u.stored.Spec)
}

// release removes what holds a VM back from a spec.
func release(p *mutation.Patch, spec map[string]any) {
	at := mutation.Pointer{"template", "metadata", "annotations", contract.AnnotationHold}
	if lookup(spec, at) != nil {
		p.Remove(slices.Concat(mutation.Pointer{"spec"}, at))
	}
}

// unheld returns a spec without what holds the VM back, which comes and goes with its objects, and without the maps that are empty then.
func unheld(spec map[string]any) map[string]any {
	for _, at := range []mutation.Pointer{{"template", "metadata", "annotations"}, {"template", "metadata"}} {
		members, is := lookup(spec, at).(map[string]any)
		if !is {
			continue
		}
		left := maps.Clone(members)
		delete(left, contract.AnnotationHold)
		if annotations, is := left["annotations"].(map[string]any); is && len(annotations) == 0 {
			delete(left, "annotations")
		}
		spec = with(spec, at, left)
	}
	if metadata, is := lookup(spec, mutation.Pointer{"template", "metadata"}).(map[string]any); is && len(metadata) == 0 {
		spec = with(spec, mutation.Pointer{"template", "metadata"}, nil)
	}
	return spec
}

// applyOverlay merges the object of the request over the stored one, without the overrides that the sender's previous manifest
// contained and the current one does not. Of a sender without a previous manifest, the current one has all overrides. It returns the new spec. The
// reference and the parameters are not restored: omitting them is a change that must be denied.
func (u update) applyOverlay(p *mutation.Patch, templateBase any) any {
	before, now, found := u.manifests()
	base := u.stored
	switch revert := (overrides.Reverter{Tracked: templateBase != nil}); {
	case found:
		base.Spec = revert.RevertMap(base.Spec, before.Spec, now.Spec, templateBase)
		base.Labels = revert.RevertMap(base.Labels, before.Labels, now.Labels, nil)
		base.Annotations = revert.RevertMap(base.Annotations, before.Annotations, now.Annotations, nil)
	case templateBase != nil:
		if known, is := templateBase.(map[string]any); is {
			base.Spec = known
		}
	}
	fields := alternatives.Spec()
	merged := overrides.Merge(fields.Without(base.Spec, overrides.Members(u.object.Spec)), overrides.Members(u.object.Spec))
	spec, _ := fields.Restore(merged, u.stored.Spec, templateBase).(map[string]any)
	if u.object.Spec == nil {
		p.Set(mutation.Pointer{"spec"}, spec)
	} else {
		turn(p, mutation.Pointer{"spec"}, u.object.Spec, spec)
	}
	metadata := mutation.Pointer{"metadata"}
	for _, key := range []string{"finalizers", "ownerReferences", "generateName"} {
		if u.object.Metadata[key] == nil && u.stored.Metadata[key] != nil && u.stored.Metadata["deletionTimestamp"] == nil {
			p.Set(metadata.Child(key), u.stored.Metadata[key])
		}
	}
	overlayStrings(p, "labels", u.object.Labels, base.Labels, u.stored.Labels, stampedLabels)
	annotations := maps.Clone(base.Annotations)
	maps.DeleteFunc(annotations, func(key string, _ any) bool {
		return template.IsContract(key) && !slices.Contains(defaultsAnnotations, key)
	})
	overlayStrings(p, "annotations", u.object.Annotations, annotations, u.stored.Annotations, stampedAnnotations)
	return spec
}

// defaultsAnnotations are the annotations of the defaults webhook. It restores them itself, but too late to recognise
// an update that changes nothing.
var defaultsAnnotations = []string{contract.AnnotationDefaultsApplied, contract.AnnotationDefaultsFailed}

// overlayStrings adds the retained labels or annotations that the request omits, and restores the stored values of the
// stamps.
func overlayStrings(p *mutation.Patch, key string, requested, base, stored map[string]any, stamps []string) {
	add := map[string]any{}
	for k, v := range base {
		if requested[k] == nil {
			add[k] = v
		}
	}
	for _, stamp := range stamps {
		if was := stored[stamp]; was != nil && requested[stamp] != was {
			add[stamp] = was
		}
	}
	addStrings(p, key, requested, add)
}

// retainStamps restores the stamps to their stored state, and changes nothing else.
func (u update) retainStamps(p *mutation.Patch, key string, requested, stored map[string]any, stamps []string) {
	add := map[string]any{}
	for _, stamp := range stamps {
		switch was, found := stored[stamp]; {
		case found && requested[stamp] != was:
			add[stamp] = was
		case !found && requested[stamp] != nil:
			p.Remove(mutation.Pointer{"metadata", key, stamp})
		}
	}
	addStrings(p, key, requested, add)
}

func addStrings(p *mutation.Patch, key string, requested, add map[string]any) {
	at := mutation.Pointer{"metadata", key}
	if requested == nil {
		if len(add) > 0 {
			p.Set(at, add)
		}
		return
	}
	for _, k := range slices.Sorted(maps.Keys(add)) {
		p.Set(at.Child(k), add[k])
	}
}

// complete merges by name, over the stored list, every list that a declarative client sends in the short form of
// its manifest. Such a client compares its manifest with the stored object, finds the longer list of the stored VM,
// and sends its own list again. Where the request has removed an override, complete adds what the base has. It returns the new spec, and the
// pointers of the lists that it merged.
func (u update) complete(p *mutation.Patch, from machine.Record, base any) (spec any, merged []mutation.Pointer) {
	before, now, known := u.manifests()
	revert := overrides.Reverter{Tracked: base != nil}
	fields := alternatives.Spec()
	requested, _ := fields.Settle(u.stored.Spec, u.object.Spec, overrides.Members(now.Spec)).(map[string]any)
	eachChangedList(mutation.Pointer{"spec"}, u.stored.Spec, requested, func(at mutation.Pointer, stored, sent any) {
		storedList, sentList, byName := overrides.NamedLists(stored, sent)
		if !byName {
			return
		}
		previous := lookup(now.Spec, at[1:])
		under := overrides.At(base, at[1:]...)
		inBase, _ := under.([]any)
		fingerprint := machine.Fingerprint(sent)
		switch {
		// Of an applier that claims the list, the items of its manifests are not known.
		case known && (previous == true || previous != nil && machine.Fingerprint(previous) == fingerprint):
			storedList, _ = revert.Revert(storedList, lookup(before.Spec, at[1:]), previous, under).([]any)
		case from.Lists[at.String()] != fingerprint:
			return
		case inBase != nil:
			storedList = inBase
		}
		storedList, _ = fields.At(at[1:]...).Without(storedList, sentList).([]any)
		list := overrides.MergeNamed(storedList, sentList)
		if reflect.DeepEqual(list, sentList) {
			return
		}
		requested = with(requested, at[1:], list)
		merged = append(merged, at)
	})
	if base == nil {
		before, now = machine.Object{}, machine.Object{}
	} else if !known {
		before.Spec, now.Spec = u.claims()
	}
	restored := revert.Restore(u.stored.Spec, requested, overrides.Members(before.Spec), overrides.Members(now.Spec), base)
	completed, _ := fields.Restore(fields.Without(restored, requested), u.stored.Spec, base).(map[string]any)
	turn(p, mutation.Pointer{"spec"}, u.object.Spec, completed)
	return completed, merged
}

// claims returns the fields of the spec that the sender claims by updates: before and after this one.
func (u update) claims() (before, now map[string]any) {
	return machine.MapAt(claimed(u.stored.Metadata["managedFields"], u.fieldManager, "Update"), "spec"),
		machine.MapAt(claimed(u.object.Metadata["managedFields"], u.fieldManager, "Update"), "spec")
}

// turn adds to a patch what turns one value into another.
func turn(p *mutation.Patch, at mutation.Pointer, from, to any) {
	before, wasMap := from.(map[string]any)
	after, isMap := to.(map[string]any)
	switch {
	case reflect.DeepEqual(from, to):
	case !wasMap || !isMap:
		p.Set(at, to)
	default:
		for _, key := range slices.Sorted(maps.Keys(before)) {
			if _, stays := after[key]; !stays {
				p.Remove(at.Child(key))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(after)) {
			turn(p, at.Child(key), before[key], after[key])
		}
	}
}

// values returns what a manifest has: the manifest itself, or of one that consists of claims, the values of the object.
func values(manifest, object any) any {
	claims, is := manifest.(map[string]any)
	if manifest == true {
		return object
	} else if !is {
		return manifest
	}
	of, _ := object.(map[string]any)
	found := make(map[string]any, len(claims))
	for key, below := range claims {
		found[key] = values(below, of[key])
	}
	return found
}

// with returns a tree with another value at a place that exists. Only the maps on the way are copied.
func with(in map[string]any, at mutation.Pointer, value any) map[string]any {
	changed := maps.Clone(in)
	if len(at) > 1 {
		below, _ := in[at[0]].(map[string]any)
		value = with(below, at[1:], value)
	}
	changed[at[0]] = value
	return changed
}

// note writes what the base has where the new spec differs from it.
func (u update) note(p *mutation.Patch, from machine.Record, base, spec any) {
	known, is := base.(map[string]any)
	changed, isObject := spec.(map[string]any)
	text := machine.StringAt(u.stored.Annotations, contract.AnnotationOverrides)
	if is && isObject {
		text = overrides.Compare(unheld(known), unheld(changed), from.Base.Secret).String()
	}
	at := mutation.Pointer{"metadata", "annotations", contract.AnnotationOverrides}
	switch sent, found := u.object.Annotations[contract.AnnotationOverrides]; {
	case text == "" && found:
		p.Remove(at)
	case text != "" && sent != text && u.object.Annotations != nil:
		p.Set(at, text)
	}
}

// eachChangedList walks the maps that both trees have, and calls found for each pair of lists that differ.
func eachChangedList(at mutation.Pointer, stored, requested map[string]any, found func(at mutation.Pointer, stored, requested any)) {
	for _, key := range slices.Sorted(maps.Keys(requested)) {
		switch value := requested[key].(type) {
		case map[string]any:
			if below, ok := stored[key].(map[string]any); ok {
				eachChangedList(at.Child(key), below, value, found)
			}
		case []any:
			if list, ok := stored[key].([]any); ok && !reflect.DeepEqual(list, value) {
				found(at.Child(key), list, value)
			}
		}
	}
}

func lookup(in map[string]any, at mutation.Pointer) any {
	var value any = in
	for _, key := range at {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[key]
	}
	return value
}

func (u update) forgottenWarnings(from machine.Record) []string {
	var again []string
	for _, name := range from.Sensitive {
		if _, sent := u.object.Annotations[contract.AnnotationParameterPrefix+name]; sent {
			again = append(again, name)
		}
	}
	if len(again) == 0 {
		return nil
	}
	return []string{"sensitive parameters are used once, at creation, and not stored; removed again: " + strings.Join(again, ", ")}
}
