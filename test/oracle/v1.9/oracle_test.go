package oracle_test

import (
	"math/rand/v2"
	"testing"

	"k8s.io/utils/ptr"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
	"kubevirt.io/kubevirt/pkg/defaults"

	"github.com/vmstencil/stencil/test/oracle"
)

var release = oracle.Release{
	Version:             "v1.9.0",
	SupportsPCIeHotplug: defaults.SupportsPCIeHotplug,
	Prefer: func(random *rand.Rand, preference *instancetypev1beta1.VirtualMachinePreferenceSpec) {
		if random.IntN(3) == 0 {
			preference.Devices.PreferredVideoType = ptr.To([]string{"vga", "virtio", "bochs"}[random.IntN(3)])
		}
	},
}

func TestMain(m *testing.M) { oracle.Main(m) }

func TestShapesAreLaidOutAsKubeVirtDoes(t *testing.T) { release.CompareShapes(t) }

func TestRandomMachinesAreLaidOutAsKubeVirtDoes(t *testing.T) { release.CompareRandom(t) }

func TestGuestsSeeWhatIsStored(t *testing.T) { release.CompareGuests(t) }
