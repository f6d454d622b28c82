package watching_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/cache/watching"
)

var networks = schema.GroupVersionResource{Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions"}

// cluster serves one kind, or does not.
type cluster struct {
	discovery.ServerResourcesInterface

	mutex    sync.Mutex
	installs bool
	watched  *watch.FakeWatcher
	lists    int
	err      error
}

func (c *cluster) install(installs bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.installs = installs
	if !installs && c.watched != nil {
		c.watched.Stop()
	}
}

func (c *cluster) listed() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.lists
}

func (c *cluster) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.installs {
		return nil, apierrors.NewNotFound(networks.GroupResource(), "")
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: networks.Resource}}}, nil
}

func (c *cluster) source() cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			c.lists++
			switch {
			case !c.installs:
				return nil, apierrors.NewNotFound(networks.GroupResource(), "")
			case c.err != nil:
				return nil, c.err
			}
			return &metav1.PartialObjectMetadataList{
				ListMeta: metav1.ListMeta{ResourceVersion: "1"},
				Items:    []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "golden", Name: "vlan"}}},
			}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			switch {
			case !c.installs:
				return nil, apierrors.NewNotFound(networks.GroupResource(), "")
			case options.SendInitialEvents != nil:
				// The response of an API server that does not stream lists.
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
			}
			c.watched = watch.NewFake()
			return c.watched, nil
		},
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
		<-tick.C
	}
}

// TestAKindComesAndGoesAndComes prevents two regressions: a manager that starts before the kind is served, and a log that
// fills up.
func TestAKindComesAndGoesAndComes(t *testing.T) {
	c := &cluster{}
	var mutex sync.Mutex
	var told []error
	last := func() (int, error) {
		mutex.Lock()
		defer mutex.Unlock()
		if len(told) == 0 {
			return 0, nil
		}
		return len(told), told[len(told)-1]
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watching.RunLate(ctx, logr.Discard(), c, watching.Late{
			Resource: networks, Source: c.source(), Example: &metav1.PartialObjectMetadata{}, Into: store, Name: "networks",
			Interval: 5 * time.Millisecond,
			Failed: func(err error) {
				mutex.Lock()
				defer mutex.Unlock()
				told = append(told, err)
			},
		})
	}()
	unknown := func() bool {
		n, err := last()
		return n > 2 && apierrors.IsNotFound(err)
	}
	eventually(t, "the kind is not known", unknown)
	if c.listed() > 0 {
		t.Error("a kind that is not served was listed")
	}
	for range 2 {
		c.install(true)
		eventually(t, "the objects are there", func() bool { return len(store.ListKeys()) == 1 })
		mutex.Lock()
		told = nil
		mutex.Unlock()
		if err := store.Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
		c.install(false)
		eventually(t, "the kind is not known any more", unknown)
		before, _ := last()
		lists := c.listed()
		eventually(t, "it was asked for some more", func() bool { n, _ := last(); return n > before+5 })
		if c.listed() > lists {
			t.Error("a kind that is not served any more is listed again and again")
		}
	}
	// The reflector retries a kind that is served but may not be listed.
	c.mutex.Lock()
	c.installs, c.err = true, apierrors.NewForbidden(networks.GroupResource(), "", errors.New("no"))
	c.mutex.Unlock()
	eventually(t, "that is told", func() bool { _, err := last(); return apierrors.IsForbidden(err) })
	cancel()
	<-ended
}
