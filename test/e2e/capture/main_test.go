// Package capture_test makes templates of machines as people do, with a manager that has no more rights than the chart gives it.
//
// There are two planes, each started when a test asks for it. On one KubeVirt's own API server and controller judge machines, take
// the snapshots and expand instance types, and CDI's own controllers copy the disks, on storage that is played. On the other the definitions of KubeVirt and CDI are installed and nobody acts by them
// but the player of this package, which takes its time, fails, and loses things when it is told to; a capture can be held there at
// any step.
package capture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/platform"
)

// limit is how long anything may take that is waited for.
const limit = 90 * time.Second

// stage is a plane with Stencil.
type stage struct {
	options platform.Options
	play    bool

	once     sync.Once
	err      error
	platform *platform.Platform
	client   dynamic.Interface
	player   *player
}

var (
	real   = &stage{options: platform.Options{KubeVirt: true, ControllerManager: true, CDI: true, Log: os.Stderr}}
	played = &stage{options: platform.Options{
		ControllerManager: true, Log: os.Stderr,
		// One manager at a time runs here, and a killed one need not be waited for.
		ManagerArgs: []string{"--leader-elect=false"},
	}, play: true}
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, each := range []*stage{real, played} {
		if each.player != nil {
			each.player.stop()
		}
		if each.platform == nil {
			continue
		}
		if err := each.platform.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// on starts the stage with the first test that asks for it.
func (s *stage) on(t *testing.T) *stage {
	t.Helper()
	s.once.Do(func() {
		// It serves later tests too, so the life of this one must not bound it.
		ctx := context.Background()
		if s.platform, s.err = platform.Start(ctx, s.options); s.err != nil {
			return
		}
		config := rest.CopyConfig(s.platform.Plane.AdminConfig())
		config.QPS = -1
		if s.client, s.err = dynamic.NewForConfig(config); s.err == nil && s.play {
			s.player = startPlayer(s.client)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	if s.player != nil {
		t.Cleanup(s.player.willing)
	}
	return s
}

// kubectl runs kubectl, as the administrator when as is nil.
func (s *stage) kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	// Cleanups call kubectl too, after the context of the test has ended.
	result, err := s.platform.Plane.Kubectl(context.WithoutCancel(t.Context()), as, stdin, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (s *stage) must(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	result := s.kubectl(t, nil, stdin, arguments...)
	if result.Code != 0 {
		t.Fatalf("kubectl %s: exit %d\n%s%s", strings.Join(arguments, " "), result.Code, result.Stdout, result.Stderr)
	}
	return result.Stdout
}

// namespace makes a namespace that goes with the test.
func (s *stage) namespace(t *testing.T, prefix string) string {
	t.Helper()
	name, err := s.platform.Plane.Namespace(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.kubectl(t, nil, "", "delete", "namespace", name, "--ignore-not-found", "--wait=false") })
	return name
}

var (
	requests    = schema.GroupVersionResource{Group: "template.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinetemplaterequests"}
	templates   = schema.GroupVersionResource{Group: "template.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinetemplates"}
	machines    = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	snapshots   = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshots"}
	contents    = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshotcontents"}
	dataVolumes = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}
)

// all are the objects of a kind in a namespace.
func (s *stage) all(t *testing.T, resource schema.GroupVersionResource, namespace string) []unstructured.Unstructured {
	t.Helper()
	list, err := s.client.Resource(resource).Namespace(namespace).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// condition is what a request says of itself.
type condition struct{ Type, Status, Reason, Message string }

// conditions are those of a request; nil when it is gone.
func (s *stage) conditions(t *testing.T, namespace, name string) map[string]condition {
	t.Helper()
	result := s.kubectl(t, nil, "", "get", "vmtr", name, "-n", namespace, "-o", "json", "--ignore-not-found")
	if result.Code != 0 {
		t.Fatal(result.Stderr)
	}
	if result.Stdout == "" {
		return nil
	}
	var request struct {
		Status struct{ Conditions []condition }
	}
	if err := json.Unmarshal([]byte(result.Stdout), &request); err != nil {
		t.Fatal(err)
	}
	found := map[string]condition{}
	for _, each := range request.Status.Conditions {
		found[each.Type] = each
	}
	return found
}

// eventually waits until problem returns nothing.
func eventually(t *testing.T, problem func() string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		last := problem()
		if last == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still after %s: %s", limit, last)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ends waits until a request has ended, and returns its conditions.
func (s *stage) ends(t *testing.T, namespace, name string) map[string]condition {
	t.Helper()
	var last map[string]condition
	eventually(t, func() string {
		last = s.conditions(t, namespace, name)
		if last["Progressing"].Status == "False" {
			return ""
		}
		return fmt.Sprintf("request %s/%s: %+v", namespace, name, last)
	})
	return last
}

// waits waits until a request waits for a reason.
func (s *stage) waits(t *testing.T, namespace, name, reason string) condition {
	t.Helper()
	var last condition
	eventually(t, func() string {
		last = s.conditions(t, namespace, name)["Progressing"]
		if last.Status == "True" && last.Reason == reason {
			return ""
		}
		return fmt.Sprintf("request %s/%s: %+v, want reason %s", namespace, name, last, reason)
	})
	return last
}

// request is a VirtualMachineTemplateRequest.
func request(namespace, name, source, vm, more string) string {
	return fmt.Sprintf(`{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateRequest", "metadata": {"namespace": %q, "name": %q},
		"spec": {"virtualMachineRef": {"namespace": %q, "name": %q}%s}}`, namespace, name, source, vm, more)
}
