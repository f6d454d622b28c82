package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readPage decodes a list of VirtualMachines as it arrives, and calls visit with each. It returns the list's continue token. Fields that
// are not evaluated, such as managed fields, are skipped.
func readPage(body io.Reader, visit func(object map[string]any)) (next string, err error) {
	decoder := json.NewDecoder(body)
	decoder.UseNumber()
	if err := expect(decoder, json.Delim('{')); err != nil {
		return "", err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return "", err
		}
		switch key {
		case "items":
			err = readItems(decoder, visit)
		case "metadata":
			var metadata struct {
				Continue string `json:"continue"`
			}
			err = decoder.Decode(&metadata)
			next = metadata.Continue
		default:
			var passed json.RawMessage
			err = decoder.Decode(&passed)
		}
		if err != nil {
			return "", err
		}
	}
	return next, expect(decoder, json.Delim('}'))
}

func readItems(decoder *json.Decoder, visit func(object map[string]any)) error {
	opening, err := decoder.Token()
	if err != nil {
		return err
	}
	if opening == nil {
		return nil
	}
	if opening != json.Delim('[') {
		return errors.New("items are no list")
	}
	for decoder.More() {
		var one item
		if err := decoder.Decode(&one); err != nil {
			return err
		}
		visit(one.object())
	}
	return expect(decoder, json.Delim(']'))
}

func expect(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("expected %s, found %v", want, token)
	}
	return nil
}

// item holds the fields of a VirtualMachine that are evaluated: all that the input of policies contains.
type item struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name              string         `json:"name"`
		GenerateName      string         `json:"generateName"`
		Namespace         string         `json:"namespace"`
		UID               string         `json:"uid"`
		Generation        json.Number    `json:"generation"`
		CreationTimestamp string         `json:"creationTimestamp"`
		DeletionTimestamp string         `json:"deletionTimestamp"`
		Labels            map[string]any `json:"labels"`
		Annotations       map[string]any `json:"annotations"`
		Finalizers        []any          `json:"finalizers"`
		OwnerReferences   []any          `json:"ownerReferences"`
	} `json:"metadata"`
	Spec   map[string]any `json:"spec"`
	Status map[string]any `json:"status"`
}

func (i item) object() map[string]any {
	metadata := map[string]any{"name": i.Metadata.Name, "namespace": i.Metadata.Namespace, "uid": i.Metadata.UID}
	for key, text := range map[string]string{
		"generateName":      i.Metadata.GenerateName,
		"creationTimestamp": i.Metadata.CreationTimestamp,
		"deletionTimestamp": i.Metadata.DeletionTimestamp,
	} {
		if text != "" {
			metadata[key] = text
		}
	}
	if i.Metadata.Generation != "" {
		metadata["generation"] = i.Metadata.Generation
	}
	for key, list := range map[string][]any{"finalizers": i.Metadata.Finalizers, "ownerReferences": i.Metadata.OwnerReferences} {
		if list != nil {
			metadata[key] = list
		}
	}
	if i.Metadata.Labels != nil {
		metadata["labels"] = i.Metadata.Labels
	}
	if i.Metadata.Annotations != nil {
		metadata["annotations"] = i.Metadata.Annotations
	}
	object := map[string]any{"apiVersion": i.APIVersion, "kind": i.Kind, "metadata": metadata}
	if i.Spec != nil {
		object["spec"] = i.Spec
	}
	if i.Status != nil {
		object["status"] = i.Status
	}
	return object
}
