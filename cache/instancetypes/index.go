package instancetypes

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	kinds map[string]*watching.Index[metav1.Object, entry]
	// written is sent on every change, changed on every change that does not concern a revision.
	written, changed await.Signal

	contents contents

	mutex sync.Mutex
	// sizes are the sizes of revisions, by their content.
	sizes map[unique.Handle[string]]sized
}

// maximumSizes is the number of sizes of revisions that are retained. There are as many as versions of instance types.
const maximumSizes = 1024

func newIndex() *index {
	x := &index{kinds: map[string]*watching.Index[metav1.Object, entry]{}, sizes: map[unique.Handle[string]]sized{}}
	for _, kind := range kinds {
		x.kinds[kind] = watching.NewIndex(watching.Options[metav1.Object, entry]{
			Kind: kind + "s",
			Convert: func(object metav1.Object, _ entry, _ bool) (entry, error) {
				switch object := object.(type) {
				case *appsv1.ControllerRevision:
					return revisionEntry(object, &x.contents)
				case *unstructured.Unstructured:
					return liveEntry(kind, object)
				}
				return entry{}, fmt.Errorf("the watch of %ss received a %T", kind, object)
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
	found, revision, err := x.find(r)
	switch {
	case err != nil:
		return nil, err
	case revision:
		return x.revised(r, found)
	}
	return found.object, nil
}

// size returns the size that the instance type of a reference has.
func (x *index) size(r sizing.Reference) (sizing.Size, error) {
	found, revision, err := x.find(r)
	switch {
	case err != nil:
		return sizing.Size{}, err
	case !revision:
		return found.sized.Size, found.sized.err
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	known, cached := x.sizes[found.content]
	if !cached {
		stored, err := decode(r, found)
		if known.err = err; err == nil {
			known = sizeOf(stored.Kind, stored.object())
		}
		if len(x.sizes) >= maximumSizes {
			clear(x.sizes)
		}
		x.sizes[found.content] = known
	}
	return known.Size, known.err
}

// find returns the entry that a reference refers to, and whether it is a revision.
func (x *index) find(r sizing.Reference) (found entry, isRevision bool, err error) {
	if r.Revision != "" {
		revisions := x.kinds[kindRevision]
		revision, found := revisions.Get(r.Namespace, r.Revision)
		switch {
		case !found && !revisions.Listed():
			return entry{}, false, errUnsynced
		case !found && r.Loose:
			return entry{}, false, fmt.Errorf("ControllerRevision %s, which its status names: %w", r.Revision, errRevision)
		case !found:
			return entry{}, false, errRevision
		case !r.Loose || revision.of == r.Name:
			return revision, true, nil
		}
	}
	namespace := r.Namespace
	if r.Kind == sizing.KindClusterInstancetype || r.Kind == sizing.KindClusterPreference {
		namespace = ""
	}
	live, exists := x.kinds[r.Kind].Get(namespace, r.Name)
	switch {
	case exists:
		return live, false, nil
	case !x.kinds[r.Kind].Synced():
		return entry{}, false, errUnsynced
	default:
		return entry{}, false, errMissing
	}
}

// revised returns the object that a revision holds. KubeVirt does not store labels and annotations in it. If the live object
// has the same spec, revised returns the live object, with its labels and annotations.
func (x *index) revised(r sizing.Reference, revision entry) (map[string]any, error) {
	stored, err := decode(r, revision)
	if err != nil {
		return nil, err
	}
	live, found := x.kinds[stored.Kind].Get(stored.Metadata.Namespace, stored.Metadata.Name)
	if found && reflect.DeepEqual(live.object["spec"], stored.object()["spec"]) {
		return live.object, nil
	}
	stored.Metadata.Labels, stored.Metadata.Annotations = nil, nil
	return stored.object(), nil
}

// decode returns the object in a revision.
func decode(r sizing.Reference, revision entry) (stored wire, err error) {
	switch err := json.Unmarshal([]byte(revision.content.Value()), &stored); {
	case err != nil:
		return stored, fmt.Errorf("it cannot be read: %w", err)
	case !sameFamily(r.Kind, stored.Kind):
		return stored, fmt.Errorf("it holds a %q and no %s", stored.Kind, familyOf(r.Kind))
	case stored.Spec == nil:
		return stored, fmt.Errorf("it holds a %s without a spec", stored.Kind)
	}
	return stored, nil
}

const familyInstancetype = "instance type"

func familyOf(kind string) string {
	if kind == sizing.KindInstancetype || kind == sizing.KindClusterInstancetype {
		return familyInstancetype
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
