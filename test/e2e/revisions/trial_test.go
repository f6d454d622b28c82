package revisions_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/harness"
)

// trialLifetime is how long one dry run is enough for copies of one namespace and kind.
const trialLifetime = 10 * time.Second

// dryRuns counts the dry runs of a writer.
type dryRuns struct {
	next  http.RoundTripper
	count *atomic.Int32
}

func (d *dryRuns) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("dryRun") != "" {
		d.count.Add(1)
	}
	return d.next.RoundTrip(request)
}

// One dry run is enough for the copies of a namespace for some seconds, and each copy has one where a quota may deny it.
func TestDryRuns(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	var count atomic.Int32
	w := newWriterOf(t, clock, func(next http.RoundTripper) http.RoundTripper { return &dryRuns{next, &count} })
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	namespace, another := harness.Namespace(t, plane, "trials"), harness.Namespace(t, plane, "others")
	migrates := func(namespace, name string, trials int32) {
		t.Helper()
		p := newPinned(t, namespace, name, formatAlpha2, true)
		mode(t, v1alpha1.RevisionMigrationApply, namespace)
		count.Store(0)
		if err := w.pass(t); err != nil {
			t.Fatal(err)
		}
		p.migrated(t)
		if got := count.Load(); got != trials {
			t.Errorf("%s: %d dry runs, want %d", name, got, trials)
		}
	}
	migrates(namespace, "first", 1)
	migrates(namespace, "second", 0)
	migrates(another, "elsewhere", 1)
	clock.SetTime(clock.Now().Add(trialLifetime))
	migrates(namespace, "later", 1)
	harness.Must(t, plane, nil, "", "create", "quota", "many", "-n", namespace, "--hard=count/controllerrevisions.apps=100")
	harness.Eventually(t, "the quota is counted", func() error {
		if used := harness.Must(t, plane, nil, "", "get", "quota", "many", "-n", namespace, "-o", "jsonpath={.status.used}").Stdout; used == "" {
			return harness.Complaint("nothing is used")
		}
		return nil
	})
	clock.SetTime(clock.Now().Add(trialLifetime))
	migrates(namespace, "limited", 1)
	migrates(namespace, "still-limited", 1)
}

// A replacement that is denied after the deletion although its dry run was permitted: the copy is there again, and its VirtualMachine starts.
func TestADenialAfterTheDeletionRestoresTheCopy(t *testing.T) {
	namespace := harness.Namespace(t, plane, "denied")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p := newPinned(t, namespace, "web", formatAlpha2, true)
	policy := strings.NewReplacer("SPACE", namespace).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: SPACE}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: SPACE}}
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [controllerrevisions]}]
  matchConditions: [{name: current, expression: "dyn(object).?data.?apiVersion.orValue('') == 'instancetype.kubevirt.io/v1beta1' && !request.?dryRun.orValue(false)"}]
  validations: [{expression: "false", message: not now}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: SPACE}
spec: {policyName: SPACE, validationActions: [Deny]}
`)
	harness.Must(t, plane, nil, policy, "apply", "-f", "-")
	t.Cleanup(func() { harness.Must(t, plane, nil, policy, "delete", "--ignore-not-found", "-f", "-") })
	probe := `{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"probe","namespace":"` + namespace + `"},"revision":1,"data":{"apiVersion":"instancetype.kubevirt.io/v1beta1"}}`
	harness.Eventually(t, "the policy is in effect", func() error {
		if created := harness.Kubectl(t, plane, nil, probe, "create", "-f", "-"); created.Code == 0 {
			harness.Must(t, plane, nil, "", "delete", "controllerrevision", "probe", "-n", namespace)
			return errors.New("a ControllerRevision was created")
		}
		return nil
	})
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	again := read(t, namespace, p.before.Name)
	if string(again.Data.Raw) != string(p.before.Data.Raw) || len(again.Labels) != len(p.before.Labels) || len(again.Annotations) != 0 || again.OwnerReferences[0].UID != p.vm.GetUID() {
		t.Errorf("the copy is %+v, was %+v", again, p.before)
	}
	found := false
	for _, f := range status(t).Findings {
		found = found || f.Kind == v1alpha1.RevisionSkipped && strings.HasPrefix(f.Message, "the replacement was denied after the deletion, and the copy was created again: ") && strings.Contains(f.Message, "not now")
	}
	if !found {
		t.Errorf("findings %+v", status(t).Findings)
	}
	harness.Must(t, plane, nil, policy, "delete", "-f", "-")
	harness.Eventually(t, "the copy is replaced", func() error {
		if err := w.pass(t); err != nil {
			return err
		}
		if s := status(t); *s.Skipped != 0 {
			return harness.Complaint("skipped")
		}
		return nil
	})
	p.migrated(t)
	p.starts(t, 6)
}
