package capture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// capture is one capture: by the request r in golden, of the VirtualMachine web in shop.
type capture struct {
	*stage
	shop, golden string
}

// twoDisks is a VirtualMachine with two disks: a DataVolume of its own and a claim.
const twoDisks = `{"apiVersion": "v1", "kind": "List", "items": [
	{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "web-data"},
		"spec": {"storageClassName": "csi", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
	{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": {"runStrategy": "Halted",
		"dataVolumeTemplates": [{"metadata": {"name": "web-root"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}],
		"template": {"spec": {
			"domain": {"memory": {"guest": "1Gi"}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "data", "disk": {"bus": "virtio"}}]}},
			"volumes": [{"name": "root", "dataVolume": {"name": "web-root"}}, {"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}}]}}}}]}`

// brought reports whether an object was created with the VirtualMachine of twoDisks.
func brought(object unstructured.Unstructured) bool {
	return object.GetName() == "web-root" || object.GetName() == "web-data"
}

// pair creates a namespace with the VirtualMachine of twoDisks, and one for its template.
func (s *stage) pair(t *testing.T) *capture {
	t.Helper()
	c := &capture{stage: s, shop: s.namespace(t, "shop"), golden: s.namespace(t, "golden")}
	s.does(t, twoDisks, "create", "-n", c.shop, "-f", "-")
	return c
}

// filled waits until the disks of the VM can be snapshotted, which KubeVirt waits for as well.
func (c *capture) filled(t *testing.T) {
	t.Helper()
	eventually(t, "the machine has its disks", func() string {
		for resource, want := range map[schema.GroupVersionResource]string{dataVolumes: "Succeeded", claims: "Bound"} {
			found := c.all(t, resource, c.shop)
			if len(found) == 0 {
				return "no " + resource.Resource
			}
			for _, each := range found {
				if phase, _, _ := unstructured.NestedString(each.Object, "status", "phase"); phase != want {
					return fmt.Sprintf("%s %s/%s is %s", resource.Resource, c.shop, each.GetName(), phase)
				}
			}
		}
		return ""
	})
}

// begin creates the request for the template, with more in its spec.
func (c *capture) begin(t *testing.T, more string) {
	t.Helper()
	c.does(t, request(c.golden, "r", c.shop, "web", more), "create", "-f", "-")
}

// captured checks a capture that has succeeded.
func (c *capture) captured(t *testing.T) {
	t.Helper()
	if got := c.ends(t, c.golden, "r"); got["Ready"].Status != "True" || got["Complete"].Status != "True" {
		t.Fatalf("conditions are %+v", got)
	}
	eventually(t, "the request is complete and its snapshots are gone", func() string {
		for _, each := range c.all(t, requests, c.golden) {
			if len(each.GetFinalizers()) > 0 {
				return "the request is not let go of"
			}
		}
		if left := c.left(t, snapshots, contents); left != "" {
			return left
		}
		if !c.stored() {
			return ""
		}
		if copies := len(c.all(t, claims, c.golden)); copies != 2 {
			return fmt.Sprintf("there are %d claims beside the template", copies)
		}
		// CDI copies through a claim beside the snapshot.
		for _, each := range c.all(t, claims, c.shop) {
			if !brought(each) {
				return "left over: claim " + each.GetName()
			}
		}
		return c.left(t, volumeSnapshots)
	})
	made := c.all(t, templates, c.golden)
	if len(made) != 1 || len(made[0].GetOwnerReferences()) > 0 {
		t.Fatalf("templates are %v", made)
	}
	disks := c.all(t, dataVolumes, c.golden)
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

// failed waits until the request has failed for one of the reasons, with all of the parts in its message.
func (c *capture) failed(t *testing.T, reasons []string, parts ...string) {
	t.Helper()
	got := c.ends(t, c.golden, "r")
	ready := got["Ready"]
	if got["Progressing"].Reason != "Failed" || !slices.Contains(reasons, ready.Reason) {
		t.Errorf("want one of the reasons %s, conditions are %+v", reasons, got)
	}
	for _, part := range parts {
		if !strings.Contains(ready.Message, part) {
			t.Errorf("want %q in %q", part, ready.Message)
		}
	}
}

// nothing checks that a capture has left no objects behind.
func (c *capture) nothing(t *testing.T, more ...schema.GroupVersionResource) {
	t.Helper()
	kinds := append([]schema.GroupVersionResource{snapshots, contents, dataVolumes, templates}, more...)
	if c.stored() {
		kinds = append(kinds, claims, volumeSnapshots)
	}
	eventually(t, "nothing is left of the capture", func() string { return c.left(t, kinds...) })
}

// stored reports whether the stage has storage.
func (s *stage) stored() bool { return s.platform.Plane.CSI() != nil }

// left returns the names of objects in both namespaces that were not created with the VirtualMachine; VolumeSnapshots include their contents.
func (c *capture) left(t *testing.T, kinds ...schema.GroupVersionResource) string {
	t.Helper()
	var left []string
	for _, kind := range kinds {
		for _, namespace := range []string{c.shop, c.golden} {
			for _, each := range c.all(t, kind, namespace) {
				if namespace != c.shop || !brought(each) {
					left = append(left, kind.Resource+" "+namespace+"/"+each.GetName())
				}
			}
		}
		if kind != volumeSnapshots {
			continue
		}
		for _, each := range c.all(t, volumeContents, "") {
			of, _, _ := unstructured.NestedString(each.Object, "spec", "volumeSnapshotRef", "namespace")
			if of == c.shop || of == c.golden {
				left = append(left, volumeContents.Resource+" "+each.GetName())
			}
		}
	}
	if left == nil {
		return ""
	}
	return "left over: " + strings.Join(left, ", ")
}

// creations is an audit policy by which the API server records all creations for captures.
const creations = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
	{"level": "Metadata", "verbs": ["create"], "resources": [
		{"group": "snapshot.kubevirt.io", "resources": ["virtualmachinesnapshots"]},
		{"group": "cdi.kubevirt.io", "resources": ["datavolumes"]},
		{"group": "template.kubevirt.io", "resources": ["virtualmachinetemplates"]}]},
	{"level": "None"}]}`

// madeOnce checks that nothing was created twice for these captures, including objects that were deleted again, and that no client tried to.
func madeOnce(t *testing.T, captures ...*capture) {
	t.Helper()
	events, err := captures[0].platform.Plane.AuditEvents()
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]int{}
	for _, event := range events {
		key := event.ObjectRef.Namespace + " " + event.ObjectRef.Resource
		switch event.ResponseStatus.Code {
		case 201:
			made[key]++
		case 409:
			made[key+" that existed"]++
		}
	}
	for _, c := range captures {
		for what, want := range map[string]int{
			c.shop + " virtualmachinesnapshots": 1, c.golden + " datavolumes": 2, c.golden + " virtualmachinetemplates": 1,
		} {
			if got := made[what]; got != want {
				t.Errorf("%s were made %d times, want %d", what, got, want)
			}
			if again := made[what+" that existed"]; again > 0 {
				t.Errorf("%s: somebody tried %d times to make what there was", what, again)
			}
		}
	}
}

// one returns the name of an object of a kind in a namespace.
func (s *stage) one(t *testing.T, resource schema.GroupVersionResource, namespace string) string {
	t.Helper()
	found := s.all(t, resource, namespace)
	if len(found) == 0 {
		t.Fatalf("there are no %s in %s", resource.Resource, namespace)
	}
	return found[0].GetName()
}

// remove deletes an object and does not wait for the end of the deletion: a namespace as the administrator, anything else as the owner.
func (s *stage) remove(t *testing.T, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	client := s.own
	if resource == namespaces {
		client = s.client
	}
	err := client.Resource(resource).Namespace(namespace).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		t.Fatal(err)
	}
}
