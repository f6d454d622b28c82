package authorization_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	permission "github.com/vmstencil/stencil/internal/authorization"
)

// reviewer is an API server that answers SubjectAccessReviews with a function,
// and counts them.
func reviewer(t *testing.T, answer func(authorizationv1.SubjectAccessReviewSpec) (bool, int)) (authorizationv1client.AuthorizationV1Interface, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		allowed, code := answer(review.Spec)
		review.Status.Allowed = allowed
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := authorizationv1client.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return client, &asked
}

func TestAllowed(t *testing.T) {
	ada := authenticationv1.UserInfo{
		Username: "ada",
		UID:      "1",
		Groups:   []string{"team-a"},
		Extra:    map[string]authenticationv1.ExtraValue{"scopes": {"vm"}},
	}
	wantSpec := authorizationv1.SubjectAccessReviewSpec{
		User: "ada", UID: "1", Groups: []string{"team-a"},
		Extra: map[string]authorizationv1.ExtraValue{"scopes": {"vm"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "use", Group: "template.kubevirt.io", Version: "v1beta1",
			Resource: "virtualmachinetemplates", Namespace: "golden", Name: "fedora",
		},
	}
	for _, tc := range []struct {
		name      string
		answer    bool
		code      int
		want      bool
		wantErr   bool
		wantAsked int64
	}{
		{name: "a yes is passed on and remembered", answer: true, code: http.StatusCreated, want: true, wantAsked: 1},
		{name: "a no is passed on and remembered", answer: false, code: http.StatusCreated, want: false, wantAsked: 1},
		{name: "a refused review is an error and no yes, and is not remembered", answer: true, code: http.StatusForbidden, wantErr: true, wantAsked: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got authorizationv1.SubjectAccessReviewSpec
			client, asked := reviewer(t, func(spec authorizationv1.SubjectAccessReviewSpec) (bool, int) {
				got = spec
				return tc.answer, tc.code
			})
			checker, err := permission.New(permission.Options{Client: client})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				allowed, err := checker.Allowed(context.Background(), ada, permission.Use, "golden", "fedora")
				if allowed != tc.want || (err != nil) != tc.wantErr {
					t.Errorf("Allowed() = %v, %v; want %v, error %v", allowed, err, tc.want, tc.wantErr)
				}
			}
			if diff := cmp.Diff(wantSpec, got); diff != "" {
				t.Errorf("review (-want +got):\n%s", diff)
			}
			if asked.Load() != tc.wantAsked {
				t.Errorf("the API server was asked %d times, want %d", asked.Load(), tc.wantAsked)
			}
		})
	}
}

func TestAnswersOfOnePersonOrTemplateAreNotThoseOfAnother(t *testing.T) {
	client, asked := reviewer(t, func(spec authorizationv1.SubjectAccessReviewSpec) (bool, int) {
		return spec.User == "ada" && spec.ResourceAttributes.Name == "fedora" && spec.ResourceAttributes.Verb == "use", http.StatusCreated
	})
	registry := prometheus.NewRegistry()
	checker, err := permission.New(permission.Options{Client: client, Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		user, name string
		verb       permission.Verb
		want       bool
	}{
		{"ada", "fedora", permission.Use, true},
		{"bob", "fedora", permission.Use, false},
		{"ada", "windows", permission.Use, false},
		{"ada", "fedora", permission.Get, false},
	} {
		allowed, err := checker.Allowed(context.Background(), authenticationv1.UserInfo{Username: tc.user}, tc.verb, "golden", tc.name)
		if err != nil || allowed != tc.want {
			t.Errorf("%s %s %s: %v, %v; want %v", tc.user, tc.verb, tc.name, allowed, err, tc.want)
		}
	}
	if asked.Load() != 4 {
		t.Errorf("asked %d times, want 4", asked.Load())
	}
	if n := testutil.CollectAndCount(registry, "stencil_permission_check_duration_seconds"); n != 3 {
		t.Errorf("%d metric series, want 3 (use/allowed, use/denied, get/denied)", n)
	}
}

// TestAFreshCheckerAsksEachTime revokes a right between two checks.
func TestAFreshCheckerAsksEachTime(t *testing.T) {
	var revoked atomic.Bool
	client, asked := reviewer(t, func(authorizationv1.SubjectAccessReviewSpec) (bool, int) { return !revoked.Load(), http.StatusCreated })
	checker, err := permission.New(permission.Options{Client: client, Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		got, err := checker.Allowed(t.Context(), authenticationv1.UserInfo{Username: "ada"}, permission.Use, "golden", "fedora")
		if err != nil || got != want {
			t.Errorf("got %t, %v, want %t", got, err, want)
		}
		revoked.Store(true)
	}
	if asked.Load() != 2 {
		t.Errorf("the API server was asked %d times", asked.Load())
	}
}
