package objects

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/internal/objects"
)

// aged returns the ID of a key that was made a while ago.
func aged(age time.Duration) string {
	return time.Now().UTC().Add(-age).Format("20060102t150405z") + "-aa"
}

func TestReconcileKeys(t *testing.T) {
	const day = 24 * time.Hour
	var (
		young, old, ancient = aged(time.Hour), aged(objects.RenewAfter + time.Hour), aged(100 * day)
		key                 = bytes.Repeat([]byte{7}, 32)
		secrets             = schema.GroupResource{Resource: "secrets"}
	)
	keysOf := func(ids ...string) objects.Keys {
		keys := objects.Keys{}
		for _, id := range ids {
			keys[id] = key
		}
		return keys
	}
	for _, tc := range []struct {
		name string
		// cached are the keys in the cache, stored those in the Secret; if nil, there is none.
		cached, stored objects.Keys
		unsynced       bool
		inUse          []string
		unknown        bool
		fails          map[string]error
		want           string
		// wantVerbs are the requests, wantKept the keys that are stored afterwards, besides a new one.
		wantVerbs  []string
		wantKept   []string
		wantNew    bool
		wantSooner bool
	}{
		{name: "before the cache is synced", unsynced: true, wantSooner: true},
		{name: "the first key", wantVerbs: []string{"get", "create"}, wantNew: true},
		{name: "a Secret without data", cached: objects.Keys{}, stored: objects.Keys{}, wantVerbs: []string{"get", "update"}, wantNew: true},
		{name: "a young key", cached: keysOf(young), stored: keysOf(young), wantKept: []string{young}},
		{name: "an old key", cached: keysOf(old), stored: keysOf(old), wantVerbs: []string{"get", "update"}, wantKept: []string{old}, wantNew: true},
		{name: "a key that no VM needs any more", cached: keysOf(young, ancient), stored: keysOf(young, ancient), wantVerbs: []string{"get", "update"}, wantKept: []string{young}},
		{name: "a key that a VM needs", cached: keysOf(young, ancient), stored: keysOf(young, ancient), inUse: []string{ancient}, wantKept: []string{young, ancient}},
		{name: "a key that some VM may need", cached: keysOf(young, ancient), stored: keysOf(young, ancient), unknown: true, wantKept: []string{young, ancient}},
		{name: "an entry that is no key", cached: objects.Keys{young: key, "note": key}, stored: objects.Keys{young: key, "note": key}, wantVerbs: []string{"get", "update"}, wantKept: []string{young}},
		{name: "a cache that is late", cached: keysOf(old), stored: keysOf(old, young), wantVerbs: []string{"get"}, wantKept: []string{old, young}},
		{name: "a cache that does not have the Secret yet", stored: keysOf(young), wantVerbs: []string{"get"}, wantKept: []string{young}},
		// The new keys must not be lost keys of the Secret, which no longer exists.
		{name: "a Secret that was deleted a moment ago", cached: keysOf(old), wantVerbs: []string{"get", "create"}, wantNew: true},
		{
			name: "another process makes the Secret", fails: map[string]error{"create": apierrors.NewAlreadyExists(secrets, "stencil-object-keys")},
			want: `writing the keys that encrypt objects: secrets "stencil-object-keys" already exists`, wantVerbs: []string{"get", "create"},
		},
		{
			name: "another process renews the keys", cached: keysOf(old), stored: keysOf(old), fails: map[string]error{"update": apierrors.NewConflict(secrets, "stencil-object-keys", errors.New("changed"))},
			want:      `writing the keys that encrypt objects: Operation cannot be fulfilled on secrets "stencil-object-keys": changed`,
			wantVerbs: []string{"get", "update"}, wantKept: []string{old},
		},
		{
			name: "the API server is gone", cached: keysOf(old), stored: keysOf(old), fails: map[string]error{"get": errGone},
			want: "writing the keys that encrypt objects: " + errGone.Error(), wantVerbs: []string{"get"}, wantKept: []string{old},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := fake.NewClientset()
			if tc.stored != nil {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "stencil-system", Name: "stencil-object-keys", Labels: map[string]string{"a": "b"}}, Data: tc.stored}
				if err := client.Tracker().Add(secret); err != nil {
					t.Fatal(err)
				}
			}
			var verbs []string
			client.PrependReactor("*", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
				verbs = append(verbs, a.GetVerb())
				return tc.fails[a.GetVerb()] != nil, nil, tc.fails[a.GetVerb()]
			})
			k := &keys{
				cache: &fixedKeys{keys: tc.cached, unsynced: tc.unsynced}, secrets: client.CoreV1().Secrets("stencil-system"), name: "stencil-object-keys",
				inUse: func() (map[string]bool, bool) {
					inUse := map[string]bool{}
					for _, id := range tc.inUse {
						inUse[id] = true
					}
					return inUse, !tc.unknown
				},
			}
			result, err := k.Reconcile(t.Context(), reconcile.Request{})
			message := ""
			if err != nil {
				message = err.Error()
			}
			if message != tc.want {
				t.Errorf("got  %s\nwant %s", message, tc.want)
			}
			if wait := map[bool]time.Duration{false: time.Hour, true: time.Second}[tc.wantSooner]; err == nil && result.RequeueAfter != wait {
				t.Errorf("it comes back after %s", result.RequeueAfter)
			}
			if !slices.Equal(verbs, tc.wantVerbs) {
				t.Errorf("requests %q, want %q", verbs, tc.wantVerbs)
			}

			client.ReactionChain = client.ReactionChain[1:]
			stored, err := client.CoreV1().Secrets("stencil-system").Get(t.Context(), "stencil-object-keys", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				if tc.wantNew || len(tc.wantKept) > 0 {
					t.Error("there is no Secret")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tc.stored != nil && stored.Labels["a"] != "b" {
				t.Error("the labels of the Secret are lost")
			}
			if tc.stored == nil && stored.Type != corev1.SecretTypeOpaque {
				t.Errorf("the Secret has type %s", stored.Type)
			}
			data := maps.Clone(stored.Data)
			maps.DeleteFunc(data, func(id string, value []byte) bool { return slices.Contains(tc.wantKept, id) && bytes.Equal(value, key) })
			if lost := len(tc.wantKept) + len(data) - len(stored.Data); lost != 0 || len(data) > 1 || len(data) == 1 != tc.wantNew {
				t.Errorf("the Secret has %v", slices.Collect(maps.Keys(stored.Data)))
			}
			for id, value := range data {
				if len(value) != 32 || bytes.Equal(value, key) || id < aged(time.Minute) {
					t.Errorf("the new key %s has %d bytes", id, len(value))
				}
			}
		})
	}
}

func TestNewKeysWriteTheSecretOnly(t *testing.T) {
	var received []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received = append(received, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":"Secret","apiVersion":"v1"}`))
	}))
	defer server.Close()
	none := func() (map[string]bool, bool) { return nil, true }
	secret := types.NamespacedName{Namespace: "stencil-system", Name: "stencil-object-keys"}
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	k, err := newKeys(config, secret, &fixedKeys{}, none)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"GET /api/v1/namespaces/stencil-system/secrets/stencil-object-keys", "POST /api/v1/namespaces/stencil-system/secrets"}
	if diff := cmp.Diff(want, received); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if _, err := newKeys(&rest.Config{Host: "127.0.0.1", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}}, secret, &fixedKeys{}, none); err == nil {
		t.Error("a configuration that makes no client")
	}
}
