package render

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/internal/mutation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// update is the input of the decision about an update.
type update struct {
	// raw is the object as the client sent it.
	raw            []byte
	object, stored machine.Object
	// fieldManager is the field manager in the request's options.
	fieldManager string
}

func (u update) decide() result {
	p := &mutation.Patch{}
	if _, templated := u.stored.Annotations[contract.AnnotationTemplateRef]; !templated {
		// A reference that is added later renders nothing. The admission policy on the reference denies it.
		return result{patch: p}
	}
	from := u.stored.Record()
	var changed []mutation.Pointer
	if u.isOverlay(from) {
		u.applyOverlay(p)
	} else {
		changed = u.mergeLists(p, from)
		u.retainStamps(p, "labels", u.object.Labels, u.stored.Labels, stampedLabels)
		u.retainStamps(p, "annotations", u.object.Annotations, u.stored.Annotations, stampedAnnotations)
	}
	if u.stored.Annotations[contract.AnnotationPendingObjects] == nil {
		// The manifest was read before the objects of the VM existed. It would hold the VM back for ever.
		release(p, u.object.Spec)
	}
	changed = append(changed, forget(p, u.object.Annotations, from.Sensitive)...)
	if len(p.Operations) > 0 {
		if err := u.restoreClaims(p, changed); err != nil {
			return result{causes: field.ErrorList{field.InternalError(nil, err)}}
		}
	}
	return result{patch: p, warnings: u.forgottenWarnings(from)}
}

var (
	stampedLabels      = []string{contract.LabelTemplate, contract.LabelTemplateNamespace, contract.LabelTemplateRevision}
	stampedAnnotations = []string{contract.AnnotationRendered, contract.AnnotationCreatedBy, contract.AnnotationPendingObjects}
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

// applyOverlay merges the object of the request over the stored one, without the fields that the sender's previous manifest
// contained and the current one does not. The reference and the parameters are not restored: omitting them is a
// change that must be denied.
func (u update) applyOverlay(p *mutation.Patch) {
	before, now, found := u.manifests()
	base := u.stored
	if found {
		base.Spec = withoutDropped(base.Spec, before.Spec, now.Spec)
		base.Labels = withoutDropped(base.Labels, before.Labels, now.Labels)
		base.Annotations = withoutDropped(base.Annotations, before.Annotations, now.Annotations)
	}
	if u.object.Spec == nil {
		p.Set(mutation.Pointer{"spec"}, base.Spec)
	} else {
		(&overlay{patch: p}).apply(mutation.Pointer{"spec"}, base.Spec, u.object.Spec)
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
		return machine.IsContract(key) && !slices.Contains(defaultsAnnotations, key)
	})
	overlayStrings(p, "annotations", u.object.Annotations, annotations, u.stored.Annotations, stampedAnnotations)
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

// mergeLists merges by name, over the stored list, every list that a declarative client sends in the short form of
// its manifest. Such a client compares its manifest with the stored object, finds the longer list of the stored VM,
// and sends its own list again. mergeLists returns the pointers of the lists that it changed.
func (u update) mergeLists(p *mutation.Patch, from machine.Record) (merged []mutation.Pointer) {
	before, now, known := u.manifests()
	eachChangedList(mutation.Pointer{"spec"}, u.stored.Spec, u.object.Spec, func(at mutation.Pointer, stored, requested any) {
		storedList, requestedList, byName := namedLists(stored, requested)
		if !byName {
			return
		}
		previous := lookup(now.Spec, at[1:])
		switch sent := machine.Fingerprint(requested); {
		case from.Lists[at.String()] == sent:
		case !known:
			return
		case previous == true: // claimed by the applier; claims do not have the items of the list
		case previous != nil && machine.Fingerprint(previous) == sent:
			storedList = withoutItems(storedList, lookup(before.Spec, at[1:]), previous)
		default:
			return
		}
		if list := mergeNamed(storedList, requestedList); !reflect.DeepEqual(list, requestedList) {
			p.Set(at, list)
			merged = append(merged, at)
		}
	})
	return merged
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
