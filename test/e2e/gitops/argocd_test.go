package gitops_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/internal/testfile"
)

// application is what the program prints that acts as Argo CD.
type application struct {
	Operations []struct{ Kind, Name, Status, Message string }
	Resources  []struct {
		Kind, Name, Health, Message string
		Comparisons                 map[string]struct {
			Sync       string
			Difference json.RawMessage
		}
	}
}

// The ways in which Argo CD compares: its default, the one of what it applies on the server, and dry runs.
const clientSide, structured, serverSide = "client-side", "structured", "server-side"

// argo runs the program for an application.
func argo(t *testing.T, namespace, prefix string, vms map[string]*unstructured.Unstructured, arguments ...string) (got application) {
	t.Helper()
	if err := run(t, argoCD, namespace, manifest(vms), &got, append(arguments, "-application="+prefix, "-health="+stencil.Example("argocd/health.yaml"), "-health=testdata/argocd.yaml")...); err != nil {
		t.Fatal(err)
	}
	if len(got.Resources) != len(vms) {
		t.Fatalf("%d machines and %d resources", len(vms), len(got.Resources))
	}
	return got
}

// outOfSync returns the ways in which each VM is out of sync. Names are without the prefix.
func (a application) outOfSync(prefix string) map[string][]string {
	found := map[string][]string{}
	for _, each := range a.Resources {
		for _, way := range slices.Sorted(maps.Keys(each.Comparisons)) {
			if each.Comparisons[way].Sync != "Synced" {
				name := strings.TrimPrefix(each.Name, prefix)
				found[name] = append(found[name], way)
			}
		}
	}
	return found
}

func (a application) health(prefix string) map[string]string {
	found := map[string]string{}
	for _, each := range a.Resources {
		found[strings.TrimPrefix(each.Name, prefix)] = each.Health
	}
	return found
}

func (a application) messages(prefix string) map[string]string {
	found := map[string]string{}
	for _, each := range a.Operations {
		_, message, _ := strings.Cut(each.Message, " ")
		found[strings.TrimPrefix(each.Name, prefix)] = message
	}
	return found
}

// differences are what Argo CD shows of one way.
func (a application) differences(way string) (text string) {
	for _, each := range a.Resources {
		text += fmt.Sprintln(each.Name, way, string(each.Comparisons[way].Difference))
	}
	return text
}

func TestArgoCD(t *testing.T) {
	// Without a dry run nothing can know that Stencil merges lists by name, which are replaced as a whole by their definition, or that it removes values of
	// sensitive parameters. The structured comparison does not ignore defaults in lists either.
	merged := []string{clientSide, structured}
	known := map[string][]string{lists: merged, full: {structured}, hidden: merged, all: merged}
	for _, namespace := range []string{free, vault} {
		for _, way := range []string{"client", "server"} {
			t.Run(namespace+", applied by the "+way, func(t *testing.T) {
				prefix := "argo-" + way + "-"
				vms := virtualMachines(t, namespace, prefix)
				sync := []string{"-sync"}
				if way == "server" {
					sync = append(sync, "-server-side-apply")
				}
				created := argo(t, namespace, prefix, vms, sync...)
				for _, each := range created.Operations {
					if each.Status != "Synced" {
						t.Fatalf("%+v", created.Operations)
					}
				}
				settled(t, namespace, vms)
				before := versions(t, namespace, vms)
				again := argo(t, namespace, prefix, vms, sync...)
				if diff := cmp.Diff(known, again.outOfSync(prefix)); diff != "" {
					t.Errorf("out of sync (-want +got):\n%s%s%s", diff, again.differences(clientSide), again.differences(serverSide))
				}
				if diff := cmp.Diff(before, versions(t, namespace, vms)); diff != "" {
					t.Errorf("a second sync has changed the stored machines:\n%s", diff)
				}
				want := map[string]string{short: "unchanged", lists: "configured", full: "configured", hidden: "configured", all: "configured"}
				if way == "server" {
					want = map[string]string{short: "serverside-applied", lists: "serverside-applied", full: "serverside-applied", hidden: "serverside-applied", all: "serverside-applied"}
				}
				if diff := cmp.Diff(want, again.messages(prefix)); diff != "" {
					t.Errorf("messages of a second sync (-want +got):\n%s", diff)
				}
				health := map[string]string{short: "Healthy", lists: "Healthy", full: "Healthy", hidden: "Healthy", all: "Progressing"}
				if diff := cmp.Diff(health, again.health(prefix)); diff != "" {
					t.Errorf("health before the machine runs (-want +got):\n%s", diff)
				}

				drift(t, namespace, vms)
				everyWay := []string{clientSide, serverSide, structured}
				drifted := argo(t, namespace, prefix, vms)
				if diff := cmp.Diff(map[string][]string{lists: everyWay, full: {structured}, hidden: merged, all: everyWay}, drifted.outOfSync(prefix)); diff != "" {
					t.Errorf("out of sync after a change (-want +got):\n%s", diff)
				}
				repaired := argo(t, namespace, prefix, vms, sync...)
				if diff := cmp.Diff(known, repaired.outOfSync(prefix)); diff != "" {
					t.Errorf("out of sync after another sync (-want +got):\n%s%s", diff, repaired.differences(serverSide))
				}
				runs(t, namespace, vms)
				health[all] = "Healthy"
				if diff := cmp.Diff(health, argo(t, namespace, prefix, vms).health(prefix)); diff != "" {
					t.Errorf("health (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestTheExamplesOfThePage compares the other examples of the page with what the tests here use.
func TestTheExamplesOfThePage(t *testing.T) {
	var example struct {
		Metadata struct{ Annotations map[string]string }
		Spec     map[string]any
	}
	if err := yaml.Unmarshal([]byte(testfile.Block(t, page, "compare by dry runs", "yaml")), &example); err != nil {
		t.Fatal(err)
	}
	if got := example.Metadata.Annotations["argocd.argoproj.io/compare-options"]; got != "ServerSideDiff=true" || example.Spec["ignoreDifferences"] != nil {
		t.Errorf("it compares by %q, and ignores %v", got, example.Spec["ignoreDifferences"])
	}
	var approval struct{ Overrides []string }
	if err := yaml.UnmarshalStrict([]byte(testfile.Block(t, page, "an approval must permit", "yaml")), &approval); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(trackers, approval.Overrides); diff != "" {
		t.Errorf("overrides (-used +page):\n%s", diff)
	}
}

// versions of the spec, the labels and the annotations of stored VMs, which virt-controller does not write.
func versions(t *testing.T, namespace string, vms map[string]*unstructured.Unstructured) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, vm := range vms {
		found[vm.GetName()] = get(t, namespace, vm.GetName(), "{.metadata.generation} {.metadata.annotations} {.metadata.labels} {.spec}")
		if strings.Contains(found[vm.GetName()], `parameter.template.kubevirt.io/PASSWORD`) {
			t.Errorf("the annotation of a sensitive parameter is stored: %s", found[vm.GetName()])
		}
	}
	return found
}
