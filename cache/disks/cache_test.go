package disks

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/internal/disks"
)

func named(namespace, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestOnlyDisksOfTheCacheAreRead(t *testing.T) {
	var read []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read = append(read, r.URL.Path[strings.LastIndex(r.URL.Path, "/namespaces/")+len("/namespaces/"):])
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}`))
	}))
	defer server.Close()
	api, err := disks.NewAPIServer(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	c := newCache()
	reader := Reader{APIServer: api, Cache: c}
	look := func(want ...string) {
		t.Helper()
		read = nil
		for _, name := range []string{"a", "b"} {
			if _, err := reader.DataVolume(t.Context(), "team-a", name); err != nil {
				t.Fatal(err)
			}
			if _, err := reader.Claim(t.Context(), "team-a", name); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, read); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	all := []string{"team-a/datavolumes/a", "team-a/persistentvolumeclaims/a", "team-a/datavolumes/b", "team-a/persistentvolumeclaims/b"}
	look(all...)
	if err := c.dataVolumes.Replace([]any{named("team-a", "a")}, "1"); err != nil {
		t.Fatal(err)
	}
	// One of two lists has not arrived.
	look(all...)
	if err := c.claims.Replace([]any{named("team-a", "b"), named("team-b", "a")}, "1"); err != nil {
		t.Fatal(err)
	}
	look("team-a/datavolumes/a", "team-a/persistentvolumeclaims/b")
}

func TestDeletedDataVolumesAreReported(t *testing.T) {
	c := newCache()
	var deleted []string
	c.Listen(func(name types.NamespacedName) { deleted = append(deleted, name.String()) })
	for _, step := range []error{
		c.dataVolumes.Replace([]any{named("a", "one"), named("a", "two")}, "1"), c.dataVolumes.Add(named("a", "three")), c.claims.Add(named("a", "one")),
		c.claims.Delete(named("a", "one")), c.dataVolumes.Delete(named("a", "one")), c.dataVolumes.Replace([]any{named("a", "three")}, "2"),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if diff := cmp.Diff([]string{"a/one", "a/two"}, deleted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
