package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"

	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// object is a Kubernetes object.
type object map[string]any

// decode returns the objects of a YAML stream.
func decode(stream []byte) ([]object, error) {
	var objects []object
	documents := k8syaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096)
	for {
		var one object
		err := documents.Decode(&one)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding a manifest: %w", err)
		}
		if len(one) > 0 {
			objects = append(objects, one)
		}
	}
}

// changed are texts that no manifest may contain, wherever they are: virt-operator 1.9 separates the objects of what it has written at the first one,
// and removes the single quotes of the others.
var changed = []string{"---", "'{{", "}}'", ` '"`, "\"'\n"}

// encode returns a YAML stream. The keys of all maps are sorted.
func encode(objects []object) ([]byte, error) {
	var stream bytes.Buffer
	for _, one := range objects {
		document, err := yaml.Marshal(one)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", one, err)
		}
		for _, text := range changed {
			if bytes.Contains(document, []byte(text)) {
				return nil, fmt.Errorf("%s contains %q, which virt-operator changes", one, text)
			}
		}
		stream.WriteString("---\n")
		stream.Write(document)
	}
	return stream.Bytes(), nil
}

// String returns kind and name.
func (o object) String() string { return o.kind() + "/" + o.name() }

func (o object) kind() string { return o.text("kind") }
func (o object) name() string { return o.child("metadata").text("name") }

// child returns a map in the object; nil if there is none.
func (o object) child(key string) object {
	tree, _ := o[key].(map[string]any)
	return tree
}

func (o object) text(key string) string {
	text, _ := o[key].(string)
	return text
}

func (o object) list(key string) []any {
	items, _ := o[key].([]any)
	return items
}

// annotate sets an annotation.
func (o object) annotate(key, value string) {
	metadata := o.child("metadata")
	annotations := map[string]any{key: value}
	maps.Copy(annotations, metadata.child("annotations"))
	metadata["annotations"] = annotations
}
