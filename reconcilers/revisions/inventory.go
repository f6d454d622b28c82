package revisions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/revision"
)

// entry is one stored copy. There may be tens of thousands: only those that have to be written retain their object, encoded.
type entry struct {
	types.NamespacedName
	class      revision.Class
	action     revision.Action
	version    revision.Version
	message    string
	references []revision.Reference
	owners     []metav1.OwnerReference
	finalizers bool
	deleting   bool
	bytes      int
	// encoded is the ControllerRevision as it was read, without managedFields, in protobuf; nil if it is current. It takes half of the memory.
	encoded []byte
	// of identifies the object that the copy was made of, and its generation.
	of revision.Identity
}

// orphan reports whether nothing refers to the copy.
func (e *entry) orphan() bool { return len(e.references) == 0 }

// old reports whether the copy is not in the target version with its labels.
func (e *entry) old() bool { return e.class != revision.Current }

// inventory is what one pass over the cluster found.
type inventory struct {
	// entries are all stored copies, by namespace and name.
	entries []*entry
	// backups are the backups of this package.
	backups []storedBackup
	// references are those to each ControllerRevision.
	references map[types.NamespacedName][]revision.Reference
	// dangling are references to ControllerRevisions that do not exist.
	dangling []finding
	// mismatched are VirtualMachines whose spec and status refer to different copies. unpinned are snapshots of which a field refers to no copy: a
	// restored VirtualMachine has the live object.
	mismatched, unpinned []finding
	// unread are objects whose references cannot be read.
	unread []finding
	state  state
}

// storedBackup is a backup as far as it is needed to find out what it is needed for.
type storedBackup struct {
	types.NamespacedName
	created time.Time
	// replaced is true if a ControllerRevision has the name of the original. It may still be the original.
	replaced bool
	original string
}

// due reports whether heal has anything to do with the backup.
func (b storedBackup) due(oldest time.Time) bool { return !b.replaced || b.created.Before(oldest) }

// finding is an object with what was found.
type finding struct {
	namespace, object, message string
}

func (f finding) String() string { return f.namespace + "/" + f.object + ": " + f.message }

// gather reads the inventory. Only copies that no reference named so far wait for the start revisions among the ControllerRevisions.
func (c *cluster) gather(ctx context.Context, selector labels.Selector) (*inventory, error) {
	inv := &inventory{references: map[types.NamespacedName][]revision.Reference{}, state: newState(selector)}
	if err := c.gatherHolders(ctx, inv); err != nil {
		return nil, err
	}
	if err := c.gatherState(ctx, &inv.state); err != nil {
		return nil, err
	}
	var undecided []*entry
	existing := map[types.NamespacedName]bool{}
	if err := c.eachRevision(ctx, func(r *appsv1.ControllerRevision) error {
		key := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
		referred := len(inv.references[key]) > 0
		switch {
		case isBackup(r):
			b := storedBackup{NamespacedName: key, created: r.CreationTimestamp.Time}
			if o, err := readBackup(r); err == nil {
				b.original = o.Name
			}
			inv.backups = append(inv.backups, b)
			return nil
		case revision.IsStartRevision(r.Name):
			inv.addStartRevision(r)
			return nil
		case !referred && !revision.Concerns(r.Labels, r.Data.Raw):
			return nil
		}
		if referred {
			existing[key] = true
		}
		e := newEntry(r)
		inv.entries = append(inv.entries, e)
		if e.decide(c.decider, r, inv.references[key]); e.action != revision.Retain {
			if err := e.retain(r); err != nil {
				return err
			}
		}
		if e.class == revision.OldSpec {
			undecided = append(undecided, e)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for _, e := range undecided {
		r, err := e.read()
		if err != nil {
			return nil, err
		}
		e.decide(c.decider, r, inv.references[e.NamespacedName])
	}
	for _, e := range inv.entries {
		e.references = inv.references[e.NamespacedName]
		existing[e.NamespacedName] = true
	}
	for i, b := range inv.backups {
		inv.backups[i].replaced = existing[types.NamespacedName{Namespace: b.Namespace, Name: b.original}]
	}
	inv.findDangling(existing)
	return inv, nil
}

func newEntry(r *appsv1.ControllerRevision) *entry {
	return &entry{
		NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, owners: r.OwnerReferences,
		finalizers: len(r.Finalizers) > 0, deleting: r.DeletionTimestamp != nil, bytes: len(r.Data.Raw),
	}
}

// retain stores the ControllerRevision.
func (e *entry) retain(r *appsv1.ControllerRevision) (err error) {
	r.ManagedFields = nil
	if e.encoded, err = r.Marshal(); err != nil {
		return fmt.Errorf("encoding ControllerRevision %s: %w", e.NamespacedName, err)
	}
	return nil
}

// read returns the ControllerRevision that was retained.
func (e *entry) read() (*appsv1.ControllerRevision, error) {
	r := &appsv1.ControllerRevision{}
	if err := r.Unmarshal(e.encoded); err != nil {
		return nil, fmt.Errorf("decoding ControllerRevision %s: %w", e.NamespacedName, err)
	}
	return r, nil
}

func (e *entry) decide(decider *revision.Decider, r *appsv1.ControllerRevision, references []revision.Reference) {
	d := decider.Decide(revision.Revision{Name: r.Name, Labels: r.Labels, Data: r.Data.Raw}, references)
	e.class, e.action, e.version, e.message, e.of = d.Class, d.Action, d.Version, d.Message, d.Identity
}

// gatherHolders reads the references of VirtualMachines and of snapshots.
func (c *cluster) gatherHolders(ctx context.Context, inv *inventory) error {
	if err := c.each(ctx, virtualMachines, func(vm *unstructured.Unstructured) error {
		inv.state.addVirtualMachine(vm)
		inv.add(revision.Holder{Kind: revision.VirtualMachine, Name: vm.GetName()}, vm.GetNamespace(), vm.Object)
		return nil
	}); err != nil {
		return err
	}
	return c.each(ctx, snapshotContents, func(content *unstructured.Unstructured) error {
		vm, found, err := unstructured.NestedMap(content.Object, "spec", "source", "virtualMachine")
		if err != nil || !found {
			return nil //nolint:nilerr // A content of another source refers to nothing.
		}
		name, _, _ := unstructured.NestedString(content.Object, "spec", "virtualMachineSnapshotName")
		inv.add(revision.Holder{Kind: revision.Snapshot, Name: name}, content.GetNamespace(), vm)
		return nil
	})
}

// addStartRevision adds the references of a VirtualMachine as it was started.
func (inv *inventory) addStartRevision(r *appsv1.ControllerRevision) {
	var vm map[string]any
	if err := json.Unmarshal(r.Data.Raw, &vm); err != nil {
		inv.unread = append(inv.unread, finding{r.Namespace, "ControllerRevision " + r.Name, err.Error()})
		return
	}
	inv.add(revision.Holder{Kind: revision.StartRevision, Name: r.Name}, r.Namespace, vm)
}

// add adds the references of one VirtualMachine.
func (inv *inventory) add(holder revision.Holder, namespace string, vm map[string]any) {
	found, err := revision.ReferencesOf(holder, namespace, vm)
	described := string(holder.Kind) + " " + holder.Name
	if err != nil {
		inv.unread = append(inv.unread, finding{namespace, described, err.Error()})
		return
	}
	for _, field := range found.Mismatched {
		inv.mismatched = append(inv.mismatched, finding{namespace, described, field + " and its status refer to different ControllerRevisions"})
	}
	if holder.Kind == revision.Snapshot {
		for _, field := range found.Unpinned {
			inv.unpinned = append(inv.unpinned, finding{namespace, described, field + " refers to no ControllerRevision, so that a restored VirtualMachine has the live object"})
		}
	}
	for _, r := range found.References {
		key := types.NamespacedName{Namespace: namespace, Name: r.Revision}
		inv.references[key] = append(inv.references[key], r)
	}
}

func (inv *inventory) findDangling(existing map[types.NamespacedName]bool) {
	for key, references := range inv.references {
		if existing[key] {
			continue
		}
		for _, r := range references {
			inv.dangling = append(inv.dangling, finding{key.Namespace, string(r.Kind) + " " + r.Name, fmt.Sprintf("ControllerRevision %s does not exist", key.Name)})
		}
	}
	slices.SortFunc(inv.dangling, compareFindings)
}
