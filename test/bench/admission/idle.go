package admission

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

// idler is a server of admission webhooks that allow everything without a look at it: what a mutating and a validating webhook cost
// whatever they do. It is served by this program, so its processor time is among that of the clients.
type idler struct {
	server *httptest.Server
	calls  atomic.Int64
	// registration is that of the two webhooks.
	registration *registration
}

// newIdler starts the server. create creates a VM, as the clients do.
func newIdler(client dynamic.Interface, create func(context.Context) error) (*idler, error) {
	i := &idler{}
	i.server = httptest.NewTLSServer(http.HandlerFunc(i.answer))
	objects, err := i.configurations()
	if err != nil {
		i.server.Close()
		return nil, err
	}
	i.registration = &registration{client: client, resources: judgementAndRendering, objects: objects, applied: func(ctx context.Context) (bool, error) {
		before := i.calls.Load()
		if err := create(ctx); err != nil {
			return false, err
		}
		// Both have to be called when they come, and neither when they go.
		called := i.calls.Load() - before
		return called == 2 || called == 1 && i.registration.installed, nil
	}}
	return i, nil
}

func (i *idler) close() { i.server.Close() }

func (i *idler) answer(writer http.ResponseWriter, request *http.Request) {
	i.calls.Add(1)
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(writer, `{"apiVersion": %q, "kind": "AdmissionReview", "response": {"uid": %q, "allowed": true}}`, admissionv1.SchemeGroupVersion, review.Request.UID)
}

// judgementAndRendering are the kinds of the idle webhooks.
var judgementAndRendering = []schema.GroupVersionResource{
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
}

// configurations returns one configuration of each kind.
func (i *idler) configurations() (map[schema.GroupVersionResource][]unstructured.Unstructured, error) {
	client := admissionregistrationv1.WebhookClientConfig{
		URL:      ptr.To(i.server.URL),
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw}),
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"kubevirt.io"}, APIVersions: []string{"v1"}, Resources: []string{"virtualmachines"}},
	}}
	meta := metav1.ObjectMeta{Name: "bench-idle"}
	none := ptr.To(admissionregistrationv1.SideEffectClassNone)
	configurations := []runtime.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
			ObjectMeta: meta,
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "validating.idle.bench", ClientConfig: client, Rules: rules, SideEffects: none, AdmissionReviewVersions: []string{"v1"},
			}},
		},
		&admissionregistrationv1.MutatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
			ObjectMeta: meta,
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "mutating.idle.bench", ClientConfig: client, Rules: rules, SideEffects: none, AdmissionReviewVersions: []string{"v1"},
			}},
		},
	}
	objects := map[schema.GroupVersionResource][]unstructured.Unstructured{}
	for at, configuration := range configurations {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
		if err != nil {
			return nil, fmt.Errorf("writing the configuration of the idle webhooks: %w", err)
		}
		objects[judgementAndRendering[at]] = []unstructured.Unstructured{{Object: content}}
	}
	return objects, nil
}
