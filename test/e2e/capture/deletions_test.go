package capture_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The moments that divide a capture. Each is the first step after which another requirement applies.
var (
	snapshotExists = index("while the snapshot is taken")
	disksExist     = index("while the disks are copied")
	templateExists = index("before the request is the template's")
	templateOwns   = index("before the disks are handed over")
	snapshotServed = index("before the template is let go of")
	afterwards     = len(steps)
)

func index(name string) int {
	return slices.IndexFunc(steps, func(each step) bool { return each.name == name })
}

// result checks the result of a capture after an object was removed.
type result func(t *testing.T, c *capture, release func())

func isFinished(t *testing.T, c *capture, release func()) {
	t.Helper()
	release()
	c.captured(t)
}

func leavesNothing(t *testing.T, c *capture, release func()) {
	t.Helper()
	release()
	c.nothing(t)
}

func goesAndLeavesNothing(t *testing.T, c *capture, release func()) {
	t.Helper()
	release()
	c.nothing(t, requests)
}

func goesBeforeRelease(t *testing.T, c *capture, release func()) {
	t.Helper()
	c.nothing(t, requests)
	release()
}

func fails(reasons ...string) result {
	return func(t *testing.T, c *capture, release func()) {
		t.Helper()
		release()
		c.failed(t, reasons)
		c.nothing(t)
	}
}

// failsBeforeRelease checks for a failure that a capture must report while it is held. The held write may be in progress, and an object that takes a
// while to be deleted may still exist after it.
func failsBeforeRelease(reasons ...string) result {
	return func(t *testing.T, c *capture, release func()) {
		t.Helper()
		c.failed(t, reasons)
		release()
		c.nothing(t)
	}
}

// waits checks that a capture waits for its VM, or has failed because that was being deleted.
func waits(t *testing.T, c *capture, release func()) {
	t.Helper()
	release()
	eventually(t, "the capture waits for the machine", func() string {
		ready := c.conditions(t, c.golden, "r")["Ready"]
		if slices.Contains([]string{"WaitingForMachine", "MachineNotFound", "CaptureRefused"}, ready.Reason) {
			return ""
		}
		return fmt.Sprintf("the condition Ready is %+v", ready)
	})
}

// waitsForAnother checks that a capture whose VM was deleted before its snapshot is of the next VM of that name.
func waitsForAnother(t *testing.T, c *capture, release func()) {
	t.Helper()
	waits(t, c, release)
	if c.conditions(t, c.golden, "r")["Ready"].Reason != "WaitingForMachine" {
		c.nothing(t)
		return
	}
	c.does(t, twoDisks, "apply", "-n", c.shop, "-f", "-")
	c.captured(t)
}

// isMadeAnew waits until the required number of objects exist, none of them being deleted, and then checks that the capture succeeds.
func isMadeAnew(kind schema.GroupVersionResource, want int) result {
	return func(t *testing.T, c *capture, release func()) {
		t.Helper()
		eventually(t, fmt.Sprintf("there are %d %s", want, kind.Resource), func() string {
			there := slices.DeleteFunc(c.all(t, kind, c.golden), func(each unstructured.Unstructured) bool { return each.GetDeletionTimestamp() != nil })
			if len(there) != want {
				return fmt.Sprintf("there are %d %s", len(there), kind.Resource)
			}
			return ""
		})
		isFinished(t, c, release)
	}
}

// TestDeletionsLeaveNothing deletes each object that a capture uses, at each of its steps.
//
//suite:long
func TestDeletionsLeaveNothing(t *testing.T) {
	s := real.on(t)
	request := func(t *testing.T, c *capture) { c.remove(t, requests, c.golden, "r") }
	vm := func(t *testing.T, c *capture) { c.remove(t, virtualMachines, c.shop, "web") }
	snapshot := func(t *testing.T, c *capture) { c.remove(t, snapshots, c.shop, c.one(t, snapshots, c.shop)) }
	disk := func(t *testing.T, c *capture) { c.remove(t, dataVolumes, c.golden, c.one(t, dataVolumes, c.golden)) }
	template := func(t *testing.T, c *capture) { c.remove(t, templates, c.golden, "r") }
	ofVM := func(t *testing.T, c *capture) { c.remove(t, namespaces, "", c.shop) }
	ofRequest := func(t *testing.T, c *capture) { c.remove(t, namespaces, "", c.golden) }
	for _, tc := range []struct {
		name   string
		delete func(t *testing.T, c *capture)
		// from is the first step, and before the one that follows the last.
		from, before int
		want         result
	}{
		{"the request", request, 0, snapshotServed, goesAndLeavesNothing},
		// The held write would be the last one.
		{"the request", request, snapshotServed, afterwards, goesBeforeRelease},
		{"the namespace of the request", ofRequest, 0, afterwards, goesAndLeavesNothing},

		{"the machine", vm, 0, snapshotExists, waitsForAnother},
		// KubeVirt retains a VM until its snapshot is taken.
		{"the machine", vm, snapshotExists, afterwards, isFinished},

		{"the snapshot", snapshot, snapshotExists, templateExists, failsBeforeRelease("SnapshotLost")},
		{"the snapshot", snapshot, templateExists, snapshotServed, isFinished},

		{"the namespace of the machine", ofVM, snapshotExists - 1, snapshotExists, waits},
		{"the namespace of the machine", ofVM, snapshotExists, templateExists, failsBeforeRelease("SnapshotLost", "MachineNotFound")},
		{"the namespace of the machine", ofVM, templateExists, afterwards, isFinished},

		{"a disk", disk, disksExist, templateExists, isMadeAnew(dataVolumes, 2)},
		{"a disk", disk, templateExists, templateOwns, fails("DataVolumeFailed")},
		{"a disk", disk, templateOwns, snapshotServed, failsBeforeRelease("DataVolumeFailed")},
		{"the template", template, templateExists, templateOwns, isMadeAnew(templates, 1)},
		{"the template", template, templateOwns, afterwards, leavesNothing},
	} {
		for number, step := range steps[tc.from:tc.before] {
			if brief && number%3 != 0 {
				continue
			}
			t.Run("of "+tc.name+" "+step.name, func(t *testing.T) {
				t.Parallel()
				c, release := s.held(t, step, "")
				tc.delete(t, c)
				tc.want(t, c, release)
			})
		}
	}
	t.Run("of the template afterwards take everything along", func(t *testing.T) {
		t.Parallel()
		c := s.pair(t)
		c.begin(t, "")
		c.captured(t)
		template(t, c)
		c.nothing(t, requests)
	})
	t.Run("of the request afterwards leave the template", func(t *testing.T) {
		t.Parallel()
		c := s.pair(t)
		c.begin(t, `, "ttlSecondsAfterFinished": 0`)
		eventually(t, "nothing is left of the request", func() string { return c.left(t, requests, snapshots, contents) })
		if made, disks := c.all(t, templates, c.golden), c.all(t, dataVolumes, c.golden); len(made) != 1 || len(disks) != 2 {
			t.Errorf("there are %d templates and %d DataVolumes", len(made), len(disks))
		}
	})
}
