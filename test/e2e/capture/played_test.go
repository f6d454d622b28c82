package capture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	rbacv1 "k8s.io/api/rbac/v1"
)

// twoDisks is a machine whose disks are a DataVolume and a claim.
const twoDisks = `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": {"runStrategy": "Always", "template": {"spec": {
	"domain": {"devices": {"disks": [{"name": "root"}, {"name": "data"}]}},
	"volumes": [{"name": "root", "dataVolume": {"name": "web-root"}}, {"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}}]}}}}`

// pair are a namespace with machine web, and one for its template.
func pair(t *testing.T, s *stage) (shop, golden string) {
	t.Helper()
	shop, golden = s.namespace(t, "shop"), s.namespace(t, "golden")
	s.must(t, twoDisks, "create", "-n", shop, "-f", "-")
	return shop, golden
}

// checkCaptured holds what is true of a capture that has succeeded.
func checkCaptured(t *testing.T, s *stage, shop, golden, name string) {
	t.Helper()
	if got := s.ends(t, golden, name); got["Ready"].Status != "True" || got["Complete"].Status != "True" {
		t.Fatalf("conditions are %+v", got)
	}
	eventually(t, func() string {
		if left := len(s.all(t, snapshots, shop)) + len(s.all(t, contents, shop)); left > 0 {
			return fmt.Sprintf("%d snapshots and contents are left", left)
		}
		for _, each := range s.all(t, requests, golden) {
			if len(each.GetFinalizers()) > 0 {
				return "the request is not let go of"
			}
		}
		return ""
	})
	made := s.all(t, templates, golden)
	if len(made) != 1 || len(made[0].GetOwnerReferences()) > 0 {
		t.Fatalf("templates are %v", made)
	}
	disks := s.all(t, dataVolumes, golden)
	if len(disks) != 2 {
		t.Errorf("there are %d DataVolumes", len(disks))
	}
	text, err := json.Marshal(made[0].Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range disks {
		if owners := each.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != made[0].GetUID() {
			t.Errorf("DataVolume %s is owned by %v", each.GetName(), owners)
		}
		if !strings.Contains(string(text), each.GetName()) {
			t.Errorf("the template does not refer to %s", each.GetName())
		}
	}
}

// nothing holds that a capture has left nothing behind.
func nothing(t *testing.T, s *stage, shop, golden string, kinds ...schema.GroupVersionResource) {
	t.Helper()
	eventually(t, func() string {
		var left []string
		for _, kind := range append([]schema.GroupVersionResource{snapshots, contents, dataVolumes, templates}, kinds...) {
			for _, namespace := range []string{shop, golden} {
				for _, each := range s.all(t, kind, namespace) {
					left = append(left, kind.Resource+" "+namespace+"/"+each.GetName())
				}
			}
		}
		return strings.Join(left, ", ")
	})
}

// steps are moments of a capture at which it can be held, or seen.
var steps = map[string]func(t *testing.T, s *stage, shop, golden string){
	"before the snapshot": func(t *testing.T, s *stage, shop, golden string) {
		eventually(t, func() string {
			if len(s.all(t, requests, golden)[0].GetFinalizers()) == 0 {
				return "not guarded"
			}
			return ""
		})
	},
	"while the snapshot is taken": func(t *testing.T, s *stage, shop, golden string) {
		s.waits(t, golden, "r", "WaitingForSnapshot")
	},
	"when the snapshot is ready": func(t *testing.T, s *stage, shop, golden string) {
		s.waits(t, golden, "r", "WaitingForSnapshot")
		s.player.set(does, waits)
		eventually(t, func() string {
			if len(s.all(t, contents, shop)) == 0 {
				return "no content"
			}
			return ""
		})
	},
	"while the disks are copied": func(t *testing.T, s *stage, shop, golden string) {
		s.waits(t, golden, "r", "WaitingForSnapshot")
		s.player.set(does, waits)
		eventually(t, func() string {
			if got := s.conditions(t, golden, "r")["Progressing"]; !strings.Contains(got.Message, "0 of 2 disks are copied, waiting for") || !strings.Contains(got.Message, "CloneInProgress 42.0%") {
				return fmt.Sprintf("%+v", got)
			}
			return ""
		})
	},
	"when the template appears": func(t *testing.T, s *stage, shop, golden string) {
		s.player.willing()
		watch, err := s.client.Resource(templates).Namespace(golden).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Stop()
		select {
		case <-watch.ResultChan():
		case <-time.After(limit):
			t.Fatal("no template comes")
		}
	},
}

func TestAManagerThatIsKilledIsSucceeded(t *testing.T) {
	s := played.on(t)
	for name, reach := range steps {
		t.Run(name, func(t *testing.T) {
			shop, golden := pair(t, s)
			s.player.set(waits, waits)
			s.must(t, request(golden, "r", shop, "web", ""), "create", "-f", "-")
			reach(t, s, shop, golden)
			if err := s.platform.Manager.Kill(); err != nil {
				t.Fatal(err)
			}
			s.player.willing()
			if err := s.platform.StartManager(); err != nil {
				t.Fatal(err)
			}
			checkCaptured(t, s, shop, golden, "r")
		})
	}
}

func TestDeletionsLeaveNothing(t *testing.T) {
	s := played.on(t)
	for step, reach := range steps {
		if step == "when the template appears" {
			// Whether the request or the capture is faster there is luck.
			continue
		}
		t.Run("of the request "+step, func(t *testing.T) {
			shop, golden := pair(t, s)
			s.player.set(waits, waits)
			s.must(t, request(golden, "r", shop, "web", ""), "create", "-f", "-")
			reach(t, s, shop, golden)
			s.must(t, "", "delete", "vmtr", "r", "-n", golden, "--timeout=60s")
			nothing(t, s, shop, golden, requests)
		})
		t.Run("of the namespace "+step, func(t *testing.T) {
			shop, golden := pair(t, s)
			s.player.set(waits, waits)
			s.must(t, request(golden, "r", shop, "web", ""), "create", "-f", "-")
			reach(t, s, shop, golden)
			s.must(t, "", "delete", "namespace", golden, "--timeout=80s")
			nothing(t, s, shop, golden, requests)
		})
	}
	t.Run("of the machine while the disks are copied change nothing", func(t *testing.T) {
		shop, golden := pair(t, s)
		s.player.set(waits, waits)
		s.must(t, request(golden, "r", shop, "web", ""), "create", "-f", "-")
		steps["while the disks are copied"](t, s, shop, golden)
		s.must(t, "", "delete", "vm", "web", "-n", shop)
		s.player.willing()
		checkCaptured(t, s, shop, golden, "r")
	})
	t.Run("of a disk while it is copied has it made anew", func(t *testing.T) {
		shop, golden := pair(t, s)
		s.player.set(waits, waits)
		s.must(t, request(golden, "r", shop, "web", ""), "create", "-f", "-")
		steps["while the disks are copied"](t, s, shop, golden)
		s.must(t, "", "delete", "dv", s.all(t, dataVolumes, golden)[0].GetName(), "-n", golden)
		s.player.willing()
		checkCaptured(t, s, shop, golden, "r")
	})
	t.Run("of the template take everything along", func(t *testing.T) {
		shop, golden := pair(t, s)
		s.must(t, request(golden, "r", shop, "web", ""), "create", "-f", "-")
		checkCaptured(t, s, shop, golden, "r")
		s.must(t, "", "delete", "vmt", "r", "-n", golden)
		nothing(t, s, shop, golden, requests)
	})
	t.Run("of the request leave a finished template", func(t *testing.T) {
		shop, golden := pair(t, s)
		s.must(t, request(golden, "r", shop, "web", `, "ttlSecondsAfterFinished": 0`), "create", "-f", "-")
		eventually(t, func() string {
			if len(s.all(t, requests, golden)) > 0 {
				return "its lifetime is over"
			}
			return ""
		})
		if len(s.all(t, templates, golden)) != 1 || len(s.all(t, dataVolumes, golden)) != 2 {
			t.Error("the template did not stay")
		}
	})
}

func TestFailuresEndTheRequestAndLeaveNothing(t *testing.T) {
	s := played.on(t)
	for name, tc := range map[string]struct {
		snapshots, disks mood
		more             string
		then             func(t *testing.T, shop, golden string)
		reason, message  string
	}{
		"a snapshot that fails": {snapshots: fails, disks: does, reason: "SnapshotFailed", message: "failed: the disk is on fire"},
		"a disk that fails":     {snapshots: does, disks: fails, reason: "DataVolumeFailed", message: "failed: no space left"},
		"a snapshot that never comes": {
			snapshots: waits, disks: does, more: `, "timeout": "3s"`, reason: "Timeout", message: "not finished within 3s; the last that was known: waiting for VirtualMachineSnapshot",
		},
		"a disk that never comes": {
			snapshots: does, disks: waits, more: `, "timeout": "5s"`, reason: "Timeout", message: "not finished within 5s; the last that was known: 0 of 2 disks are copied",
		},
		"a snapshot that vanishes": {
			snapshots: waits, disks: does, reason: "SnapshotLost", message: "was deleted before it had served",
			then: func(t *testing.T, shop, golden string) {
				steps["while the snapshot is taken"](t, s, shop, golden)
				eventually(t, func() string {
					if _, found, _ := unstructured.NestedMap(s.all(t, requests, golden)[0].Object, "status", "snapshotRef"); !found {
						return "not recorded"
					}
					return ""
				})
				s.must(t, "", "delete", "vmsnapshot", "--all", "-n", shop)
			},
		},
		"a machine that vanishes with its namespace": {
			snapshots: waits, disks: does, reason: "SnapshotLost", message: "was deleted before it had served",
			then: func(t *testing.T, shop, golden string) {
				steps["while the snapshot is taken"](t, s, shop, golden)
				s.must(t, "", "delete", "namespace", shop, "--timeout=80s")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shop, golden := pair(t, s)
			s.player.set(tc.snapshots, tc.disks)
			s.must(t, request(golden, "r", shop, "web", tc.more), "create", "-f", "-")
			if tc.then != nil {
				tc.then(t, shop, golden)
			}
			got := s.ends(t, golden, "r")
			if got["Ready"].Reason != tc.reason || !strings.Contains(got["Ready"].Message, tc.message) || got["Progressing"].Reason != "Failed" {
				t.Errorf("conditions are %+v", got)
			}
			nothing(t, s, shop, golden)
		})
	}
}

// TestKindsThatComeLaterAreUsed takes definitions away and brings them back, while the same manager runs.
func TestKindsThatComeLaterAreUsed(t *testing.T) {
	s := played.on(t)
	for _, definition := range []string{"virtualmachinesnapshots.snapshot.kubevirt.io", "datavolumes.cdi.kubevirt.io"} {
		t.Run(definition, func(t *testing.T) {
			shop, golden := pair(t, s)
			var crd unstructured.Unstructured
			if err := json.Unmarshal([]byte(s.must(t, "", "get", "crd", definition, "-o", "json")), &crd.Object); err != nil {
				t.Fatal(err)
			}
			crd.SetResourceVersion("")
			crd.SetUID("")
			delete(crd.Object, "status")
			text, err := json.Marshal(crd.Object)
			if err != nil {
				t.Fatal(err)
			}
			s.must(t, "", "delete", "crd", definition, "--timeout=60s")
			t.Cleanup(func() {
				s.kubectl(t, nil, string(text), "apply", "-f", "-")
				s.must(t, "", "wait", "--for=condition=Established", "crd", definition)
			})
			s.must(t, request(golden, "r", shop, "web", ""), "create", "-f", "-")
			got := s.waits(t, golden, "r", "WaitingForAPI")
			if !strings.HasPrefix(got.Message, "waiting until the API server serves ") {
				t.Errorf("got %q", got.Message)
			}
			s.must(t, string(text), "create", "-f", "-")
			checkCaptured(t, s, shop, golden, "r")
		})
	}
}

// TestRequestsThatCannotSucceedAreRefused asks with kubectl.
func TestRequestsThatCannotSucceedAreRefused(t *testing.T) {
	s := played.on(t)
	shop, golden := pair(t, s)
	s.must(t, `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate", "metadata": {"name": "there"},
		"spec": {"virtualMachine": {"spec": {"template": {"spec": {"domain": {"devices": {}}}}}}}}`, "create", "-n", golden, "-f", "-")
	for name, tc := range map[string]struct {
		manifest string
		want     []string
	}{
		"everything at once": {
			request(golden, "r", shop, "nix", `, "templateName": "No_Name", "templateLabels": {"os": "a b"}`),
			[]string{`spec.templateName: Invalid value: "No_Name"`, `spec.templateLabels: Invalid value: "a b"`, `spec.virtualMachineRef: Not found: "` + shop + `/nix"`},
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
			// The cache of templates is a watch behind.
			eventually(t, func() string {
				result := s.kubectl(t, nil, tc.manifest, "create", "--dry-run=server", "-f", "-")
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
		eve, err := s.platform.Plane.User("eve")
		if err != nil {
			t.Fatal(err)
		}
		rule := func(verb, group, resource string) rbacv1.PolicyRule {
			return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
		}
		// All that it takes, but for the source.
		if err := s.platform.Plane.Grant(t.Context(), eve, golden, rule("create", "template.kubevirt.io", "virtualmachinetemplaterequests"),
			rule("create", "template.kubevirt.io", "virtualmachinetemplates"), rule("create", "cdi.kubevirt.io", "datavolumes"),
			rule("create", "snapshot.kubevirt.io", "virtualmachinesnapshots")); err != nil {
			t.Fatal(err)
		}
		s.must(t, twoDisks, "create", "-n", golden, "-f", "-")
		for _, namespace := range []string{shop, golden} {
			there := s.kubectl(t, eve, request(golden, "r", namespace, "web", ""), "create", "--dry-run=server", "-f", "-")
			notThere := s.kubectl(t, eve, request(golden, "r", namespace, "nix", ""), "create", "--dry-run=server", "-f", "-")
			if there.Code == 0 || strings.ReplaceAll(notThere.Stderr, "/nix", "/web") != there.Stderr {
				t.Errorf("the answers differ:\n%s%s", there.Stderr, notThere.Stderr)
			}
		}
	})
}

// TestManyCaptures has many machines captured at once.
func TestManyCaptures(t *testing.T) {
	const many = 500
	s := played.on(t)
	shop, golden := pair(t, s)
	started := time.Now()
	var all []string
	for i := range many {
		all = append(all, request(golden, fmt.Sprintf("r-%03d", i), shop, "web", ""))
	}
	s.must(t, strings.Join(all, "\n---\n"), "create", "-f", "-")
	created := time.Since(started)
	deadline := time.Now().Add(5 * time.Minute)
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
	eventually(t, func() string {
		if left := len(s.all(t, snapshots, shop)) + len(s.all(t, contents, shop)); left > 0 {
			return fmt.Sprintf("%d snapshots and contents are left", left)
		}
		return ""
	})
	if len(s.all(t, templates, golden)) != many || len(s.all(t, dataVolumes, golden)) != 2*many {
		t.Errorf("there are %d templates and %d DataVolumes", len(s.all(t, templates, golden)), len(s.all(t, dataVolumes, golden)))
	}
	if err := s.client.Resource(templates).Namespace(golden).DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
