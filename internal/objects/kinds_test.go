package objects

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unreachable is a mapper that cannot ask the API server.
type unreachable struct{ meta.RESTMapper }

func (unreachable) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("connection refused")
}

func TestResource(t *testing.T) {
	core, networking := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{core, networking})
	mapper.Add(core.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(core.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(core.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.AddSpecific(networking.WithKind("NetworkPolicy"), networking.WithResource("networkpolicies"), networking.WithResource("networkpolicy"), meta.RESTScopeNamespace)
	mapper.AddSpecific(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Secret"}, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "secrets"},
		schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "secret"}, meta.RESTScopeNamespace)

	for _, tc := range []struct {
		name, apiVersion, kind string
		mapper                 meta.RESTMapper
		permitted              []string
		want                   string
		wantError              string
		temporary              bool
	}{
		{name: "a kind of the core group", apiVersion: "v1", kind: "Secret", permitted: []string{"secrets"}, want: "/v1, Resource=secrets"},
		{name: "a kind of another group", apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", permitted: []string{"secrets", "networkpolicies.networking.k8s.io"}, want: "networking.k8s.io/v1, Resource=networkpolicies"},
		{
			name: "a kind that is not permitted", apiVersion: "v1", kind: "Pod", permitted: []string{"secrets"},
			wantError: "templates create no pods in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.resources",
		},
		{
			name: "a kind of another group that is not permitted", apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", permitted: []string{"networkpolicies"},
			wantError: "templates create no networkpolicies.networking.k8s.io in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.resources",
		},
		{
			name: "a resource of the same name in another group", apiVersion: "example.com/v1", kind: "Secret", permitted: []string{"secrets"},
			wantError: "templates create no secrets.example.com in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.resources",
		},
		{
			name: "where none is permitted", apiVersion: "v1", kind: "Secret",
			wantError: "templates create no secrets in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.resources",
		},
		{
			name: "a cluster-scoped kind, although it is permitted", apiVersion: "v1", kind: "Namespace", permitted: []string{"namespaces"},
			wantError: "kind Namespace has no namespace, and a VirtualMachine owns objects of its namespace only",
		},
		{
			name: "a kind that is not served", apiVersion: "example.com/v1", kind: "Widget", permitted: []string{"widgets.example.com"},
			wantError: "this cluster does not serve kind Widget in apiVersion example.com/v1",
		},
		{
			name: "a version that is not served", apiVersion: "networking.k8s.io/v9", kind: "NetworkPolicy", permitted: []string{"networkpolicies.networking.k8s.io"},
			wantError: "this cluster does not serve kind NetworkPolicy in apiVersion networking.k8s.io/v9",
		},
		{name: "nothing", permitted: []string{"secrets"}, wantError: "this cluster does not serve kind  in apiVersion "},
		{
			name: "an API server that cannot be asked", apiVersion: "v1", kind: "Secret", permitted: []string{"secrets"}, mapper: unreachable{},
			wantError: "finding the resource of kind Secret: connection refused", temporary: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.mapper == nil {
				tc.mapper = mapper
			}
			got, err := NewKinds(tc.mapper, tc.permitted, nil).Resource(tc.apiVersion, tc.kind)
			if tc.wantError == "" {
				if err != nil || got.String() != tc.want {
					t.Errorf("got %s, %v; want %s", got, err, tc.want)
				}
				return
			}
			var denied Denied
			if err == nil || err.Error() != tc.wantError || errors.As(err, &denied) == tc.temporary || !got.Empty() {
				t.Errorf("got %s, %v (denied: %t); want %s", got, err, denied != "", tc.wantError)
			}
		})
	}
}

func TestLent(t *testing.T) {
	kinds := NewKinds(nil, nil, []string{"configmaps", "networkpolicies.networking.k8s.io"})
	for resource, want := range map[string]string{
		"configmaps":                        "",
		"networkpolicies.networking.k8s.io": "",
		"secrets":                           "templates lend no right to create secrets in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.lentResources",
		"configmaps.example.com":            "templates lend no right to create configmaps.example.com in this cluster: a cluster admin can permit it in the values of Stencil's chart, objects.lentResources",
	} {
		if got := kinds.Lent(schema.ParseGroupResource(resource)); got.Error() != want {
			t.Errorf("%s: %q, want %q", resource, got, want)
		}
	}
}
