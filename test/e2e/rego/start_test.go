package rego_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// many is a realistic number of policies at the start of a manager.
const many = 500

var policies = schema.GroupVersionResource{Group: "stencil.kubevirt.io", Version: "v1alpha1", Resource: "virtualmachinepolicies"}

func TestAManagerIsNotReadyBeforeAllPoliciesAreCompiled(t *testing.T) {
	config := rest.CopyConfig(stencil.AdminConfig())
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		must(t, "", "delete", "vmpol", "--all", "--wait=false")
		harness.Eventually(t, "the webhooks are gone", func() error {
			webhooks, err := entries(t)
			if err == nil && len(webhooks) > 0 {
				err = fmt.Errorf("%d webhooks are left", len(webhooks))
			}
			return err
		})
	})
	var creations sync.WaitGroup
	const workers = 8
	for worker := range workers {
		creations.Go(func() {
			for i := worker; i < many; i += workers {
				object := gen.Policy(fmt.Sprintf("number-%03d", i), denies(fmt.Sprint("number-", i)))
				if _, err := client.Resource(policies).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if creations.Wait(); t.Failed() {
		return
	}
	restart(t, nil)
	// The metrics at the moment when it becomes ready.
	metrics, err := stencil.first.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf(`stencil_policies{state="active"} %d`, many), "stencil_policy_cache_synced 1"} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("ready, and the metrics lack %q:\n%s", want, regexp.MustCompile(`(?m)^stencil_polic(ies|y_cache).*`).FindAllString(metrics, -1))
		}
	}
	awaitDenial(t, "number-499", "no number-499 here")
	passes(t, "number-500", "")
}

func TestPoliciesThatComeAndGoDisturbNobody(t *testing.T) {
	applied(t, "stays", "", denies("stays"))
	active(t, "stays")
	awaitDenial(t, "stays", "no stays here")
	config := rest.CopyConfig(stencil.AdminConfig())
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	vms := client.Resource(schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}).Namespace("default")
	ctx, stop := context.WithCancel(t.Context())
	var requests sync.WaitGroup
	var mutex sync.Mutex
	count, slowest := 0, time.Duration(0)
	for range 4 {
		requests.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				label := []string{"stays", "other"}[i%2]
				object := gen.VM("busy", gen.Label("test", label), gen.LeastSpec())
				start := time.Now()
				_, err := vms.Create(context.WithoutCancel(ctx), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				took := time.Since(start)
				if was := err == nil; was != (label == "other") || err != nil && !strings.Contains(err.Error(), "no stays here") {
					t.Errorf("a machine with label %s: %v", label, err)
				}
				mutex.Lock()
				count, slowest = count+1, max(slowest, took)
				mutex.Unlock()
			}
		})
	}
	for i := range 10 {
		applied(t, "comes", "", denies(fmt.Sprint("comes-", i)))
		// Another version of the policy that the requests test, with the same rule.
		applied(t, "stays", fmt.Sprintf("timeoutMilliseconds: %d", 200+i), denies("stays")+fmt.Sprintf("\n# %d", i))
		must(t, "", "delete", "vmpol", "comes")
	}
	stop()
	requests.Wait()
	t.Logf("%d requests, the slowest took %v", count, slowest)
	if count < 20 {
		t.Errorf("only %d requests were made", count)
	}
}

func TestTwoManagers(t *testing.T) {
	applied(t, "shared", "", denies("shared"))
	active(t, "shared")
	awaitDenial(t, "shared", "no shared here")
	second, err := stencil.run("two")
	if err != nil {
		t.Fatal(err)
	}
	// The leader stops, the follower leads.
	stencil.service.Remove(stencil.first)
	if err := stencil.first.Stop(); err != nil {
		t.Error(err)
	}
	// Also after a failure, so that the other tests do not fail with this one.
	defer func() {
		var err error
		if stencil.first, err = stencil.run("one"); err != nil {
			t.Fatal(err)
		}
		stencil.service.Remove(second)
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
		awaitDenial(t, "later", "no later here")
	}()
	awaitDenial(t, "shared", "no shared here")
	harness.Eventually(t, "the status counts the evaluations of one replica", func() error {
		create(t, "shared")
		status := get(t, "shared").Status
		if len(status.Replicas) != 1 || status.Replicas[0].Name != "two" || status.Evaluations == nil || status.Evaluations.Count != status.Replicas[0].Count {
			return fmt.Errorf("evaluations %+v, replicas %+v", status.Evaluations, status.Replicas)
		}
		return nil
	})
	applied(t, "later", "", denies("later"))
	active(t, "later")
	awaitDenial(t, "later", "no later here")
}

func TestAPolicyThatIsTooSlowIsQuarantined(t *testing.T) {
	// A product of a hundred hundreds takes longer than a millisecond.
	applied(t, "slow", "timeoutMilliseconds: 1\nfailureMode: Allow", `package slow

deny contains "never" if {
  some i in numbers.range(1, 300)
  some j in numbers.range(1, 300)
  i * j == 0
  input.object.metadata.name == "one"
}`)
	active(t, "slow")
	harness.Eventually(t, "the slow policy is quarantined", func() error {
		if got := create(t, "slow"); got.Code != 0 {
			return fmt.Errorf("failureMode Allow refuses: %s", got.Stderr)
		}
		metrics, err := stencil.first.Metrics(t.Context())
		if err != nil {
			return err
		}
		if !strings.Contains(metrics, `stencil_policy_quarantines_total{policy="slow"}`) {
			return fmt.Errorf("no quarantine is counted")
		}
		return nil
	})
	object := becomes(t, "slow", map[string]string{"Active": "False Quarantined"})
	if e := object.Status.Evaluations; e == nil || e.Timeouts < 5 {
		t.Errorf("evaluations %+v", e)
	}
	events := must(t, "", "get", "events", "--field-selector=involvedObject.name=slow", "-o", `jsonpath={range .items[*]}{.type} {.reason}{"\n"}{end}`)
	if !strings.Contains(events, "Warning Quarantined") {
		t.Errorf("events: %q", events)
	}
}

// A user with the role manages policies, and a user with the role for approvals does not.
func TestWhoWritesPolicies(t *testing.T) {
	admin := harness.User(t, stencil.Plane, "policy-admin")
	harness.Bind(t, stencil.Plane, admin, "", "stencil-policy-admin")
	approver := harness.User(t, stencil.Plane, "approver")
	harness.Bind(t, stencil.Plane, approver, "", "stencil-template-approver")
	manifest := policy("mine", "", denies("mine"))
	try := func(who *controlplane.User) error {
		result, err := stencil.Kubectl(t.Context(), who, manifest, "create", "--dry-run=server", "-f", "-")
		if err != nil {
			return err
		}
		if result.Code != 0 {
			return fmt.Errorf("%s", result.Stderr)
		}
		return nil
	}
	harness.Eventually(t, "the administrator may write policies", func() error { return try(admin) })
	if err := try(approver); err == nil || !strings.Contains(err.Error(), "cannot create resource") {
		t.Errorf("who approves templates: %v", err)
	}
}
