package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	contract "github.com/vmstencil/stencil/api/template"
)

const (
	namespace = "team-a"
	// username creates the VMs, as a member of the group.
	username    = "bench"
	group       = "team-a"
	templateRef = "golden/fedora"
	// unusedRef is the annotation of the complete VM in place of the reference: it has no effect and is as long, so that both VMs are of one size.
	unusedRef = "unjudged.kubevirt.io/template-ref"
)

// vmRequests are the request bodies of one client.
type vmRequests struct {
	// name of all of them.
	name string
	// reference is a VM with only a template reference and one parameter, complete the VM that results from it.
	reference, complete []byte
	// skipped is reference with the annotation that opts out of defaulting.
	skipped []byte
	// forged is complete with an annotation that one of Stencil's own policies denies, labelled is reference with a label that the policy of the
	// benchmark denies.
	forged, labelled []byte
}

// vmRequestsFor makes the bodies of a client: the API server renders the one, and the other is taken from its response. Except for the reference, which
// the complete one does not have and therefore the webhook is not called, both are the same.
func vmRequestsFor(ctx context.Context, sender *sender, client int) (vmRequests, error) {
	name := fmt.Sprintf("bench-%04d", client)
	reference, err := json.Marshal(map[string]any{
		"apiVersion": "kubevirt.io/v1",
		"kind":       "VirtualMachine",
		"metadata": map[string]any{
			"name":      name,
			"namespace": namespace,
			"annotations": map[string]any{
				contract.AnnotationTemplateRef:                      templateRef,
				contract.AnnotationParameterPrefix + "INSTANCETYPE": "u1.large",
			},
		},
	})
	if err != nil {
		return vmRequests{}, fmt.Errorf("encoding a VM: %w", err)
	}
	answer, err := sender.create(ctx, reference)
	if err != nil {
		return vmRequests{}, fmt.Errorf("rendering a VM: %w", err)
	}
	var object unstructured.Unstructured
	if err := json.Unmarshal(answer, &object.Object); err != nil {
		return vmRequests{}, fmt.Errorf("decoding a rendered VM: %w", err)
	}
	if _, found, _ := unstructured.NestedSlice(object.Object, "spec", "dataVolumeTemplates"); !found {
		return vmRequests{}, fmt.Errorf("the VM was not rendered: %s", answer)
	}
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	annotations := object.GetAnnotations()
	delete(annotations, contract.AnnotationTemplateRef)
	annotations[unusedRef] = templateRef
	object.SetAnnotations(annotations)
	complete, err := json.Marshal(object.Object)
	if err != nil {
		return vmRequests{}, fmt.Errorf("encoding the complete VM: %w", err)
	}
	m := vmRequests{name: name, reference: reference, complete: complete}
	for _, variant := range []struct {
		into       *[]byte
		of         []byte
		among, key string
	}{
		{&m.skipped, reference, "annotations", contract.AnnotationDefaultsSkip},
		{&m.forged, complete, "annotations", contract.AnnotationCreatedBy},
		{&m.labelled, reference, "labels", deniedLabel},
	} {
		if *variant.into, err = marked(variant.of, variant.among, variant.key); err != nil {
			return vmRequests{}, err
		}
	}
	return m, nil
}

// marked returns a body with one more label or annotation.
func marked(body []byte, among, key string) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("decoding a VM: %w", err)
	}
	if err := unstructured.SetNestedField(object, "true", "metadata", among, key); err != nil {
		return nil, fmt.Errorf("changing a VM: %w", err)
	}
	return json.Marshal(object)
}

// sender creates VirtualMachines in dry runs, over a connection of its own.
type sender struct{ client rest.Interface }

// create returns the body of the answer.
func (s *sender) create(ctx context.Context, body []byte) ([]byte, error) {
	return s.client.Post().
		AbsPath("/apis/kubevirt.io/v1/namespaces", namespace, "virtualmachines").
		Param("dryRun", "All").
		SetHeader("Content-Type", "application/json").
		SetHeader("Accept", "application/json").
		Body(body).
		Do(ctx).Raw()
}

// isRendered reports whether a response contains a VM rendered from the template.
func isRendered(answer []byte) bool {
	return strings.Contains(string(answer), `"dataVolumeTemplates"`)
}
