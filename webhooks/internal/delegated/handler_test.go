package delegated_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/internal/delegation"
	"github.com/vmstencil/stencil/webhooks/internal/delegated"
)

func TestWhoIsEvaluated(t *testing.T) {
	const server = "system:serviceaccount:stencil-system:stencil-apiserver"
	ada := map[string]authenticationv1.ExtraValue{delegation.KeyUser: {"ada"}, delegation.KeyGroup: {"team-a"}}
	for _, tc := range []struct {
		name string
		user authenticationv1.UserInfo
		want authenticationv1.UserInfo
	}{
		{name: "the user for whom the server acts", user: authenticationv1.UserInfo{Username: server, Groups: []string{"system:serviceaccounts"}, Extra: ada},
			want: authenticationv1.UserInfo{Username: "ada", Groups: []string{"team-a"}}},
		{name: "whoever acts for themselves", user: authenticationv1.UserInfo{Username: "eve", Groups: []string{"team-b"}},
			want: authenticationv1.UserInfo{Username: "eve", Groups: []string{"team-b"}}},
		{name: "somebody who brings the server's keys along, as themselves", user: authenticationv1.UserInfo{Username: "eve", Extra: ada},
			want: authenticationv1.UserInfo{Username: "eve", Extra: ada}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got authenticationv1.UserInfo
			handler := delegated.New(server, admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
				got = request.UserInfo
				return admission.Allowed("")
			}))
			response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UserInfo: tc.user}})
			if !response.Allowed {
				t.Fatalf("denied: %+v", response.Result)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("evaluated (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("the server without a person is denied and nobody is asked", func(t *testing.T) {
		handler := delegated.New(server, admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
			t.Error("asked")
			return admission.Allowed("")
		}))
		response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UserInfo: authenticationv1.UserInfo{Username: server}}})
		if response.Allowed || response.Result.Code != http.StatusForbidden {
			t.Errorf("%+v", response)
		}
	})
}
