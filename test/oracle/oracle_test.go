package oracle_test

import (
	"testing"

	virtv1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/defaults"

	"github.com/vmstencil/stencil/test/oracle"
)

var release = oracle.Release{
	Version: "v1.8.2",
	SupportsPCIeHotplug: func(spec *virtv1.VirtualMachineInstanceSpec) bool {
		return defaults.SupportsPCIeHotplug(spec.Architecture)
	},
}

func TestMain(m *testing.M) { oracle.Main(m) }

func TestShapesAreLaidOutAsKubeVirtDoes(t *testing.T) { release.CompareShapes(t) }

func TestRandomMachinesAreLaidOutAsKubeVirtDoes(t *testing.T) { release.CompareRandom(t) }

func TestGuestsSeeWhatIsStored(t *testing.T) { release.CompareGuests(t) }
