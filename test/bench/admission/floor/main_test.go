package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestTheWebhooksAnswerWhatWasPrepared(t *testing.T) {
	in, patches := io.Pipe()
	addresses, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(in, out) }()
	patch := []byte(`[{"op":"add","path":"/spec","value":{"name":"web"}}]`)
	if err := json.NewEncoder(patches).Encode(map[string][]byte{"web-1": patch}); err != nil {
		t.Fatal(err)
	}
	var at address
	if err := json.NewDecoder(addresses).Decode(&at); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(at.CABundle)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}

	for _, tc := range []struct {
		path, machine string
		want          *admissionv1.AdmissionResponse
	}{
		{path: "/mutate?timeout=10s", machine: "web-1", want: &admissionv1.AdmissionResponse{
			UID: "42", Allowed: true, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch), Patch: patch,
		}},
		{path: "/mutate", machine: "web-2"},
		{path: "/validate?timeout=10s", machine: "web-2", want: &admissionv1.AdmissionResponse{UID: "42", Allowed: true}},
	} {
		t.Run(tc.path+" of "+tc.machine, func(t *testing.T) {
			response, err := client.Post(at.URL+tc.path, "application/json", bytes.NewReader(review(t, "42", tc.machine)))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			var got admissionv1.AdmissionReview
			if response.StatusCode == http.StatusOK {
				if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, got.Response); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}

	response, err := client.Get(at.URL + "/calls")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var calls strings.Builder
	if _, err := io.Copy(&calls, response.Body); err != nil || calls.String() != "3" {
		t.Errorf("calls: want 3, got %s (%v)", calls.String(), err)
	}
	if err := patches.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// review encodes a review in the field order of the Go type, as the API server does.
func review(t *testing.T, uid types.UID, vm string) []byte {
	t.Helper()
	kind := metav1.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}
	content, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: uid, Kind: kind, RequestKind: &kind, Name: vm, Namespace: "team-a", Operation: admissionv1.Create,
			Object: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":"other"},"spec":{"name":"other"}}`, vm)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}
