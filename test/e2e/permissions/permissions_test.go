// Package permissions_test lists what the roles of Kubernetes, KubeVirt and CDI for users permit on virtual machines, their disks and their pods, and
// compares it with Stencil's decision about each of them in a namespace where an approval denies. A version that adds a new kind, subresource or verb
// fails here, before it is a way around approvals in a cluster.
package permissions_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/charts"
	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

var update = flag.Bool("update", false, "write the table of decisions into docs/permissions.md")

// subresources is a group served by virt-api: a verb get on console is an action.
const subresources = "subresources.kubevirt.io"

// decision is Stencil's decision about a resource, with the verbs that roles for users permit.
type decision struct {
	Group    string   `json:"group"`
	Resource string   `json:"resource"`
	Verbs    []string `json:"verbs"`
	// Component is what brings the resource, if not KubeVirt or CDI: its roles are not part of the comparison.
	Component string `json:"component,omitempty"`
	// Decision is one of decisions.
	Decision string `json:"decision"`
	// Policies are the admission policies that close or evaluate it.
	Policies []string `json:"policies,omitempty"`
	// Because is why it is harmless, or what is evaluated.
	Because string `json:"because"`
}

// decisions are: closed to users who are not exempt; evaluated; harmless, for the given reason; open, which is a documented limit.
var decisions = []string{"closed", "evaluated", "harmless", "open"}

func relevant(group, resource string) bool {
	switch group {
	case "":
		return resource == "persistentvolumeclaims" || resource == "pods" || strings.HasPrefix(resource, "pods/")
	case "apps":
		return resource == "controllerrevisions"
	}
	return group == "kubevirt.io" || strings.HasSuffix(group, ".kubevirt.io")
}

// permitted returns the verbs that roles for users permit, by group/resource: those that write, and all on subresources of virt-api.
func permitted(ctx context.Context, plane *controlplane.Plane) (map[string][]string, error) {
	client, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		return nil, err
	}
	roles, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]bool{}
	for _, role := range roles.Items {
		name := role.Name
		if name != "edit" && name != "admin" && !strings.HasPrefix(name, "kubevirt.io:") && !strings.HasPrefix(name, "cdi.kubevirt.io:") {
			continue
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					if relevant(group, resource) {
						collect(found, group, resource, rule)
					}
				}
			}
		}
	}
	sorted := map[string][]string{}
	for key, verbs := range found {
		sorted[key] = slices.Sorted(maps.Keys(verbs))
	}
	return sorted, nil
}

func collect(found map[string]map[string]bool, group, resource string, rule rbacv1.PolicyRule) {
	key := group + "/" + resource
	for _, verb := range rule.Verbs {
		if group != subresources && slices.Contains([]string{"get", "list", "watch"}, verb) {
			continue
		}
		if found[key] == nil {
			found[key] = map[string]bool{}
		}
		found[key][verb] = true
	}
}

func TestEveryPermissionOfUsersHasADecision(t *testing.T) {
	plane := controlplane.StartFor(t, controlplane.Options{KubeVirt: true, ControllerManager: true, CDI: true})
	var found map[string][]string
	harness.Eventually(t, "the roles of KubeVirt and CDI are aggregated", func() (err error) {
		if found, err = permitted(t.Context(), plane); err != nil {
			return err
		}
		if found["kubevirt.io/virtualmachines"] == nil || found["cdi.kubevirt.io/datavolumes"] == nil || found["/pods"] == nil {
			return fmt.Errorf("edit permits nothing on some of virtualmachines, datavolumes and pods: %v", slices.Sorted(maps.Keys(found)))
		}
		return nil
	})
	decided := map[string][]string{}
	for _, d := range read(t) {
		if d.Component == "" {
			decided[d.Group+"/"+d.Resource] = slices.Sorted(slices.Values(d.Verbs))
		}
	}
	if diff := cmp.Diff(decided, found); diff != "" {
		t.Errorf("what is decided in testdata/decisions.yaml and what roles permit differ (-decided +permitted):\n%s", diff)
	}
}

func read(t *testing.T) []decision {
	t.Helper()
	content := testfile.Read(t, "testdata/decisions.yaml")
	var list []decision
	if err := yaml.UnmarshalStrict(content, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestDecisionsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range read(t) {
		key := d.Group + "/" + d.Resource
		if seen[key] {
			t.Errorf("%s is decided twice", key)
		}
		seen[key] = true
		if !slices.Contains(decisions, d.Decision) || d.Because == "" {
			t.Errorf("%s: want one of %v and a reason", key, decisions)
		}
		if closes := d.Decision == "closed" || d.Decision == "evaluated"; closes != (len(d.Policies) > 0) {
			t.Errorf("%s is %s by the policies %v", key, d.Decision, d.Policies)
		}
		for _, name := range d.Policies {
			if _, err := fs.Stat(charts.Files, path.Join(charts.Policies, name+".yaml")); err != nil {
				t.Errorf("%s: there is no policy %s", key, name)
			}
		}
	}
}

// docs/permissions.md contains the decisions for cluster admins: make e2e PACKAGES=./e2e/permissions RUN=Page UPDATE=1
func TestThePageOfThePermissions(t *testing.T) {
	const path, begin = "../../../docs/permissions.md", "<!-- decisions:begin -->\n"
	page := testfile.Read(t, path)
	head, _, found := strings.Cut(string(page), begin)
	if !found {
		t.Fatalf("%s lacks %s", path, begin)
	}
	var table strings.Builder
	table.WriteString(head + begin + "\n| resource | verbs | decision | because | policies |\n|---|---|---|---|---|\n")
	for _, d := range read(t) {
		name := d.Resource
		if d.Group != "" {
			name += "." + d.Group
		}
		if d.Component != "" {
			d.Because += "; the kind comes with " + d.Component
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", name, strings.Join(d.Verbs, ", "), d.Decision, d.Because, strings.Join(d.Policies, ", "))
	}
	if *update {
		testfile.Write(t, path, table.String())
		return
	}
	if diff := cmp.Diff(table.String(), string(page)); diff != "" {
		t.Errorf("%s is not current; run make e2e PACKAGES=./e2e/permissions RUN=Page UPDATE=1 (-want +got):\n%s", path, diff)
	}
}
