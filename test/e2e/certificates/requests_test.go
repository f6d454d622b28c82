package certificates_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

var (
	virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	templates       = schema.GroupVersionResource{Group: "template.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinetemplates"}
)

// requests makes requests that need the webhooks and leave nothing behind.
type requests struct {
	client dynamic.Interface
}

func newRequests(t *testing.T) requests {
	t.Helper()
	client, err := dynamic.NewForConfig(shared.Plane(t).AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return requests{client}
}

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// vm creates a VirtualMachine from the template and checks that it was rendered.
func (r requests) vm(ctx context.Context, name string) error {
	created, err := r.client.Resource(virtualMachines).Namespace("default").Create(ctx, gen.VM(name, gen.FromTemplate("plain")), dryRun)
	if err != nil {
		return err
	}
	strategy, _, err := unstructured.NestedString(created.Object, "spec", "runStrategy")
	if err != nil || strategy != "Halted" {
		return fmt.Errorf("the VirtualMachine was not rendered: %w", err)
	}
	return nil
}

// template creates a template, which the other webhook validates.
func (r requests) template(ctx context.Context, name string) error {
	_, err := r.client.Resource(templates).Namespace("default").Create(ctx, plainTemplate(name), dryRun)
	return err
}

// ensureTemplate creates the template that machine refers to.
func (r requests) ensureTemplate(ctx context.Context) error {
	_, err := r.client.Resource(templates).Namespace("default").Create(ctx, plainTemplate("plain"), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func plainTemplate(name string) *unstructured.Unstructured {
	return gen.Template(name, gen.Declares("NAME", "required: true"), gen.Renders("${NAME}", gen.LeastSpec()))
}

// stream is a steady stream of requests.
type stream struct {
	stop     context.CancelFunc
	work     sync.WaitGroup
	mutex    sync.Mutex
	made     int
	failures []error
}

// startStream makes requests from several clients at once, and handshakes beside them, until the stream is ended.
func startStream(t *testing.T) *stream {
	t.Helper()
	const clients = 4
	ctx, stop := context.WithCancel(t.Context())
	s := &stream{stop: stop}
	requests := newRequests(t)
	for i := range clients {
		s.work.Go(func() {
			s.repeat(ctx, func(ctx context.Context, n int) error {
				if (n+i)%2 == 0 {
					return requests.vm(ctx, fmt.Sprintf("machine-%d-%d", i, n))
				}
				return requests.template(ctx, fmt.Sprintf("template-%d-%d", i, n))
			})
		})
	}
	neighbour := newNeighbour(t)
	s.work.Go(func() { s.repeat(ctx, neighbour.call) })
	t.Cleanup(s.end)
	return s
}

// repeat calls request until ctx ends, 50 times a second at most.
func (s *stream) repeat(ctx context.Context, request func(ctx context.Context, n int) error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for n := 0; ; n++ {
		// A request that has begun is finished: a failure caused by the end of the test would mean nothing.
		err := request(context.WithoutCancel(ctx), n)
		s.mutex.Lock()
		s.made++
		if err != nil {
			s.failures = append(s.failures, fmt.Errorf("%s: %w", time.Now().Format(time.StampMilli), err))
		}
		s.mutex.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *stream) end() {
	s.stop()
	s.work.Wait()
}

// count returns how many requests were made so far.
func (s *stream) count() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.made
}

// awaitMore waits until that many more requests have been made.
func (s *stream) awaitMore(t *testing.T, more int) {
	t.Helper()
	goal := s.count() + more
	harness.Eventually(t, "more requests have been answered", func() error {
		if s.count() < goal {
			return errors.New("the stream of requests is stuck")
		}
		return nil
	})
}

// expectNoFailure ends the stream and fails the test if any request failed.
func (s *stream) expectNoFailure(t *testing.T) {
	t.Helper()
	s.end()
	if len(s.failures) > 0 {
		t.Errorf("%d of %d requests failed; the first: %v\nthe last: %v", len(s.failures), s.made, s.failures[0], s.failures[len(s.failures)-1])
	}
	t.Logf("%d requests", s.made)
}
