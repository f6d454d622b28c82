package capture_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestKindsThatComeLaterAreUsed deletes definitions and creates them again, while the same manager runs.
func TestKindsThatComeLaterAreUsed(t *testing.T) {
	s := fake.on(t)
	for _, definition := range []string{"virtualmachinesnapshots.snapshot.kubevirt.io", "datavolumes.cdi.kubevirt.io"} {
		t.Run(definition, func(t *testing.T) {
			c := s.pair(t)
			text := harness.TakeAway(t, s.platform.Plane, definition)
			t.Cleanup(func() {
				s.kubectl(t, nil, text, "apply", "-f", "-")
				s.must(t, "", "wait", "--for=condition=Established", "crd", definition)
			})
			c.begin(t, "")
			s.awaitProgress(t, c.golden, "r", "waiting until the API server serves ")
			s.must(t, text, "create", "-f", "-")
			c.captured(t)
		})
	}
}

// TestRequestsThatCannotSucceedAreRefused creates requests with kubectl.
func TestRequestsThatCannotSucceedAreRefused(t *testing.T) {
	s := fake.on(t)
	c := s.pair(t)
	shop, golden := c.shop, c.golden
	s.does(t, `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate", "metadata": {"name": "there"},
		"spec": {"virtualMachine": {"spec": {"template": {"spec": {"domain": {"devices": {}}}}}}}}`, "create", "-n", golden, "-f", "-")
	for name, tc := range map[string]struct {
		manifest string
		want     []string
	}{
		"everything at once": {
			request(golden, "r", shop, "nix", `, "templateName": "No_Name", "templateLabels": {"os": "a b"}`),
			[]string{`spec.templateName: Invalid value: "No_Name"`, `spec.templateLabels: Invalid value: "a b"`},
		},
		"a template that exists":  {request(golden, "there", shop, "web", ""), []string{`metadata.name: Invalid value: "there": a VirtualMachineTemplate of this name exists`}},
		"an empty reference":      {request(golden, "r", "", "web", ""), []string{"spec.virtualMachineRef.namespace"}},
		"a name without a type":   {request(golden, "r", shop, "web", `, "parameterize": ["INSTANCETYPE"]`), []string{"INSTANCETYPE and PREFERENCE need instancetype: Keep"}},
		"something unknown":       {request(golden, "r", shop, "web", `, "parameterize": ["COLOUR"]`), []string{`Unsupported value: "COLOUR"`}},
		"more time than there is": {request(golden, "r", shop, "web", `, "timeout": "169h"`), []string{"must be between 1s and 168h"}},
		"no time":                 {request(golden, "r", shop, "web", `, "timeout": "0s"`), []string{"must be between 1s and 168h"}},
		"no duration":             {request(golden, "r", shop, "web", `, "timeout": "soon"`), []string{"spec.timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			// The cache of templates lags behind by a watch.
			eventually(t, "the template is used as wanted", func() string {
				result := s.kubectl(t, s.owner, tc.manifest, "create", "--dry-run=server", "-f", "-")
				for _, want := range tc.want {
					if result.Code == 0 || !strings.Contains(result.Stderr, want) {
						return fmt.Sprintf("want %q in %s%s", want, result.Stdout, result.Stderr)
					}
				}
				return ""
			})
		})
	}
	t.Run("existence is not told to who may not ask", func(t *testing.T) {
		rule := func(verb, group, resource string) rbacv1.PolicyRule {
			return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
		}
		// All permissions that are required, except those for the source.
		eve := harness.User(t, s.platform.Plane, "eve", gen.Permits(golden, rule("create", "template.kubevirt.io", "virtualmachinetemplaterequests"),
			rule("create", "template.kubevirt.io", "virtualmachinetemplates"), rule("create", "cdi.kubevirt.io", "datavolumes"),
			rule("create", "snapshot.kubevirt.io", "virtualmachinesnapshots")))
		s.does(t, twoDisks, "create", "-n", golden, "-f", "-")
		for _, namespace := range []string{shop, golden} {
			there := s.kubectl(t, eve, request(golden, "r", namespace, "web", ""), "create", "--dry-run=server", "-f", "-")
			notThere := s.kubectl(t, eve, request(golden, "r", namespace, "nix", ""), "create", "--dry-run=server", "-f", "-")
			if there.Code == 0 || strings.ReplaceAll(notThere.Stderr, "/nix", "/web") != there.Stderr {
				t.Errorf("the answers differ:\n%s%s", there.Stderr, notThere.Stderr)
			}
		}
	})
}

// TestManyCaptures captures a VM with many requests at once.
//
//suite:long
func TestManyCaptures(t *testing.T) {
	many := 500
	if brief {
		many = 100
	}
	s := fake.on(t)
	c := s.pair(t)
	shop, golden := c.shop, c.golden
	started := time.Now()
	var all []string
	for i := range many {
		all = append(all, request(golden, fmt.Sprintf("r-%03d", i), shop, "web", ""))
	}
	s.does(t, strings.Join(all, "\n---\n"), "create", "-f", "-")
	created := time.Since(started)
	// Three and a half minutes were observed on two busy cores.
	deadline := time.Now().Add(10 * time.Minute)
	for {
		ready := 0
		for _, each := range s.all(t, requests, golden) {
			conditions, _, _ := unstructured.NestedSlice(each.Object, "status", "conditions")
			if slices.ContainsFunc(conditions, func(c any) bool {
				one, _ := c.(map[string]any)
				return one["type"] == "Ready" && one["status"] == "True"
			}) {
				ready++
			}
		}
		if ready == many {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d captures are finished", ready, many)
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Logf("%d captures of two disks each: created in %s, all ready after %s", many, created.Round(time.Second), time.Since(started).Round(time.Second))
	eventually(t, "all snapshots are gone", func() string {
		if left := len(s.all(t, snapshots, shop)) + len(s.all(t, contents, shop)); left > 0 {
			return fmt.Sprintf("%d snapshots and contents are left", left)
		}
		return ""
	})
	if len(s.all(t, templates, golden)) != many || len(s.all(t, dataVolumes, golden)) != 2*many {
		t.Errorf("there are %d templates and %d DataVolumes", len(s.all(t, templates, golden)), len(s.all(t, dataVolumes, golden)))
	}
	if err := s.own.Resource(templates).Namespace(golden).DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
