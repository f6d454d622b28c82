package readiness

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	templatecache "github.com/vmstencil/stencil/cache/templates"
)

func TestTheVerdictOfADryRun(t *testing.T) {
	machines := schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachines"}
	for _, tc := range []struct {
		name    string
		err     error
		status  string
		reason  string
		message string
	}{
		{"accepted", nil, "True", "Accepted", "the VirtualMachine of the template's defaults was accepted in a dry run"},
		{"a machine of that name is there", apierrors.NewAlreadyExists(machines, "box"), "True", "Accepted", "the VirtualMachine of the template's defaults was accepted in a dry run"},
		{
			"refused by a webhook, whose words quote a password", apierrors.NewForbidden(machines, "box", errors.New(`admission webhook denied the request: bad user data "hunter22"`)), "False", "Refused",
			`the VirtualMachine of the template's defaults is denied: virtualmachines.kubevirt.io "box" is forbidden: admission webhook denied the request: bad user data "(sensitive)"`,
		},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "VirtualMachine"}, "box", nil), "False", "Refused", `the VirtualMachine of the template's defaults is denied: VirtualMachine "box" is invalid`},
		{"malformed", apierrors.NewBadRequest("strict decoding"), "False", "Refused", "the VirtualMachine of the template's defaults is denied: strict decoding"},
		{
			"the manager may not", apierrors.NewForbidden(machines, "", errors.New(`User "m" cannot create resource "virtualmachines"`)), "Unknown", "NotTried",
			`the dry run could not be made: virtualmachines.kubevirt.io is forbidden: User "m" cannot create resource "virtualmachines"`,
		},
		{"KubeVirt is not installed", apierrors.NewNotFound(machines, ""), "Unknown", "NotTried", `the dry run could not be made: virtualmachines.kubevirt.io "" not found`},
		{"a webhook is away", apierrors.NewInternalError(errors.New("failed calling webhook")), "Unknown", "NotTried", "the dry run could not be made: Internal error occurred: failed calling webhook"},
		{"the API server is away", context.DeadlineExceeded, "Unknown", "NotTried", "the dry run could not be made: context deadline exceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := resultOf(tc.err, []string{"hunter22"})
			if string(got.status) != tc.status || got.reason != tc.reason || got.message != tc.message {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// press stores the created VMs.
type press struct {
	mutex sync.Mutex
	made  []*unstructured.Unstructured
	err   error
}

func (p *press) create(_ context.Context, vm *unstructured.Unstructured) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.made = append(p.made, vm)
	return p.err
}

func TestADryRunIsMadeOnceForEachContent(t *testing.T) {
	w, _, _ := start(t, vmt(t, "box", fromFedora))
	box := types.NamespacedName{Namespace: "golden", Name: "box"}
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	p, clock := &press{}, clocktesting.NewFakeClock(noon)
	done := make(chan types.NamespacedName, 10)
	d := newDryRuns(library{w}, p, m, clock, func(name types.NamespacedName) { done <- name })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Start(ctx) }()
	ask := func(sizes string) *dryRunResult { return d.result(box, templatecache.Compile(w.templates[box]), sizes) }
	answer := func() {
		t.Helper()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("there is no answer")
		}
	}

	if got := ask(""); got.reason != "NotTried" {
		t.Errorf("before anything: %+v", got)
	}
	answer()
	if got := ask(""); got.reason != "Accepted" {
		t.Errorf("then: %+v", got)
	}
	made := p.made[0]
	if made.GetNamespace() != "golden" || made.GetName() != "policy-check" || made.GetKind() != "VirtualMachine" || len(made.GetAnnotations()) > 0 {
		t.Errorf("made %v", made.Object["metadata"])
	}

	p.mutex.Lock()
	p.err = apierrors.NewBadRequest("no such instance type")
	p.mutex.Unlock()
	if got := ask("NotFound "); got.reason != "Accepted" {
		t.Errorf("the last answer stands until there is a new one: %+v", got)
	}
	answer()
	if got := ask("NotFound "); got.reason != "Refused" {
		t.Errorf("with another instance type: %+v", got)
	}

	clock.Step(dryRunLife)
	if got := ask("NotFound "); got.reason != "Refused" {
		t.Errorf("got %+v", got)
	}
	answer()
	if len(p.made) != 3 {
		t.Errorf("%d dry runs, want one for the content, one for the instance type, one because of age", len(p.made))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWhatAnotherLeaderFoundOutStands(t *testing.T) {
	object := vmt(t, "box", fromFedora)
	w, r, _ := start(t, object)
	r.dryRuns = newDryRuns(library{w}, &press{}, r.metrics, clocktesting.NewFakeClock(noon), func(types.NamespacedName) {})
	object.Status.Conditions = decide(observation{generation: 3, dryRun: &dryRunResult{"True", "Accepted", "fine"}})
	got := r.dryRuns.result(types.NamespacedName{Namespace: "golden", Name: "box"}, templatecache.Compile(object), "")
	if got.reason != "Accepted" || got.message != "fine" {
		t.Errorf("got %+v", got)
	}
	object.Generation = 4
	got = r.dryRuns.result(types.NamespacedName{Namespace: "golden", Name: "box"}, templatecache.Compile(object), "")
	if got.reason != "NotTried" || !strings.Contains(got.message, "turn") {
		t.Errorf("of another content: %+v", got)
	}
}
