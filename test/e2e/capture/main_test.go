// Package capture_test makes templates of VirtualMachines as users do, with a manager that has only the permissions of the chart.
//
// There are two planes, each started by the first test that needs it. On the real one KubeVirt's own API server and controller validate
// VirtualMachines, take the snapshots and expand instance types, and CDI's own controllers copy the disks. The storage below them and the node are
// simulated: rules of test/controlplane/csi delay steps, fail them and remove objects. A capture can be held there at each step: by such a rule while
// it waits for others, and before each write of its own by a policy that denies the write.
//
// On the fake one the definitions of KubeVirt and CDI are installed, and a player of this package simulates their controllers. It covers what real
// controllers cannot do: continue to run while their own definitions are deleted and created again, and process 500 captures at once on two cores.
// The denials of the webhooks are tested there too, because they involve no other controllers.
package capture_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

// brief is false in `make soak`, which has more time: 500 captures at once instead of 100, and deletions and uninstallations at every
// step instead of every third one.
var brief = os.Getenv("STENCIL_SOAK") == ""

// limit bounds each wait.
const limit = 3 * time.Minute

// together is how many parallel tests run at a time. They wait for controllers most of their time.
const together = "6"

// stage is a plane with Stencil.
type stage struct {
	options platform.Options
	// prepare runs once the platform is started.
	prepare func(*stage) error

	once     sync.Once
	err      error
	platform *platform.Platform
	// owner has the role edit in the namespaces of the tests, and own is this user's client; client is the administrator's.
	owner       *controlplane.User
	own, client dynamic.Interface
	controllers *fakeControllers
}

// alone is for managers of which one runs at a time: the lease of a killed one need not expire.
var alone = []string{"--leader-elect=false"}

var (
	real = &stage{
		options: platform.Options{
			KubeVirt: true, ControllerManager: true, CDI: true, Replicated: true, ManagerArgs: alone, AuditPolicy: creations, Log: os.Stderr,
		},
		prepare: installHold,
	}
	fake = &stage{
		options: platform.Options{ControllerManager: true, ManagerArgs: alone, Log: os.Stderr},
		prepare: func(s *stage) error {
			s.controllers = startFakeControllers(s.client)
			return s.standIn(context.Background())
		},
	}
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if err := flag.Set("test.parallel", together); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	for _, each := range []*stage{real, fake} {
		if each.controllers != nil {
			each.controllers.stop()
		}
		if each.platform == nil {
			continue
		}
		if err := each.platform.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// on starts the stage with the first test that needs it.
func (s *stage) on(t *testing.T) *stage {
	t.Helper()
	s.once.Do(func() {
		// It serves later tests too, so the life of this one must not bound it.
		ctx := context.Background()
		if s.platform, s.err = platform.Start(ctx, s.options); s.err != nil {
			return
		}
		if s.client, s.err = dynamic.NewForConfig(s.platform.Plane.AdminConfig()); s.err != nil {
			return
		}
		if s.err = s.prepare(s); s.err == nil {
			s.err = s.addOwner(ctx)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s
}

// kubectl runs kubectl, as the administrator when as is nil.
func (s *stage) kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, s.platform.Plane, as, stdin, arguments...)
}

// must runs kubectl as the administrator, requires success, and returns the standard output.
func (s *stage) must(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, s.platform.Plane, nil, stdin, arguments...).Stdout
}

// namespace creates a namespace of the owner, which is deleted with the test.
func (s *stage) namespace(t *testing.T, prefix string) string {
	t.Helper()
	name := harness.Namespace(t, s.platform.Plane, prefix)
	t.Cleanup(func() { s.kubectl(t, nil, "", "delete", "namespace", name, "--ignore-not-found", "--wait=false") })
	harness.Bind(t, s.platform.Plane, s.owner, name, "edit")
	return name
}

var (
	requests        = schema.GroupVersionResource{Group: "template.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinetemplaterequests"}
	templates       = schema.GroupVersionResource{Group: "template.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinetemplates"}
	virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	snapshots       = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshots"}
	contents        = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshotcontents"}
	dataVolumes     = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}
	claims          = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	// volumeSnapshots and volumeContents of the storage, which is on the real stage only.
	volumeSnapshots = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
	volumeContents  = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotcontents"}
)

// all returns the objects of a kind in a namespace.
func (s *stage) all(t *testing.T, resource schema.GroupVersionResource, namespace string) []unstructured.Unstructured {
	t.Helper()
	list, err := s.client.Resource(resource).Namespace(namespace).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// conditions returns the conditions of a request; nil when it no longer exists.
func (s *stage) conditions(t *testing.T, namespace, name string) map[string]metav1.Condition {
	t.Helper()
	object, err := s.client.Resource(requests).Namespace(namespace).Get(context.WithoutCancel(t.Context()), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var request v1beta1.VirtualMachineTemplateRequest
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &request); err != nil {
		t.Fatal(err)
	}
	found := map[string]metav1.Condition{}
	for _, each := range request.Status.Conditions {
		found[each.Type] = each
	}
	return found
}

// eventually waits until problem returns nothing. The parameter what completes the sentence "waiting until …".
func eventually(t *testing.T, what string, problem func() string) {
	t.Helper()
	harness.Within(t, what, limit, func() error { return harness.Complaint(problem()) })
}

// reaches waits until an object that a controller makes is in a phase.
func (s *stage) reaches(t *testing.T, namespace, object, phase string) {
	t.Helper()
	eventually(t, object+" is "+phase, func() string {
		got := s.kubectl(t, nil, "", "get", object, "-n", namespace, "-o", "jsonpath={.status.phase}")
		if got.Stdout == phase {
			return ""
		}
		return object + " is " + got.Stdout + got.Stderr
	})
}

// ends waits until a request has ended, and returns its conditions.
func (s *stage) ends(t *testing.T, namespace, name string) map[string]metav1.Condition {
	t.Helper()
	var last map[string]metav1.Condition
	eventually(t, "the request "+name+" has ended", func() string {
		last = s.conditions(t, namespace, name)
		if last["Progressing"].Status == "False" {
			return ""
		}
		return fmt.Sprintf("request %s/%s: %+v", namespace, name, last)
	})
	return last
}

// awaitProgress waits until the progress message of an unfinished request contains part.
func (s *stage) awaitProgress(t *testing.T, namespace, name, part string) {
	t.Helper()
	eventually(t, "the request "+name+" tells "+part, func() string {
		last := s.conditions(t, namespace, name)
		if got := last["Progressing"]; got.Status == "True" && strings.Contains(got.Message, part) {
			return ""
		}
		return fmt.Sprintf("request %s/%s: %+v, want %q", namespace, name, last, part)
	})
}

// request is a VirtualMachineTemplateRequest.
func request(namespace, name, source, vm, more string) string {
	return fmt.Sprintf(`{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateRequest", "metadata": {"namespace": %q, "name": %q},
		"spec": {"virtualMachineRef": {"namespace": %q, "name": %q}%s}}`, namespace, name, source, vm, more)
}
