package render

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/machine"
)

// update is everything that the answer to one update depends on.
type update struct {
	// raw is the object as it was sent.
	raw            []byte
	object, stored machine.Machine
	// fieldManager is who updates, as the request's options say.
	fieldManager string
}

func (u update) decide() outcome {
	p := &patch{}
	if _, templated := u.stored.Annotations[contract.AnnotationTemplateRef]; !templated {
		// A reference that is added later renders nothing; the policy on the
		// reference refuses it.
		return outcome{patch: p}
	}
	from := u.stored.Record()
	if u.isOverlay(from) {
		u.lay(p)
	} else {
		u.mergeLists(p, from)
		u.keepStamps(p, "labels", u.object.Labels, u.stored.Labels, stampedLabels)
		u.keepStamps(p, "annotations", u.object.Annotations, u.stored.Annotations, stampedAnnotations)
	}
	forget(p, u.object.Annotations, from.Sensitive)
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
func (u update) isOverlay(from machine.Record) bool {
	return u.object.Spec == nil || u.object.Spec["template"] == nil ||
		from.Sent != "" && machine.Fingerprint(u.object.Spec) == from.Sent && !reflect.DeepEqual(u.object.Spec, u.stored.Spec)
}

// lay lays what was sent over what is stored. The reference and the parameters
// are left as they were sent: leaving them out is a change that must be refused,
// not repaired.
func (u update) lay(p *patch) {
	merge := overlay{patch: p}
	if u.object.Spec == nil {
		p.set(pointer{"spec"}, u.stored.Spec)
	} else {
		merge.apply(pointer{"spec"}, u.stored.Spec, u.object.Spec)
	}
	metadata := pointer{"metadata"}
	for _, key := range []string{"finalizers", "ownerReferences", "generateName"} {
		if u.object.Metadata[key] == nil && u.stored.Metadata[key] != nil && u.stored.Metadata["deletionTimestamp"] == nil {
			p.set(metadata.child(key), u.stored.Metadata[key])
		}
	}
	u.layStrings(p, "labels", u.object.Labels, u.stored.Labels, stampedLabels)
	annotations := maps.Clone(u.stored.Annotations)
	maps.DeleteFunc(annotations, func(key string, _ any) bool { return machine.IsContract(key) && key != contract.AnnotationRendered })
	u.layStrings(p, "annotations", u.object.Annotations, annotations, stampedAnnotations)
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
func (u update) mergeLists(p *patch, from machine.Record) {
	applied := lastAppliedSpec(u.object)
	before := lastAppliedSpec(u.stored)
	owned := ownedBy(u.object.Metadata["managedFields"], u.fieldManager)
	eachChangedList(pointer{"spec"}, u.stored.Spec, u.object.Spec, func(at pointer, stored, written any) {
		storedList, writtenList, byName := namedLists(stored, written)
		if !byName {
			return
		}
		switch sent := machine.Fingerprint(written); {
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
	return isList && machine.Fingerprint(manifest) == fingerprintOfSent
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
func lastAppliedSpec(o machine.Machine) map[string]any {
	manifest, err := machine.Decode([]byte(machine.StringAt(o.Annotations, lastAppliedAnnotation)))
	if err != nil {
		return nil
	}
	kept, _ := machine.Read(manifest)
	return kept.Spec
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
		if fieldManager != "" && machine.StringAt(e, "manager") == fieldManager && machine.StringAt(e, "operation") == "Apply" && machine.StringAt(e, "subresource") == "" {
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
