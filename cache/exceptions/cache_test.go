package exceptions

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fakecache "k8s.io/client-go/tools/cache/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/fixture"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func exception(name string, generation int64, policies ...string) *v1alpha1.PolicyException {
	return &v1alpha1.PolicyException{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: generation, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
		Spec: v1alpha1.PolicyExceptionSpec{
			Policies: policies, Namespaces: []string{"team-a"}, Names: []string{"db"}, ExpiresAt: metav1.NewTime(noon.Add(time.Hour)),
		},
	}
}

// used returns the names of the exceptions that apply to a VM which violates these policies.
func used(c *Cache, policies ...string) (names string, excepted []policyset.Excepted) {
	var decision policyset.Decision
	for _, policy := range policies {
		decision.Denials = append(decision.Denials, policyset.Violation{Policy: policy})
	}
	c.Set().Except(&decision, policyset.VirtualMachine{Namespace: "team-a", Name: "db"}, noon)
	var found []string
	for _, e := range decision.Excepted {
		found = append(found, e.Policy+"="+e.Exception.Name)
	}
	return strings.Join(found, " "), decision.Excepted
}

func TestCache(t *testing.T) {
	source := fakecache.NewFakeControllerSource()
	c := newCache(Options{Logger: logr.Discard(), Clock: testclock.NewFakePassiveClock(noon)}, source)
	registry := prometheus.NewPedanticRegistry()
	if err := c.metrics.register(registry, c); err != nil {
		t.Fatal(err)
	}
	if got, _ := used(c, "sizes"); got != "" || c.Synced() {
		t.Errorf("before the first list: %q", got)
	}
	source.Add(exception("one", 1, "sizes", "owners"))
	fixture.Run(t, c.Start)
	fixture.Eventually(t, c.Synced)
	got, excepted := used(c, "owners", "sizes", "sizes", "others")
	if got != "owners=one sizes=one sizes=one" {
		t.Errorf("got %q", got)
	}
	c.Used(excepted)
	metrics := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want+"\n"), "stencil_policy_exceptions_used_total", "stencil_policy_exceptions", "stencil_policy_exception_expiry_timestamp_seconds"); err != nil {
			t.Error(err)
		}
	}
	head := func(name, help, kind string) string {
		return fmt.Sprintf("# HELP %[1]s %[2]s\n# TYPE %[1]s %[3]s\n", name, help, kind)
	}
	usesHead := head("stencil_policy_exceptions_used_total", "Requests for VirtualMachines that violated this VirtualMachinePolicy and were allowed by this PolicyException. The series of deleted exceptions are removed.", "counter")
	expiryHead := head("stencil_policy_exception_expiry_timestamp_seconds", "When this PolicyException ends or has ended, in seconds since 1970.", "gauge")
	countHead := head("stencil_policy_exceptions", "Number of PolicyExceptions, by state: active or expired.", "gauge")
	metrics(expiryHead + `stencil_policy_exception_expiry_timestamp_seconds{exception="one"} 1.7958708e+09` + "\n" + countHead + `stencil_policy_exceptions{state="active"} 1
stencil_policy_exceptions{state="expired"} 0` + "\n" + usesHead + `stencil_policy_exceptions_used_total{exception="one",policy="owners"} 1
stencil_policy_exceptions_used_total{exception="one",policy="sizes"} 1`)

	// A change of the status does not change the set.
	changed, objectsChanged, before := c.Changed(), c.ObjectsChanged(), c.Set()
	status := exception("one", 1, "sizes", "owners")
	status.Status.ObservedGeneration = 1
	source.Modify(status)
	<-objectsChanged
	select {
	case <-changed:
		t.Error("a change of a status changes the set")
	default:
	}
	if objects := c.Objects(); c.Set() != before || len(objects) != 1 || objects[0].Status.ObservedGeneration != 1 || objects[0].ManagedFields != nil {
		t.Errorf("got %+v", objects)
	}

	// A change of the spec does, and so do other exceptions.
	source.Modify(exception("one", 2, "sizes"))
	<-changed
	if got, _ := used(c, "owners", "sizes"); got != "sizes=one" {
		t.Errorf("got %q", got)
	}
	changed = c.Changed()
	ended := exception("ended", 1, "owners")
	ended.Spec.ExpiresAt = metav1.NewTime(noon)
	source.Add(ended)
	<-changed
	changed = c.Changed()
	source.Delete(exception("one", 2, "sizes"))
	<-changed
	if got, _ := used(c, "owners", "sizes"); got != "" {
		t.Errorf("got %q", got)
	}
	c.Used(excepted)
	metrics(expiryHead + `stencil_policy_exception_expiry_timestamp_seconds{exception="ended"} 1.7958672e+09` + "\n" + countHead + `stencil_policy_exceptions{state="active"} 0
stencil_policy_exceptions{state="expired"} 1` + "\n" + usesHead + `stencil_policy_exceptions_used_total{exception="ended",policy="owners"} 0`)
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	source := fakecache.NewFakeControllerSource()
	c := newCache(Options{Logger: logr.Discard()}, source)
	if err := c.metrics.register(prometheus.NewRegistry(), c); err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, c.Start)
	fixture.Eventually(t, c.Synced)
	source.Add(exception("one", 1, "sizes"))
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 200 {
				_, excepted := used(c, "sizes", "owners")
				c.Used(excepted)
				c.Objects()
				c.Changed()
			}
		})
	}
	for i := range 50 {
		source.Modify(exception("one", int64(i+2), "sizes", fmt.Sprintf("p%d", i)))
	}
	running.Wait()
	fixture.Eventually(t, func() bool { return len(c.Objects()) == 1 && c.Objects()[0].Generation == 51 })
}
