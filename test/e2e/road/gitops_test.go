package road_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

const (
	overlaySpec = `spec:
  runStrategy: Manual
  template:
    spec:
      domain:
        devices:
          interfaces:
          - name: storage
            bridge: {}
      networks:
      - name: storage
        multus:
          networkName: storage-net
`
	lightSpec = `spec:
  runStrategy: Manual
`
)

// TestTheSameManifestASecondTimeChangesNothing is a requirement of GitOps.
func TestTheSameManifestASecondTimeChangesNothing(t *testing.T) {
	commands := []struct {
		name          string
		first, second []string
	}{
		{"client-side apply", []string{"apply"}, []string{"apply"}},
		{"server-side apply", []string{"apply", "--server-side"}, []string{"apply", "--server-side"}},
		{"replace", []string{"create"}, []string{"replace"}},
		{"replace after create --save-config", []string{"create", "--save-config"}, []string{"replace", "--save-config"}},
		{"server-side apply after create", []string{"create"}, []string{"apply", "--server-side"}},
		{"server-side apply after client-side apply", []string{"apply"}, []string{"apply", "--server-side"}},
	}
	manifests := []struct {
		name   string
		fields []gen.Modifier
	}{
		{"a reference alone", nil},
		{"with parameters", []gen.Modifier{gen.Parameter("INSTANCETYPE", "u1.large")}},
		{"with a sensitive parameter", []gen.Modifier{gen.Parameter("CLOUD_USER_PASSWORD", "open-sesame")}},
		{"with a field beside the reference", []gen.Modifier{gen.Fields(lightSpec)}},
		{"with lists that merge by name", []gen.Modifier{gen.Fields(overlaySpec)}},
	}
	for i, command := range commands {
		for j, m := range manifests {
			t.Run(command.name+", "+m.name, func(t *testing.T) {
				// Each VM has a name of its own. virt-controller would use the ControllerRevision of a deleted VM with the same name, until the
				// garbage collector deletes it, and virt-api then rejects a change of the new VM.
				name := fmt.Sprintf("again-%d-%d", i, j)
				discard(t, name)
				manifest := vm(name, "golden/fedora", m.fields...)
				mustKubectl(t, ada, manifest, append(command.first, "-f", "-")...)
				waitForController(t, name)
				before := get(t, name)
				for range 2 {
					out := mustKubectl(t, ada, manifest, append(command.second, "-f", "-")...).Stdout
					// kubectl compares with what is stored, in which lists are merged and values of sensitive parameters are missing.
					want := "unchanged"
					if strings.Contains(m.name, "lists") || strings.Contains(m.name, "sensitive") {
						want = "configured"
					}
					if command.name == "client-side apply" && !strings.Contains(out, name+" "+want) {
						t.Errorf("kubectl printed %q, want %s", out, want)
					}
				}
				after := get(t, name)
				if strings.HasPrefix(command.name, "server-side apply after") {
					// The new field manager is the only change.
					for _, vm := range []*unstructured.Unstructured{before, after} {
						vm.SetManagedFields(nil)
						vm.SetResourceVersion("")
						// kubectl drops its copy when it migrates to server-side apply.
						annotations := vm.GetAnnotations()
						delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
						vm.SetAnnotations(annotations)
					}
				}
				// virt-controller may write the status at any time.
				if !cmp.Equal(before.Object["status"], after.Object["status"]) {
					for _, vm := range []*unstructured.Unstructured{before, after} {
						delete(vm.Object, "status")
						vm.SetResourceVersion("")
						vm.SetManagedFields(slices.DeleteFunc(vm.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
							return entry.Subresource == "status"
						}))
					}
				}
				if diff := cmp.Diff(before.Object, after.Object); diff != "" {
					t.Errorf("stored before (-) and after (+) differ:\n%s", diff)
				}
				if strings.Contains(m.name, "sensitive") && strings.Contains(mustKubectl(t, nil, "", "get", "vm", name, "-o", "jsonpath={.metadata}").Stdout, "open-sesame") {
					t.Error("the sensitive value came back")
				}
			})
		}
	}
}

// waitForController waits until virt-controller has made all its changes to a new VM, so that later changes are Stencil's.
func waitForController(t *testing.T, name string) {
	t.Helper()
	var last string
	same := 0
	harness.Eventually(t, "virt-controller leaves "+name+" as it is", func() error {
		vm := get(t, name)
		status, _, _ := unstructured.NestedString(vm.Object, "status", "printableStatus")
		if status == "" || vm.GetResourceVersion() != last {
			last, same = vm.GetResourceVersion(), 0
			return errNotSynced(name)
		}
		if same++; same < 5 {
			return errNotSynced(name)
		}
		return nil
	})
}

type errNotSynced string

func (e errNotSynced) Error() string { return "VM " + string(e) + " still changes" }

// TestATemplateAndItsMachineAreInstalledTogether uses the ways of Helm and kustomize to create a template before its VM, and shows what happens without.
func TestATemplateAndItsMachineAreInstalledTogether(t *testing.T) {
	const hint = `order it first: annotation helm.sh/hook "pre-install,pre-upgrade" for Helm, argocd.argoproj.io/sync-wave "-1" for Argo CD, sortOptions {order: fifo} for kustomize`
	cores := func(t *testing.T) {
		t.Helper()
		if got := mustKubectl(t, nil, "", "get", "vm", "shop-1", "-o", "jsonpath={.spec.template.spec.domain.cpu.cores} {.metadata.labels.vm\\.kubevirt\\.io/template}").Stdout; got != "2 shop" {
			t.Errorf("the VM has %q", got)
		}
	}
	helm := func(t *testing.T, arguments ...string) controlplane.Result {
		t.Helper()
		ran, err := stencil.Plane.Helm(t.Context(), append(arguments, "--namespace="+namespaces.Of(t))...)
		if err != nil {
			t.Fatal(err)
		}
		return ran
	}
	// changed copies an example and changes one of its files.
	changed := func(t *testing.T, example, file, from, to string) string {
		t.Helper()
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS(stencil.Example(example))); err != nil {
			t.Fatal(err)
		}
		content := string(testfile.Read(t, filepath.Join(folder, file)))
		if !strings.Contains(content, from) {
			t.Fatalf("%s does not have %q", file, from)
		}
		if err := os.WriteFile(filepath.Join(folder, file), []byte(strings.Replace(content, from, to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	t.Run("Helm", func(t *testing.T) {
		if ran := helm(t, "install", "shop", stencil.Example("together/chart")); ran.Code != 0 {
			t.Fatal(ran.Stderr)
		}
		cores(t)
		before := mustKubectl(t, nil, "", "get", "vmt", "shop", "-o", "jsonpath={.metadata.uid}").Stdout
		if ran := helm(t, "upgrade", "shop", changed(t, "together/chart", "templates/template.yaml", "guest: 1Gi", "guest: 2Gi")); ran.Code != 0 {
			t.Fatal(ran.Stderr)
		}
		if got := mustKubectl(t, nil, "", "get", "vmt", "shop", "-o", "jsonpath={.metadata.uid} {.spec.virtualMachine.spec.template.spec.domain.memory.guest}").Stdout; got != before+" 2Gi" {
			t.Errorf("the template was %s, and is %s", before, got)
		}
		if ran := helm(t, "uninstall", "shop"); ran.Code != 0 {
			t.Error(ran.Stderr)
		}
		mustKubectl(t, nil, "", "delete", "vmt", "shop")
	})
	t.Run("Helm, in a List", func(t *testing.T) {
		discard(t, "shop-1")
		if ran := helm(t, "install", "shop", stencil.Example("together/list")); ran.Code != 0 {
			t.Fatal(ran.Stderr)
		}
		cores(t)
		before := mustKubectl(t, nil, "", "get", "vmt", "shop", "-o", "jsonpath={.metadata.uid}").Stdout
		if ran := helm(t, "upgrade", "shop", changed(t, "together/list", "templates/shop.yaml", "guest: 1Gi", "guest: 2Gi")); ran.Code != 0 {
			t.Fatal(ran.Stderr)
		}
		if got := mustKubectl(t, nil, "", "get", "vmt", "shop", "-o", "jsonpath={.metadata.uid} {.spec.virtualMachine.spec.template.spec.domain.memory.guest}").Stdout; got != before+" 2Gi" {
			t.Errorf("the template was %s, and is %s", before, got)
		}
		if ran := helm(t, "uninstall", "shop", "--wait"); ran.Code != 0 {
			t.Error(ran.Stderr)
		}
		if left := mustKubectl(t, nil, "", "get", "vmt,vm", "-o", "name").Stdout; strings.Contains(left, "/shop") {
			t.Errorf("left: %s", left)
		}
	})
	t.Run("Helm without a hook", func(t *testing.T) {
		ran := helm(t, "install", "shop", changed(t, "together/chart", "templates/template.yaml", "helm.sh/hook: pre-install,pre-upgrade", "without: hook"))
		if ran.Code == 0 || !strings.Contains(ran.Stderr, hint) {
			t.Errorf("exit code %d: %s", ran.Code, ran.Stderr)
		}
		helm(t, "uninstall", "shop")
		mustKubectl(t, nil, "", "delete", "vmt", "shop", "--ignore-not-found")
	})
	t.Run("kustomize", func(t *testing.T) {
		discard(t, "shop-1")
		mustKubectl(t, nil, "", "apply", "-k", stencil.Example("together/kustomization"))
		cores(t)
		mustKubectl(t, nil, "", "delete", "vmt,vm", "shop", "shop-1", "--ignore-not-found")
	})
	t.Run("kustomize in its own order", func(t *testing.T) {
		discard(t, "shop-1")
		t.Cleanup(func() { mustKubectl(t, nil, "", "delete", "vmt", "shop", "--ignore-not-found") })
		folder := changed(t, "together/kustomization", "kustomization.yaml", "order: fifo", "order: legacy")
		if ran := harness.Kubectl(t, stencil.Plane, nil, "", "apply", "--namespace="+namespaces.Of(t), "-k", folder); ran.Code == 0 || !strings.Contains(ran.Stderr, hint) {
			t.Errorf("exit code %d: %s%s", ran.Code, ran.Stdout, ran.Stderr)
		}
		// kubectl has gone on with the template, so that a second time succeeds.
		mustKubectl(t, nil, "", "apply", "-k", folder)
		cores(t)
	})
}

func TestAManifestThatGrowsKeepsWhatTheTemplateBrought(t *testing.T) {
	for _, apply := range [][]string{{"apply"}, {"apply", "--server-side"}} {
		t.Run(strings.Join(apply, " "), func(t *testing.T) {
			discard(t, "grown")
			mustKubectl(t, ada, vm("grown", "golden/fedora", gen.Fields(overlaySpec)), append(apply, "-f", "-")...)
			more := strings.Replace(overlaySpec, "          - name: storage\n            bridge: {}\n", "          - name: storage\n            bridge: {}\n          - name: backup\n            bridge: {}\n", 1) +
				"      - name: backup\n        multus:\n          networkName: backup-net\n"
			mustKubectl(t, ada, vm("grown", "golden/fedora", gen.Fields(more)), append(apply, "-f", "-")...)
			if diff := cmp.Diff([]string{"default", "storage", "backup"}, interfaces(t, "grown")); diff != "" {
				t.Errorf("interfaces (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("and client-side apply takes out what the manifest drops", func(t *testing.T) {
		discard(t, "shrunk")
		mustKubectl(t, ada, vm("shrunk", "golden/fedora", gen.Fields(overlaySpec)), "apply", "-f", "-")
		less := strings.NewReplacer("name: storage\n", "name: other\n").Replace(overlaySpec)
		mustKubectl(t, ada, vm("shrunk", "golden/fedora", gen.Fields(less)), "apply", "-f", "-")
		if diff := cmp.Diff([]string{"default", "other"}, interfaces(t, "shrunk")); diff != "" {
			t.Errorf("interfaces (-want +got):\n%s", diff)
		}
	})
}

func TestAFieldThatLeavesTheManifestLeavesTheMachine(t *testing.T) {
	for _, apply := range [][]string{{"apply"}, {"apply", "--server-side"}} {
		for _, tc := range []struct {
			name, first, second string
			path                []string
		}{
			{
				name:   "the last field that it said of the template",
				first:  "spec:\n  runStrategy: Manual\n  template:\n    spec:\n      nodeSelector: {disktype: ssd}\n",
				second: "spec:\n  runStrategy: Manual\n",
				path:   []string{"spec", "template", "spec", "nodeSelector"},
			},
			{
				name:   "all that it said of the spec",
				first:  "spec:\n  template:\n    spec:\n      hostname: h\n",
				second: "",
				path:   []string{"spec", "template", "spec", "hostname"},
			},
		} {
			t.Run(strings.Join(apply, " ")+": "+tc.name, func(t *testing.T) {
				discard(t, "leaver")
				mustKubectl(t, ada, vm("leaver", "golden/fedora", gen.Fields(tc.first)), append(apply, "-f", "-")...)
				if _, found, _ := unstructured.NestedFieldNoCopy(get(t, "leaver").Object, tc.path...); !found {
					t.Fatal("the field never came")
				}
				mustKubectl(t, ada, vm("leaver", "golden/fedora", gen.Fields(tc.second)), append(apply, "-f", "-")...)
				after := get(t, "leaver")
				if value, found, _ := unstructured.NestedFieldNoCopy(after.Object, tc.path...); found {
					t.Errorf("%v stayed: %v", tc.path, value)
				}
				if got := at(t, after, "spec", "instancetype", "name"); got != "u1.medium" {
					t.Errorf("what the template brought is gone: %v", got)
				}
			})
		}
	}
}

func interfaces(t *testing.T, name string) []string {
	t.Helper()
	var names []string
	for _, item := range at(t, get(t, name), "spec", "template", "spec", "domain", "devices", "interfaces").([]any) {
		names = append(names, item.(map[string]any)["name"].(string))
	}
	return names
}

func TestAnUpdateWithoutASpecKeepsTheStoredOne(t *testing.T) {
	discard(t, "kept")
	mustKubectl(t, ada, vm("kept", "golden/fedora"), "create", "-f", "-")
	before := get(t, "kept")
	manifest := vm("kept", "golden/fedora", gen.Label("tier", "front"), gen.Annotation("note", "hello"))
	mustKubectl(t, ada, manifest, "replace", "-f", "-")
	after := get(t, "kept")
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("the spec changed:\n%s", diff)
	}
	if after.GetLabels()["tier"] != "front" || after.GetAnnotations()["note"] != "hello" {
		t.Errorf("what was sent did not arrive: %v %v", after.GetLabels(), after.GetAnnotations())
	}
	if after.GetLabels()["vm.kubevirt.io/template"] != "fedora" || after.GetAnnotations()["template.kubevirt.io/rendered"] != before.GetAnnotations()["template.kubevirt.io/rendered"] {
		t.Errorf("the stamps are gone: %v %v", after.GetLabels(), after.GetAnnotations())
	}
}

func TestAStoredMachineCanBeEdited(t *testing.T) {
	discard(t, "edited")
	mustKubectl(t, ada, vm("edited", "golden/fedora"), "create", "-f", "-")
	for _, tc := range []struct {
		name string
		args []string
		want func(*unstructured.Unstructured) bool
	}{
		{
			name: "merge patch", args: []string{"patch", "vm", "edited", "--type=merge", "-p", `{"spec":{"runStrategy":"Manual"}}`},
			want: func(vm *unstructured.Unstructured) bool { return at(t, vm, "spec", "runStrategy") == "Manual" },
		},
		{
			name: "JSON patch", args: []string{"patch", "vm", "edited", "--type=json", "-p", `[{"op":"add","path":"/spec/template/spec/hostname","value":"h"}]`},
			want: func(vm *unstructured.Unstructured) bool {
				return at(t, vm, "spec", "template", "spec", "hostname") == "h"
			},
		},
		{
			name: "label", args: []string{"label", "vm", "edited", "stage=test"},
			want: func(vm *unstructured.Unstructured) bool { return vm.GetLabels()["stage"] == "test" },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mustKubectl(t, ada, "", tc.args...)
			if vm := get(t, "edited"); !tc.want(vm) {
				t.Errorf("the change did not arrive: %v", vm.Object)
			}
		})
	}
}
