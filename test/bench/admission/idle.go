package admission

import (
	"context"
	"encoding/base64"
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

// idler is a server of admission webhooks that allow everything without a look at it: what webhooks cost whatever they do. It is served
// by this program, so its processor time is among that of the clients.
type idler struct {
	server *httptest.Server
	// patch is what is answered, if anything is.
	patch []byte
	calls atomic.Int64
	// registration is that of the webhooks.
	registration *registration
}

// newIdler starts the server: of a mutating webhook that comes after all others and answers the patch (RFC 6902), or of one that
// answers none and a validating one. create creates a VM, as the clients do.
func newIdler(client dynamic.Interface, patch []byte, create func(context.Context) error) (*idler, error) {
	i := &idler{patch: patch}
	i.server = httptest.NewTLSServer(http.HandlerFunc(i.answer))
	objects, err := i.configurations()
	if err != nil {
		i.server.Close()
		return nil, err
	}
	webhooks := int64(len(objects))
	i.registration = &registration{client: client, resources: judgementAndRendering, objects: objects, applied: func(ctx context.Context) (bool, error) {
		before := i.calls.Load()
		if err := create(ctx); err != nil {
			return false, err
		}
		// All have to be called when they come, and none when they go.
		called := i.calls.Load() - before
		return called == webhooks || called > 0 && i.registration.installed, nil
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
	answer := ""
	if i.patch != nil {
		answer = fmt.Sprintf(`, "patchType": "JSONPatch", "patch": %q`, base64.StdEncoding.EncodeToString(i.patch))
	}
	_, _ = fmt.Fprintf(writer, `{"apiVersion": %q, "kind": "AdmissionReview", "response": {"uid": %q, "allowed": true%s}}`, admissionv1.SchemeGroupVersion, review.Request.UID, answer)
}

// judgementAndRendering are the kinds of the idle webhooks.
var judgementAndRendering = []schema.GroupVersionResource{
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
}

// configurations returns the configurations, one of each kind that there is.
func (i *idler) configurations() (map[schema.GroupVersionResource][]unstructured.Unstructured, error) {
	client := admissionregistrationv1.WebhookClientConfig{
		URL:      ptr.To(i.server.URL),
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw}),
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"kubevirt.io"}, APIVersions: []string{"v1"}, Resources: []string{"virtualmachines"}},
	}}
	meta, none := metav1.ObjectMeta{Name: "bench-idle"}, ptr.To(admissionregistrationv1.SideEffectClassNone)
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: meta,
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutating.idle.bench", ClientConfig: client, Rules: rules, SideEffects: none, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	configurations := []runtime.Object{mutating}
	if i.patch != nil {
		mutating.Name = "zz-bench-patch" // The API server goes by the alphabet.
		mutating.Webhooks[0].ReinvocationPolicy = ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy)
	} else {
		configurations = append(configurations, &admissionregistrationv1.ValidatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
			ObjectMeta: meta,
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "validating.idle.bench", ClientConfig: client, Rules: rules, SideEffects: none, AdmissionReviewVersions: []string{"v1"},
			}},
		})
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
