package objects_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/internal/objects"
	"github.com/vmstencil/stencil/internal/powers"
)

func TestExplain(t *testing.T) {
	status := func(s metav1.Status) error { return &apierrors.StatusError{ErrStatus: s} }
	secrets := schema.GroupResource{Resource: "secrets"}
	const secret = "open-sesame"
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"no answer", errors.New(secret), "the API server does not answer"},
		{"no permission", apierrors.NewForbidden(secrets, "a", errors.New("exceeded quota")), `secrets "a" is forbidden: exceeded quota`},
		{"an invalid object", apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", field.ErrorList{
			field.Invalid(field.NewPath("data", "a"), secret, secret), field.TooLong(field.NewPath("data", "b"), secret, 3), field.NotSupported(field.NewPath("type"), secret, []string{"a"}),
		}), "it is invalid (data.a: FieldValueInvalid, data.b: FieldValueTooLong, type: FieldValueNotSupported)"},
		{"a wrapped one", fmt.Errorf("x: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", field.ErrorList{field.Invalid(field.NewPath("a"), secret, secret)})), "it is invalid (a: FieldValueInvalid)"},
		{"an invalid object without causes", status(metav1.Status{Reason: metav1.StatusReasonInvalid, Message: secret}), "Invalid"},
		{"the denial of an admission policy, whose message may show values", status(metav1.Status{Reason: metav1.StatusReasonInvalid, Message: secret,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: secret}}}}), "an admission policy denies it"},
		{"a webhook that fails", apierrors.NewInternalError(errors.New("failed calling webhook: " + secret)), "InternalError"},
		{"an answer of a proxy", apierrors.NewGenericServerResponse(http.StatusBadGateway, "create", secrets, "a", secret, 0, true), "InternalError"},
		{"a namespace that does not exist", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team-a"), "NotFound"},
		{"an object that cannot be decoded", apierrors.NewBadRequest(secret), "BadRequest"},
		{"too many requests", apierrors.NewTooManyRequests(secret, 1), "TooManyRequests"},
		{"a denial without a reason", status(metav1.Status{Code: http.StatusTeapot, Message: secret}), "HTTP status 418"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := objects.Explain(tc.err)
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if strings.Contains(got, secret) {
				t.Errorf("it shows a value: %s", got)
			}
		})
	}
}

func TestTry(t *testing.T) {
	const account = "system:serviceaccount:stencil-system:stencil-objects"
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	resource := secrets.GroupResource()
	for _, tc := range []struct {
		name      string
		answer    error
		temporary bool
		want      string
	}{
		{name: "it can be created"},
		{name: "it exists", answer: apierrors.NewAlreadyExists(resource, "a"), want: "an object of this name exists already in namespace team-a; if it is left of a VirtualMachine that was deleted, try again in a moment"},
		{name: "it is invalid", answer: apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", field.ErrorList{field.Invalid(field.NewPath("type"), "open-sesame", "no")}), want: "it is invalid (type: FieldValueInvalid)"},
		{name: "a quota", answer: apierrors.NewForbidden(resource, "a", errors.New("exceeded quota: few")), want: `secrets "a" is forbidden: exceeded quota: few`},
		{name: "a policy", answer: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "denied request: not here", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "denied request: not here"}}}}}, want: "denied request: not here"},
		{name: "a failure", answer: apierrors.NewInternalError(errors.New("etcd")), temporary: true, want: "Internal error occurred: etcd"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent, _ := io.ReadAll(r.Body)
				if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/team-a/secrets" || r.URL.Query().Get("dryRun") != "All" || r.Header.Get("Impersonate-User") != account {
					t.Errorf("%s %s as %s", r.Method, r.URL, r.Header.Get("Impersonate-User"))
				}
				w.Header().Set("Content-Type", "application/json")
				var status apierrors.APIStatus
				if !errors.As(tc.answer, &status) {
					_, _ = w.Write(sent)
					return
				}
				answer := status.Status()
				answer.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
				w.WriteHeader(int(answer.Code))
				_ = json.NewEncoder(w).Encode(answer)
			}))
			defer server.Close()
			client, err := dynamic.NewForConfig(powers.As(&rest.Config{Host: server.URL}, account))
			if err != nil {
				t.Fatal(err)
			}
			err = objects.Try(context.Background(), client, secrets, "team-a", []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`))
			var got string
			if err != nil {
				got = err.Error()
			}
			var denied objects.Denied
			if got != tc.want || tc.want != "" && errors.As(err, &denied) == tc.temporary {
				t.Errorf("got %q, denied %q; want %q", got, denied, tc.want)
			}
		})
	}
}
