package cache

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/bench/catalogue"
	"github.com/vmstencil/stencil/test/controlplane"
)

// sink is a store of a reflector that stores nothing.
type sink struct{ listed chan int }

// Add implements cache.ReflectorStore, as do the methods below.
func (sink) Add(any) error { return nil }

// Update is for a watch that continues.
func (sink) Update(any) error { return nil }

// Delete is for a watch that continues.
func (sink) Delete(any) error { return nil }

// Resync is never needed.
func (sink) Resync() error { return nil }

// Replace receives the list.
func (s sink) Replace(objects []any, _ string) error {
	select {
	case s.listed <- len(objects):
	default:
	}
	return nil
}

// receive returns how long a bare reflector of client-go takes from its request until it has received and decoded the templates: it requests
// them as the manager does, by a watch that begins with the stored objects where the API server offers that.
func receive(ctx context.Context, plane *controlplane.Plane, count int) (time.Duration, error) {
	client, err := catalogue.Client(plane.AdminConfig())
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	store := sink{listed: make(chan int, 1)}
	watch := cache.NewListWatchFromClient(client, "virtualmachinetemplates", metav1.NamespaceAll, fields.Everything())
	begin := time.Now()
	go cache.NewReflectorWithOptions(watch, &v1beta1.VirtualMachineTemplate{}, store, cache.ReflectorOptions{}).RunWithContext(ctx)
	select {
	case listed := <-store.listed:
		if listed != count {
			return 0, fmt.Errorf("the reflector has received %d templates, not %d", listed, count)
		}
		return time.Since(begin), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
