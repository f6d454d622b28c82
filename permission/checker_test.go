package permission_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/vmstencil/stencil/permission"
)

// reviewer answers SubjectAccessReviews with a function, and counts them.
func reviewer(answer func(authorizationv1.SubjectAccessReviewSpec) (bool, error)) (*fake.Clientset, *atomic.Int64) {
	var asked atomic.Int64
	client := fake.NewClientset()
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		asked.Add(1)
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		allowed, err := answer(review.Spec)
		review.Status.Allowed = allowed
		return true, review, err
	})
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
		err       error
		want      bool
		wantErr   bool
		wantAsked int64
	}{
		{name: "a yes is passed on and remembered", answer: true, want: true, wantAsked: 1},
		{name: "a no is passed on and remembered", answer: false, want: false, wantAsked: 1},
		{name: "a refused review is an error and no yes, and is not remembered", answer: true, err: apierrors.NewForbidden(authorizationv1.Resource("subjectaccessreviews"), "", errors.New("no")), wantErr: true, wantAsked: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got authorizationv1.SubjectAccessReviewSpec
			client, asked := reviewer(func(spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
				got = spec
				return tc.answer, tc.err
			})
			checker, err := permission.New(permission.Options{Client: client.AuthorizationV1()})
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
	client, asked := reviewer(func(spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
		return spec.User == "ada" && spec.ResourceAttributes.Name == "fedora" && spec.ResourceAttributes.Verb == "use", nil
	})
	registry := prometheus.NewRegistry()
	checker, err := permission.New(permission.Options{Client: client.AuthorizationV1(), Registerer: registry})
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
