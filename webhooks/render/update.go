package render

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
)

// update is everything that the answer to one update depends on.
type update struct {
	// raw is the object as it was sent.
	raw            []byte
	object, stored submitted
	// fieldManager is who updates, as the request's options say.
	fieldManager string
}

func (u update) decide() outcome {
	p := &patch{}
	if _, templated := u.stored.annotations[contract.AnnotationTemplateRef]; !templated {
		// A reference that is added later renders nothing; the policy on the
		// reference refuses it.
		return outcome{patch: p}
	}
	from := provenanceOf(u.stored)
	if u.isOverlay(from) {
		u.lay(p)
	} else {
		u.mergeLists(p, from)
		u.keepStamps(p, "labels", u.object.labels, u.stored.labels, stampedLabels)
		u.keepStamps(p, "annotations", u.object.annotations, u.stored.annotations, stampedAnnotations)
	}
	forget(p, u.object.annotations, from.Sensitive)
	if len(p.operations) > 0 {
		if err := u.keepManagers(p); err != nil {
			return outcome{causes: field.ErrorList{field.InternalError(nil, err)}}
		}
	}
	return outcome{patch: p, warnings: u.forgottenWarnings(from)}
}

var (
	stampedLabels      = []string{contract.LabelTemplate, contract.LabelTemplateNamespace, contract.LabelTemplateRevision}
	stampedAnnotations = []string{contract.AnnotationRendered}
)

// isOverlay says whether what was sent is the manifest of a VM owner, who writes
// only what differs from the template, and not a whole VirtualMachine.
func (u update) isOverlay(from provenance) bool {
	return u.object.spec == nil || u.object.spec["template"] == nil ||
		from.Sent != "" && fingerprint(u.object.spec) == from.Sent && !reflect.DeepEqual(u.object.spec, u.stored.spec)
}

// lay lays what was sent over what is stored. The reference and the parameters
// are left as they were sent: leaving them out is a change that must be refused,
// not repaired.
func (u update) lay(p *patch) {
	merge := overlay{patch: p}
	if u.object.spec == nil {
		p.set(pointer{"spec"}, u.stored.spec)
	} else {
		merge.apply(pointer{"spec"}, u.stored.spec, u.object.spec)
	}
	metadata := pointer{"metadata"}
	for _, key := range []string{"finalizers", "ownerReferences", "generateName"} {
		if u.object.metadata[key] == nil && u.stored.metadata[key] != nil && u.stored.metadata["deletionTimestamp"] == nil {
			p.set(metadata.child(key), u.stored.metadata[key])
		}
	}
	u.layStrings(p, "labels", u.object.labels, u.stored.labels, stampedLabels)
	annotations := maps.Clone(u.stored.annotations)
	maps.DeleteFunc(annotations, func(key string, _ any) bool { return isContract(key) && key != contract.AnnotationRendered })
	u.layStrings(p, "annotations", u.object.annotations, annotations, stampedAnnotations)
}

// layStrings adds the stored labels or annotations that were not sent, and puts
// the stamps back as they were.
func (u update) layStrings(p *patch, key string, written, stored map[string]any, stamps []string) {
	add := map[string]any{}
	for k, v := range stored {
		if written[k] == nil || slices.Contains(stamps, k) && written[k] != v {
			add[k] = v
		}
	}
	p.addStrings(key, written, add)
}

// keepStamps puts the stamps back as they were, and touches nothing else.
func (u update) keepStamps(p *patch, key string, written, stored map[string]any, stamps []string) {
	add := map[string]any{}
	for _, stamp := range stamps {
		switch was, found := stored[stamp]; {
		case found && written[stamp] != was:
			add[stamp] = was
		case !found && written[stamp] != nil:
			p.remove(pointer{"metadata", key, stamp})
		}
	}
	p.addStrings(key, written, add)
}

func (p *patch) addStrings(key string, written, add map[string]any) {
	at := pointer{"metadata", key}
	if written == nil {
		if len(add) > 0 {
			p.set(at, add)
		}
		return
	}
	for _, k := range slices.Sorted(maps.Keys(add)) {
		p.set(at.child(k), add[k])
	}
}

// mergeLists merges by name, over the stored list, every list that a declarative
// client sent in the short form of its manifest: such a client compares its
// manifest with the stored object, finds the longer list of the stored VM to be
// different, and sends its own again.
func (u update) mergeLists(p *patch, from provenance) {
	applied := lastAppliedSpec(u.object)
	before := lastAppliedSpec(u.stored)
	owned := ownedBy(u.object.metadata["managedFields"], u.fieldManager)
	eachChangedList(pointer{"spec"}, u.stored.spec, u.object.spec, func(at pointer, stored, written any) {
		storedList, writtenList, byName := namedLists(stored, written)
		if !byName {
			return
		}
		switch sent := fingerprint(written); {
		case from.Lists[at.String()] == sent:
		case sameList(lookup(applied, at[1:]), sent):
			// What the manifest named before and names no more was taken out.
			storedList = withoutDropped(storedList, lookup(before, at[1:]), writtenList)
		case owned(at):
		default:
			return
		}
		merged := mergeNamed(storedList, writtenList)
		if !reflect.DeepEqual(merged, writtenList) {
			p.set(at, merged)
		}
	})
}

func sameList(manifest any, fingerprintOfSent string) bool {
	_, isList := manifest.([]any)
	return isList && fingerprint(manifest) == fingerprintOfSent
}

// withoutDropped returns the stored list without the items that the previous
// manifest named and the new one does not.
func withoutDropped(stored []any, before any, written []any) []any {
	beforeList, _ := before.([]any)
	named := func(list []any, name string) bool {
		return slices.ContainsFunc(list, func(item any) bool { return nameOf(item) == name })
	}
	return slices.DeleteFunc(slices.Clone(stored), func(item any) bool {
		return named(beforeList, nameOf(item)) && !named(written, nameOf(item))
	})
}

// eachChangedList walks what both trees have and calls found for each pair of
// lists that differ.
func eachChangedList(at pointer, stored, written map[string]any, found func(at pointer, stored, written any)) {
	for _, key := range slices.Sorted(maps.Keys(written)) {
		switch value := written[key].(type) {
		case map[string]any:
			if below, ok := stored[key].(map[string]any); ok {
				eachChangedList(at.child(key), below, value, found)
			}
		case []any:
			if list, ok := stored[key].([]any); ok && !reflect.DeepEqual(list, value) {
				found(at.child(key), list, value)
			}
		}
	}
}

// lastAppliedSpec is the spec of the manifest that `kubectl apply` keeps.
func lastAppliedSpec(o submitted) map[string]any {
	manifest, err := decode([]byte(stringAt(o.annotations, lastAppliedAnnotation)))
	if err != nil {
		return nil
	}
	kept, _ := read(manifest)
	return kept.spec
}

func lookup(in map[string]any, at pointer) any {
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

// ownedBy says of a place whether the field manager owns it through server-side
// apply, which is how a request that comes from `kubectl apply --server-side` is
// known: admission is shown the merged object and not what was applied.
func ownedBy(managedFields any, fieldManager string) func(pointer) bool {
	entries, _ := managedFields.([]any)
	var owned map[string]any
	for _, entry := range entries {
		e, _ := entry.(map[string]any)
		if fieldManager != "" && stringAt(e, "manager") == fieldManager && stringAt(e, "operation") == "Apply" && stringAt(e, "subresource") == "" {
			owned, _ = e["fieldsV1"].(map[string]any)
		}
	}
	return func(at pointer) bool {
		fields := make(pointer, len(at))
		for i, key := range at {
			fields[i] = "f:" + key
		}
		return owned != nil && lookup(owned, fields) != nil
	}
}

// managerOf reads the field manager out of the options of an update. The API
// server gives a patch, server-side apply among them, the options of an update
// too.
func managerOf(options []byte) string {
	var o struct {
		FieldManager string `json:"fieldManager"`
	}
	if json.Unmarshal(options, &o) != nil {
		return ""
	}
	return o.FieldManager
}

func (u update) forgottenWarnings(from provenance) []string {
	var again []string
	for _, name := range from.Sensitive {
		if _, sent := u.object.annotations[contract.AnnotationParameterPrefix+name]; sent {
			again = append(again, name)
		}
	}
	if len(again) == 0 {
		return nil
	}
	return []string{"sensitive parameters are used once, at creation, and not stored; removed again: " + strings.Join(again, ", ")}
}
