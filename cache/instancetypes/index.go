package instancetypes

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// kindRevision is the kind of ControllerRevisions, in addition to the kinds of package sizing.
const kindRevision = "ControllerRevision"

// kinds are the watched kinds.
var kinds = []string{
	sizing.KindInstancetype, sizing.KindClusterInstancetype,
	sizing.KindPreference, sizing.KindClusterPreference,
	kindRevision,
}

// index holds the cached objects by kind.
type index struct {
	kinds map[string]*watching.Index[*unstructured.Unstructured, entry]
	// written is sent on every change, changed on every change that does not concern a revision.
	written, changed await.Signal
}

func newIndex() *index {
	x := &index{kinds: map[string]*watching.Index[*unstructured.Unstructured, entry]{}}
	for _, kind := range kinds {
		x.kinds[kind] = watching.NewIndex(watching.Options[*unstructured.Unstructured, entry]{
			Kind: kind + "s",
			Convert: func(object *unstructured.Unstructured, _ entry, _ bool) (entry, error) {
				if kind == kindRevision {
					return revisionEntry(object)
				}
				return liveEntry(kind, object)
			},
			Changed: func(watching.Update[entry]) {
				x.written.Send()
				if kind != kindRevision {
					x.changed.Send()
				}
			},
		})
	}
	return x
}

func (x *index) hasSynced() bool {
	for _, of := range x.kinds {
		if !of.Synced() {
			return false
		}
	}
	return true
}

// resolve returns the object that a reference refers to.
func (x *index) resolve(r sizing.Reference) (map[string]any, error) {
	if r.Revision != "" {
		revisions := x.kinds[kindRevision]
		revision, found := revisions.Get(r.Namespace, r.Revision)
		switch {
		case !found && !revisions.Listed():
			return nil, errUnsynced
		case !found && r.Loose:
			return nil, fmt.Errorf("ControllerRevision %s, which its status names: %w", r.Revision, errRevision)
		case !found:
			return nil, errRevision
		case !r.Loose || revision.of == r.Name:
			return x.revised(r, revision)
		}
	}
	namespace := r.Namespace
	if r.Kind == sizing.KindClusterInstancetype || r.Kind == sizing.KindClusterPreference {
		namespace = ""
	}
	live, found := x.kinds[r.Kind].Get(namespace, r.Name)
	switch {
	case found:
		return live.object, nil
	case !x.kinds[r.Kind].Synced():
		return nil, errUnsynced
	default:
		return nil, errMissing
	}
}

// revised returns the object that a revision holds. KubeVirt does not store labels and annotations in it. If the live object
// has the same spec, revised returns the live object, with its labels and annotations.
func (x *index) revised(r sizing.Reference, revision entry) (map[string]any, error) {
	var stored wire
	if err := json.Unmarshal([]byte(revision.content.Value()), &stored); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if !sameFamily(r.Kind, stored.Kind) {
		return nil, fmt.Errorf("it holds a %q and no %s", stored.Kind, familyOf(r.Kind))
	}
	if stored.Spec == nil {
		return nil, fmt.Errorf("it holds a %s without a spec", stored.Kind)
	}
	live, found := x.kinds[stored.Kind].Get(stored.Metadata.Namespace, stored.Metadata.Name)
	if found && reflect.DeepEqual(live.object["spec"], stored.object()["spec"]) {
		return live.object, nil
	}
	stored.Metadata.Labels, stored.Metadata.Annotations = nil, nil
	return stored.object(), nil
}

func familyOf(kind string) string {
	if kind == sizing.KindInstancetype || kind == sizing.KindClusterInstancetype {
		return "instance type"
	}
	return "preference"
}

func sameFamily(want, got string) bool {
	switch got {
	case sizing.KindInstancetype, sizing.KindClusterInstancetype, sizing.KindPreference, sizing.KindClusterPreference:
		return familyOf(want) == familyOf(got)
	default:
		return false
	}
}
