// Package statuswriter writes parts of statuses by server-side apply, each with a separate field manager: several controllers write to the
// status of one template or policy.
package statuswriter

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
)

// Object identifies the object of a status.
type Object struct {
	Group     schema.GroupVersion
	Resource  string
	Kind      string
	Namespace string
	Name      string
	// UID, if set, must be that of the stored object: a newer object of the same name is not written.
	UID types.UID
}

// Template returns the Object of a template, with its UID.
func Template(t *templatecache.Template) Object {
	return Object{Group: v1beta1.GroupVersion, Resource: "virtualmachinetemplates", Kind: "VirtualMachineTemplate", Namespace: t.Namespace, Name: t.Name, UID: t.UID}
}

// Policy returns the Object of the policy with this name, without a UID.
func Policy(name string) Object {
	return Object{Group: v1alpha1.GroupVersion, Resource: "virtualmachinepolicies", Kind: "VirtualMachinePolicy", Name: name}
}

// Exception returns the Object of an exception, with its UID.
func Exception(e *v1alpha1.PolicyException) Object {
	return Object{Group: v1alpha1.GroupVersion, Resource: "policyexceptions", Kind: "PolicyException", Name: e.Name, UID: e.UID}
}

// PolicySource returns the Object of a policy source, with its UID.
func PolicySource(s *v1alpha1.VirtualMachinePolicySource) Object {
	return Object{Group: v1alpha1.GroupVersion, Resource: "virtualmachinepolicysources", Kind: "VirtualMachinePolicySource", Name: s.Name, UID: s.UID}
}

// Approval returns the Object of an approval, with its UID.
func Approval(a *v1alpha1.TemplateApproval) Object {
	return Object{Group: v1alpha1.GroupVersion, Resource: "templateapprovals", Kind: "TemplateApproval", Name: a.Name, UID: a.UID}
}

// GoldenImage returns the Object of a golden image, with its UID.
func GoldenImage(image *v1alpha1.GoldenImage) Object {
	return Object{Group: v1alpha1.GroupVersion, Resource: "goldenimages", Kind: "GoldenImage", Namespace: image.Namespace, Name: image.Name, UID: image.UID}
}

// RevisionMigration returns the Object of the RevisionMigration, with its UID.
func RevisionMigration(m *v1alpha1.RevisionMigration) Object {
	return Object{Group: v1alpha1.GroupVersion, Resource: "revisionmigrations", Kind: "RevisionMigration", Name: m.Name, UID: m.UID}
}

// String returns the object's kind and name as errors show them.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Writer writes statuses only.
type Writer struct{ client rest.Interface }

// New returns a Writer without a client-side rate limit: the API server has limits of its own.
func New(config *rest.Config) (*Writer, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.ContentConfig = rest.ContentConfig{GroupVersion: &schema.GroupVersion{}, NegotiatedSerializer: scheme.Codecs.WithoutConversion()}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client that writes statuses: %w", err)
	}
	return &Writer{client}, nil
}

// Apply writes the fields of a status that an owner has, and removes the owner's other fields. It returns nil if the object has been
// deleted or replaced since it was read.
func (w *Writer) Apply(ctx context.Context, object Object, owner string, status any) error {
	metadata := map[string]any{"name": object.Name}
	if object.Namespace != "" {
		metadata["namespace"] = object.Namespace
	}
	if object.UID != "" {
		metadata["uid"] = string(object.UID)
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": object.Group.String(), "kind": object.Kind, "metadata": metadata, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of %s: %w", object, err)
	}
	// The response has the whole object, which takes as long to decode as the request takes to write. Only its error is decoded.
	err = w.client.Patch(types.ApplyYAMLPatchType).AbsPath("apis", object.Group.Group, object.Group.Version).
		NamespaceIfScoped(object.Namespace, object.Namespace != "").Resource(object.Resource).Name(object.Name).SubResource("status").
		Param("fieldManager", owner).Param("force", "true").Body(raw).Do(ctx).Error()
	replaced := object.UID != "" && apierrors.IsConflict(err)
	if err == nil || apierrors.IsNotFound(err) || replaced {
		return nil
	}
	return fmt.Errorf("writing the status of %s: %w", object, err)
}

// Condition writes a condition, the only one of its owner, or removes it if it is nil.
func (w *Writer) Condition(ctx context.Context, object Object, owner string, condition *metav1.Condition) error {
	// Without the empty list, the API server would store null for conditions that have no other writer, and reject it.
	conditions := []metav1.Condition{}
	if condition != nil {
		conditions = append(conditions, *condition)
	}
	return w.Apply(ctx, object, owner, map[string]any{"conditions": conditions})
}
