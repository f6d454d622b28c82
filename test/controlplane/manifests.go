package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// manifests are the objects that an operator would install, KubeVirt's or CDI's, as a tool made of its code prints them.
type manifests struct {
	crds    []*apiextensionsv1.CustomResourceDefinition
	objects []*unstructured.Unstructured
}

func (p *Plane) manifests(ctx context.Context, tool string) (*manifests, error) {
	path, err := p.tool(ctx, tool)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading what %s printed: %w", tool, err)
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("decoding what %s printed: %w", tool, err)
	}
	read := &manifests{}
	for _, item := range list.Items {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(item); err != nil {
			return nil, fmt.Errorf("decoding one of the objects of %s: %w", tool, err)
		}
		if object.GetKind() != "CustomResourceDefinition" {
			read.objects = append(read.objects, object)
			continue
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(item, definition); err != nil {
			return nil, fmt.Errorf("decoding the CRD %s: %w", object.GetName(), err)
		}
		read.crds = append(read.crds, definition)
	}
	return read, nil
}

// kind returns the objects of one kind.
func (m *manifests) kind(name string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range m.objects {
		if object.GetKind() == name {
			found = append(found, object)
		}
	}
	return found
}
