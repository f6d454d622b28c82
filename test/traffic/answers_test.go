package traffic_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/traffic"
)

// admission denies ConfigMaps by the value of their label case, each in another way.
const admission = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: traffic-answers}
webhooks:
- name: deciding.traffic.test
  clientConfig: {url: %[1]q, caBundle: %[2]s}
  objectSelector: {matchLabels: {case: webhook}}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
- name: down.traffic.test
  clientConfig: {url: "https://127.0.0.1:1/"}
  objectSelector: {matchLabels: {case: down}}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: deciding-policy}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  matchConditions: [{name: case, expression: "object.metadata.?labels[?'case'].orValue('') == 'policy'"}]
  validations: [{expression: "false", message: "denied 'by' the test"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: deciding-policy}
spec: {policyName: deciding-policy, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: failing-policy}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  matchConditions: [{name: case, expression: "object.metadata.?labels[?'case'].orValue('') == 'failing'"}]
  validations: [{expression: "object.data.missing == 'a'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: failing-policy}
spec: {policyName: failing-policy, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: unparameterized-policy}
spec:
  paramKind: {apiVersion: traffic.stencil.test/v1, kind: Missing}
  matchConstraints: {namespaceSelector: {matchLabels: {case: unparameterized}}, resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "true"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: unparameterized-policy}
spec: {policyName: unparameterized-policy, validationActions: [Deny], paramRef: {name: a, parameterNotFoundAction: Deny}}
`

// denier is a webhook that denies all requests.
func denier(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
			Code: http.StatusServiceUnavailable, Message: "not in the mood",
		}}
		if err := json.NewEncoder(writer).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// configMaps creates ConfigMaps in a namespace as a user.
func configMaps(t *testing.T, user *controlplane.User, namespace string) func(label string) error {
	t.Helper()
	client, err := kubernetes.NewForConfig(user.Config())
	if err != nil {
		t.Fatal(err)
	}
	return func(label string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "answers-", Labels: map[string]string{"case": label}},
		}, metav1.CreateOptions{})
		return err
	}
}

func TestClassifyAnswersOfAnAPIServer(t *testing.T) {
	plane := shared.Plane(t)
	own := harness.Namespace(t, plane, "answers")
	apply(t, plane, "apiVersion: v1\nkind: Namespace\nmetadata: {name: unparameterized, labels: {case: unparameterized}}\n")
	server := denier(t)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	apply(t, plane, fmt.Sprintf(admission, server.URL, base64.StdEncoding.EncodeToString(authority)))
	stranger := harness.User(t, plane, "stranger")
	for name, tc := range map[string]struct {
		as               *controlplane.User
		namespace, label string
		want             traffic.Result
		wantMessage      string
	}{
		"a write is written": {want: traffic.Result{Class: traffic.Written}},
		"a webhook denies with a code that means unavailable": {
			label: "webhook", want: traffic.Result{Class: traffic.Denied, By: "deciding.traffic.test"}, wantMessage: "not in the mood",
		},
		"a webhook that is not reached denies": {
			label: "down", want: traffic.Result{Class: traffic.Denied, By: "down.traffic.test", Broken: true}, wantMessage: "connection refused",
		},
		"a policy denies": {
			label: "policy", want: traffic.Result{Class: traffic.Denied, By: "deciding-policy"}, wantMessage: "denied 'by' the test",
		},
		"a policy whose expression fails denies": {
			label: "failing", want: traffic.Result{Class: traffic.Denied, By: "failing-policy", Broken: true}, wantMessage: "resulted in error",
		},
		"a policy without its parameters denies": {
			namespace: "unparameterized", want: traffic.Result{Class: traffic.Denied, By: "unparameterized-policy", Broken: true},
			wantMessage: "failed to configure policy",
		},
		"RBAC rejects": {as: stranger, want: traffic.Result{Class: traffic.Rejected}, wantMessage: `User "stranger" cannot create resource`},
		"a missing namespace rejects": {
			namespace: "nowhere", want: traffic.Result{Class: traffic.Rejected}, wantMessage: `namespaces "nowhere" not found`,
		},
		"validation rejects": {label: "not a label", want: traffic.Result{Class: traffic.Rejected}, wantMessage: "Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			user, namespace := tc.as, tc.namespace
			if user == nil {
				user = plane.Admin()
			}
			if namespace == "" {
				namespace = own
			}
			create := configMaps(t, user, namespace)
			// The API server observes webhooks and policies a moment after they are stored.
			harness.Eventually(t, "the API server judges by what was stored", func() error {
				got := traffic.Classify(create(tc.label))
				message := got.Message
				got.Reason, got.Message = "", ""
				if got != tc.want || !strings.Contains(message, tc.wantMessage) {
					return fmt.Errorf("want %+v with %q, got %+v of %q", tc.want, tc.wantMessage, got, message)
				}
				t.Log(message)
				return nil
			})
		})
	}
}

func TestClassifyAPlaneThatDoesNotAnswer(t *testing.T) {
	plane := controlplane.StartFor(t, controlplane.Options{})
	create := configMaps(t, plane.Admin(), "default")
	if err := create(""); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		stop func() error
	}{
		{"without etcd", plane.StopEtcd},
		{"without the API server", plane.StopAPIServer},
	} {
		if err := tc.stop(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			got := traffic.Classify(create(""))
			t.Log(tc.name, got.Reason, got.Message)
			if got.Class != traffic.Unavailable {
				t.Errorf("%s: want unavailable, got %+v", tc.name, got)
			}
		}
	}
}
