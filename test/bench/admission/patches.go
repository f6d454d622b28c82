package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// patches returns the render webhook's patches for the VMs of all clients, by VM name.
func (b *bench) patches(ctx context.Context) (map[string][]byte, error) {
	render, err := webhook(b.registrations[webhooks].objects, "render.template.kubevirt.io")
	if err != nil {
		return nil, err
	}
	url, _, _ := unstructured.NestedString(render, "clientConfig", "url")
	caBundle, _, _ := unstructured.NestedString(render, "clientConfig", "caBundle")
	client, err := trusting(caBundle)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	patches := map[string][]byte{}
	for _, m := range b.vms {
		if patches[m.name], err = patchOf(ctx, client, url, m); err != nil {
			return nil, fmt.Errorf("asking the render webhook: %w", err)
		}
	}
	return patches, nil
}

func patchOf(ctx context.Context, client *http.Client, url string, m vmRequests) ([]byte, error) {
	review, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       "bench",
			Kind:      metav1.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"},
			Resource:  metav1.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"},
			Name:      m.name,
			Namespace: namespace,
			Operation: admissionv1.Create,
			UserInfo:  authenticationv1.UserInfo{Username: username, Groups: []string{group, "system:authenticated"}},
			Object:    runtime.RawExtension{Raw: m.reference},
			DryRun:    ptr.To(true),
		},
	})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(review))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(content, &answer); err != nil || answer.Response == nil || !answer.Response.Allowed || len(answer.Response.Patch) == 0 {
		return nil, fmt.Errorf("it answers %s without a patch: %s", response.Status, content)
	}
	return answer.Response.Patch, nil
}
