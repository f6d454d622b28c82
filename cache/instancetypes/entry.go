package instancetypes

import (
	"encoding/json"
	"fmt"
	"sync"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	instancetypeapi "kubevirt.io/api/instancetype"

	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// entry is one object: an instance type or a preference, or a revision of one.
type entry struct {
	// object is the input of policies; nil for a revision.
	object map[string]any
	// of is the name of the object that a revision was made of. content is that object, as JSON.
	of      string
	content unique.Handle[string]
	// sized is the size of the VMs of an instance type. That of a revision is determined when it is needed: see index.size.
	sized sized
}

// sized is a size, or why it is unknown.
type sized struct {
	sizing.Size
	err error
}

func sizeOf(kind string, object map[string]any) (s sized) {
	if familyOf(kind) != familyInstancetype {
		s.err = fmt.Errorf("it is a %s", kind)
		return s
	}
	s.Size, s.err = sizing.Instance(object)
	return s
}

// wire holds the fields that are read of an instance type or a preference.
type wire struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`
}

// object returns the input of policies.
func (w wire) object() map[string]any {
	metadata := map[string]any{"name": w.Metadata.Name, "labels": texts(w.Metadata.Labels), "annotations": texts(w.Metadata.Annotations)}
	if w.Metadata.Namespace != "" {
		metadata["namespace"] = w.Metadata.Namespace
	}
	return map[string]any{"kind": w.Kind, "metadata": metadata, "spec": w.Spec}
}

func texts(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		if key != corev1.LastAppliedConfigAnnotation {
			out[key] = value
		}
	}
	return out
}

// liveEntry encodes and decodes the object as JSON, so that its numbers have the same types as those of a revision.
func liveEntry(kind string, o *unstructured.Unstructured) (entry, error) {
	raw, err := json.Marshal(map[string]any{"metadata": o.Object["metadata"], "spec": o.Object["spec"]})
	if err != nil {
		return entry{}, fmt.Errorf("encoding %s %s: %w", kind, o.GetName(), err)
	}
	var w wire
	if err := json.Unmarshal(raw, &w); err != nil {
		return entry{}, fmt.Errorf("reading %s %s: %w", kind, o.GetName(), err)
	}
	w.Kind = kind
	object := w.object()
	return entry{object: object, sized: sizeOf(kind, object)}, nil
}

func revisionEntry(r *appsv1.ControllerRevision, known *contents) (entry, error) {
	content, err := known.of(r.Data.Raw)
	if err != nil {
		return entry{}, fmt.Errorf("encoding ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
	}
	return entry{of: r.Labels[instancetypeapi.ControllerRevisionObjectNameLabel], content: content}, nil
}

const (
	// maximumContents is the number of results that a contents retains. Thousands of VMs have revisions of a few objects.
	maximumContents = 256
	// largestContent limits the data of which results are retained, in bytes.
	largestContent = 16 << 10
)

// contents retains what content returned for the data of revisions. It may be used concurrently.
type contents struct {
	mutex sync.Mutex
	known map[string]unique.Handle[string]
}

func (c *contents) of(data []byte) (unique.Handle[string], error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if found, ok := c.known[string(data)]; ok {
		return found, nil
	}
	raw, err := json.Marshal(content(data))
	if err != nil {
		return unique.Handle[string]{}, err
	}
	made := unique.Make(string(raw))
	if len(data) <= largestContent {
		if c.known == nil || len(c.known) >= maximumContents {
			c.known = map[string]unique.Handle[string]{}
		}
		c.known[string(data)] = made
	}
	return made, nil
}

// content returns the stored part of the object in a revision. It is equal for all revisions of one version of an object, whose bytes KubeVirt
// encodes in the same way. Names of fields are compared exactly, as KubeVirt does. Data that is no object has no content.
func content(data []byte) map[string]any {
	object := fieldsOf(data)
	metadata := fieldsOf(object["metadata"])
	kept := map[string]json.RawMessage{}
	for _, name := range []string{"name", "namespace"} {
		if value, found := metadata[name]; found && string(value) != "null" {
			kept[name] = value
		}
	}
	return map[string]any{"kind": object["kind"], "metadata": kept, "spec": object["spec"]}
}

// fieldsOf returns the fields of an object in JSON; none if it is something else.
func fieldsOf(raw []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}
