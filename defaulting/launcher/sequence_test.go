package launcher

import (
	"context"
	"errors"
	"testing"

	"libvirt.org/go/libvirtxml"

	"github.com/vmstencil/stencil/defaulting/domain"
)

// picky rejects domains by their number of root ports, and counts the defines.
type picky struct {
	rejects func(ports int) string
	defines int
}

func (p *picky) Define(_ context.Context, xml string) (string, error) {
	p.defines++
	d := &libvirtxml.Domain{}
	if err := d.Unmarshal(xml); err != nil {
		return "", err
	}
	ports := 0
	for _, controller := range d.Devices.Controllers {
		if controller.Model == "pcie-root-port" {
			ports++
		}
	}
	if message := p.rejects(ports); message != "" {
		return "", &RejectedError{Message: message}
	}
	return xml, nil
}

// TestTheDefineWithoutThePorts checks when the define is repeated that virt-launcher makes before it appends the root ports.
func TestTheDefineWithoutThePorts(t *testing.T) {
	few, many := func(ports int) string {
		if ports == 0 {
			return "few"
		}
		return ""
	}, func(ports int) string {
		if ports > 0 {
			return "many"
		}
		return ""
	}
	plain := domain.Shape{Disks: []domain.DiskShape{{Kind: "disk", Bus: "virtio"}}}
	addressed := domain.Shape{Disks: []domain.DiskShape{{Kind: "disk", Bus: "virtio", Address: &domain.Address{Bus: 1}}}}
	for name, tc := range map[string]struct {
		shape   domain.Shape
		rejects func(int) string
		want    string
		defines int
	}{
		"not for a VM that is accepted":                   {plain, func(int) string { return "" }, "", 1},
		"for an address that only the ports make valid":   {addressed, few, "few", 1},
		"for an accepted VM with an address":              {addressed, func(int) string { return "" }, "", 2},
		"for the message of a VM that is rejected anyway": {plain, func(ports int) string { return few(ports) + many(ports) }, "few", 2},
		"for a VM that only the ports make invalid":       {plain, many, "many", 2},
	} {
		t.Run(name, func(t *testing.T) {
			definer := &picky{rejects: tc.rejects}
			_, err := Layout(t.Context(), definer, tc.shape)
			got := ""
			var rejected *RejectedError
			if errors.As(err, &rejected) {
				got = rejected.Message
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tc.want || definer.defines != tc.defines {
				t.Errorf("got %q after %d defines, want %q after %d", got, definer.defines, tc.want, tc.defines)
			}
		})
	}
}
