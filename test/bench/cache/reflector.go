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

// receive returns how long a bare reflector of client-go takes from its request until it has received and decoded the templates: it requests
// them as the manager does, by a watch that begins with the stored objects where the API server offers that.
func receive(ctx context.Context, plane *controlplane.Plane, count int) (time.Duration, error) {
	client, err := catalogue.Client(plane.AdminConfig())
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	received := make(chan int, 1)
	nothing := &cache.FakeCustomStore{ReplaceFunc: func(objects []any, _ string) error {
		select {
		case received <- len(objects):
		default:
		}
		return nil
	}}
	watch := cache.NewListWatchFromClient(client, "virtualmachinetemplates", metav1.NamespaceAll, fields.Everything())
	begin := time.Now()
	go cache.NewReflectorWithOptions(watch, &v1beta1.VirtualMachineTemplate{}, nothing, cache.ReflectorOptions{}).RunWithContext(ctx)
	select {
	case listed := <-received:
		if listed != count {
			return 0, fmt.Errorf("the reflector has received %d templates, not %d", listed, count)
		}
		return time.Since(begin), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
