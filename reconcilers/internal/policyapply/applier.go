package policyapply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Kind of policies.
var Kind = v1alpha1.GroupVersion.WithKind("VirtualMachinePolicy")

// Owner is what is written to the policies of an owner.
type Owner struct {
	// Label is on each of them, with the value Name.
	Label, Name string
	// Annotation holds the digest of the manifest.
	Annotation string
	// FieldManager owns the applied fields.
	FieldManager string
	// Exact removes fields of the spec that the manifest does not have and others have added, such as another enforcement where the manifest has the
	// default.
	Exact bool
}

// Manifest is a policy to apply.
type Manifest struct {
	Name, Digest string
	// Object is the policy without the label and the annotation of its owner.
	Object *unstructured.Unstructured
}

// Applier applies the policies of an owner. It is not safe for concurrent use.
type Applier struct {
	owner Owner
	// reader reads from the API server itself, not from a cache.
	reader client.Reader
	client client.Client
	// applied holds the generation of each policy after it was applied.
	applied map[string]int64
}

// New returns an Applier.
func New(owner Owner, reader client.Reader, writer client.Client) *Applier {
	return &Applier{owner: owner, reader: reader, client: writer, applied: map[string]int64{}}
}

// Plan reads the stored policies and returns what to change.
func (a *Applier) Plan(ctx context.Context, manifests []Manifest) (Plan, error) {
	stored, err := a.stored(ctx, manifests)
	if err != nil {
		return Plan{}, err
	}
	return decide(manifests, stored), nil
}

// stored reads the policies that have a manifest or carry the label.
func (a *Applier) stored(ctx context.Context, manifests []Manifest) ([]found, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(Kind.GroupVersion().WithKind(Kind.Kind + "List"))
	if err := a.reader.List(ctx, list, client.MatchingLabels{a.owner.Label: a.owner.Name}); err != nil {
		return nil, fmt.Errorf("listing the policies with label %s=%s: %w", a.owner.Label, a.owner.Name, err)
	}
	var all []found
	seen := map[string]bool{}
	for i := range list.Items {
		seen[list.Items[i].Name] = true
		all = append(all, a.found(&list.Items[i], true))
	}
	for _, manifest := range manifests {
		if seen[manifest.Name] {
			continue
		}
		object := metadata("")
		err := a.reader.Get(ctx, types.NamespacedName{Name: manifest.Name}, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading policy %s: %w", manifest.Name, err)
		}
		all = append(all, a.found(object, object.Labels[a.owner.Label] == a.owner.Name))
	}
	return all, nil
}

func (a *Applier) found(object *metav1.PartialObjectMetadata, ours bool) found {
	return found{
		name: object.Name, ours: ours, generation: object.Generation,
		digest: object.Annotations[a.owner.Annotation], applied: a.applied[object.Name],
	}
}

// DryRun checks whether the API server and the webhooks accept a policy.
func (a *Applier) DryRun(ctx context.Context, manifest Manifest) error {
	return a.write(ctx, a.object(manifest), client.DryRunAll)
}

// Apply applies a policy, and returns it if this has changed it.
func (a *Applier) Apply(ctx context.Context, manifest Manifest) (*unstructured.Unstructured, error) {
	object := a.object(manifest)
	if err := a.write(ctx, object); err != nil {
		return nil, err
	}
	if a.owner.Exact {
		if err := a.replaceSpec(ctx, manifest, object); err != nil {
			return nil, err
		}
	}
	before := a.applied[manifest.Name]
	if a.applied[manifest.Name] = object.GetGeneration(); before == object.GetGeneration() {
		return nil, nil
	}
	return object, nil
}

func (a *Applier) write(ctx context.Context, object *unstructured.Unstructured, more ...client.ApplyOption) error {
	options := append([]client.ApplyOption{client.FieldOwner(a.owner.FieldManager), client.ForceOwnership}, more...)
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...); err != nil {
		return fmt.Errorf("applying policy %s: %w", object.GetName(), err)
	}
	return nil
}

// replaceSpec replaces the spec of a policy by that of its manifest. It changes nothing if they are the same, apart from defaults.
func (a *Applier) replaceSpec(ctx context.Context, manifest Manifest, object *unstructured.Unstructured) error {
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": manifest.Object.Object["spec"]}})
	if err != nil {
		return fmt.Errorf("encoding the spec of policy %s: %w", manifest.Name, err)
	}
	if err := a.client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(a.owner.FieldManager)); err != nil {
		return fmt.Errorf("applying policy %s: %w", manifest.Name, err)
	}
	return nil
}

// object returns the policy with the label and the annotation.
func (a *Applier) object(manifest Manifest) *unstructured.Unstructured {
	object := manifest.Object.DeepCopy()
	object.SetLabels(with(object.GetLabels(), a.owner.Label, a.owner.Name))
	object.SetAnnotations(with(object.GetAnnotations(), a.owner.Annotation, manifest.Digest))
	return object
}

func with(entries map[string]string, key, value string) map[string]string {
	if entries == nil {
		entries = map[string]string{}
	}
	entries[key] = value
	return entries
}

// Remove deletes a policy, and returns it if it existed.
func (a *Applier) Remove(ctx context.Context, name string) (client.Object, error) {
	object := metadata(name)
	delete(a.applied, name)
	if err := a.client.Delete(ctx, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("deleting policy %s: %w", name, err)
	}
	return object, nil
}

func metadata(name string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(Kind)
	object.SetName(name)
	return object
}
