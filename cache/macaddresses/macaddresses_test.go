package macaddresses

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/fixture"
)

// vm returns a VirtualMachine as the watch delivers it.
func vm(t *testing.T, namespace, name string, with ...string) *watching.Object[[]string] {
	t.Helper()
	o := fixture.Object(t, `{spec: {template: {spec: {domain: {devices: {interfaces: [{name: none, masquerade: {}}]}}}}}}`)
	interfaces, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "domain", "devices", "interfaces")
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range with {
		interfaces = append(interfaces, map[string]any{"name": address, "macAddress": address})
	}
	if err := unstructured.SetNestedSlice(o.Object, interfaces, "spec", "template", "spec", "domain", "devices", "interfaces"); err != nil {
		t.Fatal(err)
	}
	return &watching.Object[[]string]{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Value: addresses(o)}
}

func TestAnAddressIsTakenByAnotherMachineOfTheNamespace(t *testing.T) {
	c := newCache()
	s := c.vms
	if err := s.Replace([]any{vm(t, "a", "one", "02:00:00:00:00:01", "02-00-00-00-00-AA"), vm(t, "b", "one", "02:00:00:00:00:02")}, ""); err != nil {
		t.Fatal(err)
	}
	check := func(namespace, name, address string, want bool) {
		t.Helper()
		if got := c.Taken(namespace, name, address); got != want {
			t.Errorf("%s is taken for %s/%s: %t", address, namespace, name, got)
		}
	}
	check("a", "two", "02:00:00:00:00:01", true)
	check("a", "one", "02:00:00:00:00:01", false)
	check("a", "two", "02:00:00:00:00:aa", true)
	check("a", "two", "02:00:00:00:00:02", false)
	check("b", "", "02:00:00:00:00:02", true)

	// A clone that a user has made has the same address.
	if err := s.Add(vm(t, "a", "clone", "02:00:00:00:00:01")); err != nil {
		t.Fatal(err)
	}
	check("a", "one", "02:00:00:00:00:01", true)
	if err := s.Update(vm(t, "a", "one", "02:00:00:00:00:03")); err != nil {
		t.Fatal(err)
	}
	check("a", "two", "02:00:00:00:00:01", true)
	check("a", "two", "02:00:00:00:00:aa", false)
	if err := s.Delete(vm(t, "a", "clone")); err != nil {
		t.Fatal(err)
	}
	check("a", "two", "02:00:00:00:00:01", false)
	check("a", "two", "02:00:00:00:00:03", true)
	if err := s.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	check("a", "two", "02:00:00:00:00:03", false)
	if c.vms.Len()+len(c.holders.byNamespace) > 0 {
		t.Errorf("something is left: %v, %v", c.vms.List(), c.holders.byNamespace)
	}
}

func TestWhetherAPoolManagerCaresForANamespace(t *testing.T) {
	const selected = `
metadata: {name: kubemacpool-mutator}
webhooks:
- {name: mutatepods.kubemacpool.io, namespaceSelector: {matchLabels: {never: "true"}}}
- name: mutatevirtualmachines.kubemacpool.io
  namespaceSelector: {matchExpressions: [{key: mutatevirtualmachines.kubemacpool.io, operator: NotIn, values: [ignore]}]}`
	for name, tc := range map[string]struct {
		configuration string
		labels        map[string]string
		want          bool
	}{
		"there is none":                           {},
		"one for all that do not opt out":         {configuration: selected, want: true},
		"of which this is one that does":          {configuration: selected, labels: map[string]string{"mutatevirtualmachines.kubemacpool.io": "ignore"}},
		"one without a selector":                  {configuration: `webhooks: [{name: mutatevirtualmachines.kubemacpool.io}]`, want: true},
		"one whose selector nobody understands":   {configuration: `webhooks: [{name: mutatevirtualmachines.kubemacpool.io, namespaceSelector: {matchExpressions: [{key: a, operator: Odd}]}}]`, want: true},
		"one for pods alone":                      {configuration: `webhooks: [{name: mutatepods.kubemacpool.io}]`},
		"one that cannot be read is careful with": {configuration: `webhooks: odd`, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool()
			if p.configurations.Synced() {
				t.Error("it knows before there was a list")
			}
			var list []any
			if tc.configuration != "" {
				list = append(list, fixture.Object(t, tc.configuration))
			}
			if err := p.configurations.Replace(list, ""); err != nil {
				t.Fatal(err)
			}
			if got := p.covers(tc.labels); got != tc.want || !p.configurations.Synced() {
				t.Errorf("cares: %t, synced: %t", got, p.configurations.Synced())
			}
			if err := p.configurations.Replace(nil, ""); err != nil || p.covers(tc.labels) {
				t.Errorf("it cares still, %v", err)
			}
		})
	}
}
