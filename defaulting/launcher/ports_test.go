package launcher

import (
	"testing"

	"github.com/vmstencil/stencil/defaulting/domain"
)

func TestPortsForLater(t *testing.T) {
	nine := 9
	for _, tc := range []struct {
		name    string
		shape   domain.Shape
		devices int
		want    ports
	}{
		{"a machine without interface is given no placeholder", domain.Shape{}, 4, ports{0, 4}},
		{"one interface leaves room for three", domain.Shape{Interfaces: 1}, 6, ports{3, 0}},
		{"three free ports at least", domain.Shape{Interfaces: 4}, 12, ports{0, 3}},
		{"sixteen ports above 2 GiB", domain.Shape{Interfaces: 1, LargeMemory: true}, 7, ports{3, 6}},
		{"six free ports at least above 2 GiB", domain.Shape{Interfaces: 5, LargeMemory: true}, 20, ports{0, 6}},
		{"frozen slots count what the machine has", domain.Shape{Interfaces: 2, SlotCount: &nine}, 7, ports{7, 0}},
		{"fewer frozen slots than interfaces", domain.Shape{Interfaces: 12, SlotCount: &nine}, 20, ports{0, 3}},
		{"nothing is added on the root complex", domain.Shape{Interfaces: 1, RootComplex: true}, 6, ports{}},
		{"nor where there is no PCIe", domain.Shape{Interfaces: 1, NoHotplug: true}, 6, ports{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := portsOf(tc.shape, tc.devices); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
