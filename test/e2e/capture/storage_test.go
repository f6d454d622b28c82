package capture_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/controlplane/csi"
)

// atFault are the reasons of a capture that fails because its snapshot is not ready in time: KubeVirt's deadline and the request's are the same, and
// either may be first.
var atFault = []string{"Timeout", "SnapshotFailed"}

// TestFailuresOfTheStorageEndTheRequestAndLeaveNothing tests storage that never does what KubeVirt and CDI wait for.
//
//suite:long
func TestFailuresOfTheStorageEndTheRequestAndLeaveNothing(t *testing.T) {
	s := real.on(t)
	for name, tc := range map[string]struct {
		step     csi.Step
		rule     csi.Rule
		more     string
		reasons  []string
		messages []string
	}{
		"a snapshot that fails": {
			step: csi.TakeSnapshot, rule: csi.Rule{Fail: "the disk is on fire"}, more: `, "timeout": "20s"`,
			reasons: atFault, messages: []string{"the disk is on fire"},
		},
		"a snapshot that never comes": {
			step: csi.TakeSnapshot, rule: csi.Rule{Hold: true}, more: `, "timeout": "20s"`,
			reasons: atFault, messages: []string{"VirtualMachineSnapshot"},
		},
		"a snapshot that is never ready": {
			step: csi.ReadySnapshot, rule: csi.Rule{Hold: true}, more: `, "timeout": "20s"`,
			reasons: []string{"Timeout"}, messages: []string{"not finished within 20s; the last that was known: waiting for VirtualMachineSnapshot"},
		},
		"a disk that fails": {
			step: csi.ProvisionVolume, rule: csi.Rule{Fail: "no space left"}, more: `, "timeout": "1m"`,
			reasons: []string{"Timeout"}, messages: []string{"not finished within 1m0s; the last that was known: 0 of 2 disks are copied"},
		},
		"a disk that never comes": {
			step: csi.ProvisionVolume, rule: csi.Rule{Hold: true}, more: `, "timeout": "1m"`,
			reasons: []string{"Timeout"}, messages: []string{"not finished within 1m0s; the last that was known: 0 of 2 disks are copied"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.pair(t)
			c.filled(t)
			tc.rule.Namespace = c.shop
			defer s.platform.Plane.CSI().When(tc.step, tc.rule)()
			c.begin(t, tc.more)
			c.failed(t, tc.reasons, tc.messages...)
			c.nothing(t)
		})
	}
	t.Run("a disk that is lost once it is copied", func(t *testing.T) {
		t.Parallel()
		c, release := s.held(t, at(beforeTemplate), "")
		if err := s.platform.Plane.CSI().VanishVolume(t.Context(), c.golden, c.one(t, claims, c.golden)); err != nil {
			t.Fatal(err)
		}
		c.failed(t, []string{"DataVolumeFailed"})
		release()
		c.nothing(t)
	})
}

// TestUnrulyStorageMakesOneTemplateOrNone has storage that is slow, fails for a while, loses objects, and reports changes late, early, and
// repeatedly.
//
//suite:long
func TestUnrulyStorageMakesOneTemplateOrNone(t *testing.T) {
	s := real.on(t)
	snapshotSteps := []csi.Step{csi.BindSnapshot, csi.TakeSnapshot, csi.ReadySnapshot}
	everywhere := slices.Concat([]csi.Step{csi.ProvisionVolume, csi.DeleteSnapshot, csi.DeleteVolume}, snapshotSteps)
	for name, tc := range map[string]struct {
		steps []csi.Step
		rule  csi.Rule
		// may are the reasons with which the capture may end; none of them when it has to succeed.
		may []string
	}{
		"slow at every step":                        {steps: everywhere, rule: csi.Rule{Delay: 2 * time.Second}},
		"failing twice at every step":               {steps: everywhere, rule: csi.Rule{Fail: "the array is rebooting", Times: 2}},
		"losing a snapshot before it is bound":      {steps: []csi.Step{csi.BindSnapshot}, rule: csi.Rule{Vanish: true, Times: 1}},
		"losing a snapshot before it is taken":      {steps: []csi.Step{csi.TakeSnapshot}, rule: csi.Rule{Vanish: true, Times: 1}},
		"losing a snapshot before it is ready":      {steps: []csi.Step{csi.ReadySnapshot}, rule: csi.Rule{Vanish: true, Times: 1}, may: []string{"SnapshotLost"}},
		"losing every snapshot before it is ready":  {steps: []csi.Step{csi.ReadySnapshot}, rule: csi.Rule{Vanish: true}, may: []string{"SnapshotLost", "Timeout", "SnapshotFailed"}},
		"losing a claim before it has a volume":     {steps: []csi.Step{csi.ProvisionVolume}, rule: csi.Rule{Vanish: true, Times: 1}},
		"telling of things before what precedes":    {steps: snapshotSteps, rule: csi.Rule{Disorder: true}},
		"telling of everything again":               {steps: everywhere, rule: csi.Rule{Repeat: 5}},
		"slow, out of order and telling everything": {steps: everywhere, rule: csi.Rule{Delay: time.Second, Disorder: true, Repeat: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.pair(t)
			c.filled(t)
			tc.rule.Namespace = c.shop
			for _, step := range tc.steps {
				defer s.platform.Plane.CSI().When(step, tc.rule)()
			}
			timeout := "5m" // a capture that has to succeed may take long on a busy host
			if tc.may != nil {
				timeout = "1m"
			}
			c.begin(t, `, "timeout": "`+timeout+`"`)
			if got := c.ends(t, c.golden, "r"); got["Ready"].Status != "True" && tc.may != nil {
				c.failed(t, tc.may)
				c.nothing(t)
				return
			}
			c.captured(t)
			madeOnce(t, c)
		})
	}
	for name, at := range map[string]step{
		"losing a snapshot that is taken":       at("until the snapshot is ready"),
		"losing a snapshot that is copied from": at("while the disks are copied"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, release := s.held(t, at, "")
			lost := c.one(t, volumeSnapshots, c.shop)
			if err := s.platform.Plane.CSI().VanishSnapshot(t.Context(), c.shop, lost); err != nil {
				t.Fatal(err)
			}
			c.failed(t, []string{"SnapshotLost"}, "lost VolumeSnapshots before it had served: "+lost)
			release()
			c.nothing(t)
		})
	}
}
