package capture_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/test/controlplane/csi"
)

// step is a step of a capture at which it can be held.
type step struct {
	name string
	// storage is the step of the storage that is held in the namespace of the VM. Empty when a write is denied.
	storage csi.Step
	// write is the write that the manager is denied, as OPERATION.RESOURCE: in the namespace of the request, or with beside in that of the VM.
	write  string
	beside bool
	// after is a write that is denied first. It is for a write like one that comes earlier in the capture.
	after string
	// progress is a part of the request's progress message at this step.
	progress string
}

// steps are all moments of a capture, in their order: before each write but those of the status, and while it waits for others.
var steps = []step{
	{name: "before it is guarded", write: "UPDATE.virtualmachinetemplaterequests", progress: "could not add the finalizer"},
	{name: "before the snapshot", write: "CREATE.virtualmachinesnapshots", beside: true, progress: "could not create the snapshot"},
	{name: "while the snapshot is taken", storage: csi.TakeSnapshot, progress: "waiting for VirtualMachineSnapshot"},
	{name: "until the snapshot is ready", storage: csi.ReadySnapshot, progress: ": Succeeded"},
	{name: "before the disks are copied", write: "CREATE.datavolumes", progress: "could not create DataVolumes"},
	{name: "while the disks are copied", storage: csi.ProvisionVolume, progress: "0 of 2 disks are copied, waiting for"},
	{name: beforeTemplate, write: "CREATE.virtualmachinetemplates", progress: "could not create the template"},
	{
		name: "before the request is the template's", write: "UPDATE.virtualmachinetemplaterequests", progress: "could not have the template own the request",
		after: "CREATE.virtualmachinetemplates",
	},
	{name: "before the disks are handed over", write: "UPDATE.datavolumes", progress: "could not hand the DataVolumes over to the template"},
	{name: "before the snapshot is deleted", write: "DELETE.virtualmachinesnapshots", beside: true, progress: "could not delete the snapshot"},
	{name: "before the template is let go of", write: "UPDATE.virtualmachinetemplates", progress: "could not have the request own the template no more"},
}

// beforeTemplate divides the steps: until then a capture needs its snapshot, and afterwards the template exists.
const beforeTemplate = "before the template"

// at returns the step of a name.
func at(name string) step {
	for _, each := range steps {
		if each.name == name {
			return each
		}
	}
	panic("there is no step " + name)
}

// heldLabel contains the write that the manager is denied in a namespace.
const heldLabel = "stencil.test/held"

// holdPolicy denies the manager the write in the label of a namespace. The manager treats the denial as temporary and tries again.
const holdPolicy = `{"apiVersion": "v1", "kind": "List", "items": [
	{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "captures-are-held"}, "spec": {
		"matchConstraints": {"resourceRules": [{"apiGroups": ["snapshot.kubevirt.io", "cdi.kubevirt.io", "template.kubevirt.io"], "apiVersions": ["*"],
			"operations": ["CREATE", "UPDATE", "DELETE"],
			"resources": ["virtualmachinesnapshots", "datavolumes", "virtualmachinetemplates", "virtualmachinetemplaterequests"]}]},
		"matchConditions": [{"name": "of-the-manager", "expression": "request.userInfo.username == 'MANAGER'"}],
		"validations": [{"reason": "Forbidden", "message": "it is held",
			"expression": "namespaceObject.metadata.?labels[?'` + heldLabel + `'].orValue('') != request.operation + '.' + request.resource.resource"}]}},
	{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "captures-are-held"},
		"spec": {"policyName": "captures-are-held", "validationActions": ["Deny"]}}]}`

// installHold installs holdPolicy and waits until the API server enforces it.
func installHold(s *stage) error {
	ctx, plane := context.Background(), s.platform.Plane
	installed := s.platform.Options()
	manager, err := installed.ManagerUser(plane)
	if err != nil {
		return err
	}
	namespace, err := plane.Namespace(ctx, "held")
	if err != nil {
		return err
	}
	for _, call := range []struct {
		stdin     string
		arguments []string
	}{
		{strings.Replace(holdPolicy, "MANAGER", manager.Name, 1), []string{"create", "-f", "-"}},
		{"", []string{"label", "namespace", namespace, heldLabel + "=CREATE.virtualmachinesnapshots"}},
	} {
		if result, err := plane.Kubectl(ctx, nil, call.stdin, call.arguments...); err != nil || result.Code != 0 {
			return errors.Join(err, fmt.Errorf("kubectl %v: %s", call.arguments, result.Stderr))
		}
	}
	last := ""
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		result, err := plane.Kubectl(ctx, manager, `{"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot",
			"metadata": {"name": "capture-probe", "labels": {"template.kubevirt.io/RequestUID": "probe"}},
			"spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}}}`, "create", "-n", namespace, "--dry-run=server", "--validate=false", "-f", "-")
		last = result.Stderr
		return strings.Contains(last, "it is held"), err
	})
	if err != nil {
		return fmt.Errorf("captures cannot be held: %w: %s", err, last)
	}
	return nil
}

// deny denies the manager a write in a namespace, or none when write is empty. A namespace that no longer exists allows no writes.
func (c *capture) deny(t *testing.T, namespace, write string) {
	t.Helper()
	value := any(write)
	if write == "" {
		value = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{heldLabel: value}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.Resource(namespaces).Patch(context.WithoutCancel(t.Context()), namespace, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && write != "" {
		t.Fatal(err)
	}
}

// hold prevents a capture that has not begun from proceeding beyond a step, until it is released.
func (c *capture) hold(t *testing.T, at step) (release func()) {
	t.Helper()
	c.filled(t)
	if at.storage != "" {
		release = c.platform.Plane.CSI().When(at.storage, csi.Rule{Namespace: c.shop, Hold: true})
		t.Cleanup(release)
		return release
	}
	namespace, write := c.golden, at.write
	if at.beside {
		namespace = c.shop
	}
	if at.after != "" {
		write = at.after
	}
	c.deny(t, namespace, write)
	release = func() { c.deny(t, namespace, "") }
	t.Cleanup(release)
	return release
}

// reach waits until a held capture has reached the step.
func (c *capture) reach(t *testing.T, at step) {
	t.Helper()
	if at.after != "" {
		c.awaitProgress(t, c.golden, "r", "could not create the template")
		c.deny(t, c.golden, at.write)
	}
	c.awaitProgress(t, c.golden, "r", at.progress)
	if at.storage != csi.TakeSnapshot {
		return
	}
	eventually(t, "both disks have a VolumeSnapshot", func() string {
		if bound := len(c.all(t, volumeSnapshots, c.shop)); bound != 2 {
			return fmt.Sprintf("there are %d VolumeSnapshots", bound)
		}
		return ""
	})
}

// held returns a capture that has reached a step.
func (s *stage) held(t *testing.T, at step, more string) (c *capture, release func()) {
	t.Helper()
	c = s.pair(t)
	release = c.hold(t, at)
	c.begin(t, more)
	c.reach(t, at)
	return c, release
}
