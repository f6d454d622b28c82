package artifact

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

const (
	// Type is the artifact type of a manifest with policies.
	Type = "application/vnd.stencil.policies.v1"
	// LayerType is the media type of its layers.
	LayerType = Type + "+yaml"
	// MaximumSize is the maximum size of all layers together, in bytes.
	MaximumSize = 4 << 20
	// MaximumPolicies is the maximum number of policies, and of layers.
	MaximumPolicies = 256

	manifestType = "application/vnd.oci.image.manifest.v1+json"
	title        = "org.opencontainers.image.title"
	ownPrefix    = v1alpha1.GroupName + "/"
)

// InvalidError is the error of an artifact that is not valid.
type InvalidError struct{ Problem error }

// Error implements error.
func (e *InvalidError) Error() string { return e.Problem.Error() }

// Unwrap returns the problem.
func (e *InvalidError) Unwrap() error { return e.Problem }

func invalid(format string, arguments ...any) error {
	return &InvalidError{fmt.Errorf(format, arguments...)}
}

// layer is a layer of a manifest.
type layer struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
}

// decodeManifest returns the layers of a manifest.
func decodeManifest(raw []byte) ([]layer, error) {
	var manifest struct {
		MediaType    string `json:"mediaType"`
		ArtifactType string `json:"artifactType"`
		Config       struct {
			MediaType string `json:"mediaType"`
		} `json:"config"`
		Layers []layer `json:"layers"`
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return nil, invalid("the manifest cannot be decoded: %w", err)
	}
	if manifest.MediaType != manifestType {
		return nil, invalid("the manifest has media type %q, not %s: an index is not supported", manifest.MediaType, manifestType)
	}
	if manifest.ArtifactType == "" {
		manifest.ArtifactType = manifest.Config.MediaType
	}
	if manifest.ArtifactType != Type {
		return nil, invalid("the manifest has artifact type %q, not %s", manifest.ArtifactType, Type)
	}
	if len(manifest.Layers) == 0 || len(manifest.Layers) > MaximumPolicies {
		return nil, invalid("the manifest has %d layers; 1 to %d are supported", len(manifest.Layers), MaximumPolicies)
	}
	var size int64
	for i, each := range manifest.Layers {
		if each.MediaType != LayerType {
			return nil, invalid("%s has media type %q, not %s", each.name(i), each.MediaType, LayerType)
		}
		if each.Size < 0 || each.Size > MaximumSize-size {
			return nil, invalid("the layers have more than %d MiB together", MaximumSize>>20)
		}
		size += each.Size
	}
	return manifest.Layers, nil
}

// name is the number of a layer, from 0 on, and the name of the file that it was made of.
func (l *layer) name(number int) string {
	if file := l.Annotations[title]; file != "" {
		return fmt.Sprintf("layer %d (%.128q)", number, file)
	}
	return fmt.Sprintf("layer %d", number)
}

// decoder collects the policies of the layers.
type decoder struct {
	policies []*unstructured.Unstructured
	// from is where the policy of a name is.
	from map[string]string
}

// layer decodes the documents of a layer.
func (d *decoder) layer(name string, content []byte) error {
	reader := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	before := len(d.policies)
	for number := 0; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		where := fmt.Sprintf("%s, document %d", name, number)
		if err != nil {
			return invalid("%s: %w", where, err)
		}
		policy, err := decodePolicy(document)
		if err != nil {
			return invalid("%s: %w", where, err)
		}
		if policy == nil {
			continue
		}
		if other, exists := d.from[policy.GetName()]; exists {
			return invalid("%s: metadata.name: policy %s is in %s too", where, policy.GetName(), other)
		}
		if len(d.policies) == MaximumPolicies {
			return invalid("%s: more than %d policies", where, MaximumPolicies)
		}
		d.from[policy.GetName()] = where
		d.policies = append(d.policies, policy)
	}
	if len(d.policies) == before {
		return invalid("%s has no policies", name)
	}
	return nil
}

// decodePolicy returns the policy of a document, nil if it has only comments.
func decodePolicy(document []byte) (*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	if string(bytes.TrimSpace(raw)) == "null" {
		return nil, nil
	}
	var kind metav1.TypeMeta
	if err := json.Unmarshal(raw, &kind); err != nil {
		return nil, errors.New("it is not an object")
	}
	if want := v1alpha1.GroupVersion.WithKind("VirtualMachinePolicy"); kind.GroupVersionKind() != want {
		return nil, fmt.Errorf("kind: it is a %q of %q; only VirtualMachinePolicy of %s is supported", kind.Kind, kind.APIVersion, want.GroupVersion())
	}
	var typed v1alpha1.VirtualMachinePolicy
	problems, err := kjson.UnmarshalStrict(raw, &typed)
	if err = errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	return object, checkMetadata(object)
}

// checkMetadata permits what a policy of an artifact may have besides its spec.
func checkMetadata(object *unstructured.Unstructured) error {
	if _, has := object.Object["status"]; has {
		return errors.New("status: must not be set")
	}
	if _, is := object.Object["spec"].(map[string]any); !is {
		return errors.New("spec: must be set")
	}
	if object.GetName() == "" {
		return errors.New("metadata.name: must be set")
	}
	metadata, _ := object.Object["metadata"].(map[string]any)
	for field := range metadata {
		if field != "name" && field != "labels" && field != "annotations" {
			return fmt.Errorf("metadata.%s: must not be set; only name, labels and annotations may be", field)
		}
	}
	for key := range object.GetLabels() {
		if strings.HasPrefix(key, ownPrefix) {
			return fmt.Errorf("metadata.labels: %s: labels of %s must not be set", key, v1alpha1.GroupName)
		}
	}
	for key := range object.GetAnnotations() {
		if strings.HasPrefix(key, ownPrefix) && key != v1alpha1.AnnotationStoreFailing {
			return fmt.Errorf("metadata.annotations: %s: annotations of %s must not be set", key, v1alpha1.GroupName)
		}
	}
	return nil
}
