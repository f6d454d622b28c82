package objectkeys

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/internal/objects"
)

func TestCache(t *testing.T) {
	c, err := New(Options{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Secret: types.NamespacedName{Namespace: "stencil-system", Name: "stencil-object-keys"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.NeedLeaderElection() {
		t.Error("a replica that is no leader encrypts too")
	}
	next := c.Changed()
	check := func(when string, synced, changed bool, want objects.Keys) {
		t.Helper()
		if c.Synced() != synced {
			t.Errorf("%s: synced is %v", when, !synced)
		}
		if diff := cmp.Diff(want, c.Keys()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		closed := false
		select {
		case <-next:
			closed = true
		default:
		}
		if closed != changed {
			t.Errorf("%s: the channel is closed: %v", when, closed)
		}
		next = c.Changed()
		select {
		case <-next:
			t.Errorf("%s: the channel of the next change is closed", when)
		default:
		}
	}
	secret := func(namespace, name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check("before the list", false, false, nil)

	must(c.secrets.Replace(nil, "1"))
	check("if there is no Secret", true, true, nil)

	first, second := map[string][]byte{"a": []byte("1")}, map[string][]byte{"a": []byte("1"), "b": []byte("2")}
	must(c.secrets.Add(secret("stencil-system", "stencil-object-keys", first)))
	check("with a key", true, true, first)
	check("without a change", true, false, first)

	must(c.secrets.Update(secret("stencil-system", "stencil-object-keys", second)))
	must(c.secrets.Update(secret("stencil-system", "stencil-object-keys", first)))
	must(c.secrets.Update(secret("stencil-system", "stencil-object-keys", second)))
	check("after several changes, which no receiver delays", true, true, second)

	must(c.secrets.Add(secret("stencil-system", "other", first)))
	must(c.secrets.Add(secret("team-a", "stencil-object-keys", first)))
	check("with Secrets of other names", true, true, second)

	must(c.secrets.Delete(secret("stencil-system", "stencil-object-keys", nil)))
	check("if the Secret was deleted", true, true, nil)

	must(c.secrets.Replace([]any{secret("stencil-system", "stencil-object-keys", nil)}, "2"))
	check("if the Secret has no data", true, true, nil)

	if err := c.secrets.Add("text"); err == nil || err.Error() != "the watch of Secrets received a string" {
		t.Errorf("of a string: %v", err)
	}
}

func TestNewDeniesAConfigurationThatMakesNoClient(t *testing.T) {
	_, err := New(Options{Config: &rest.Config{Host: "127.0.0.1", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}}})
	if want := "making the client of the keys of objects: open /does/not/exist: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
