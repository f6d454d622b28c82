package libvirt

import (
	"encoding/xml"
	"fmt"
	"slices"

	"github.com/vmstencil/stencil/defaulting/domain"
	"github.com/vmstencil/stencil/defaulting/worker"
)

// architectures maps libvirt's names of the supported architectures to KubeVirt's.
var architectures = map[string]string{"x86_64": domain.AMD64, "aarch64": domain.ARM64}

// capabilities is the part of libvirt's capabilities that is read.
type capabilities struct {
	Guests []struct {
		Arch struct {
			Name     string `xml:"name,attr"`
			Emulator string `xml:"emulator"`
			Machines []struct {
				Canonical string `xml:"canonical,attr"`
				Name      string `xml:",chardata"`
			} `xml:"machine"`
		} `xml:"arch"`
	} `xml:"guest"`
}

// Facts returns the versions of libvirt and QEMU. With an empty cache, libvirt then queries the
// capabilities of every QEMU that it finds.
func (s *Session) Facts() (worker.Facts, error) {
	number, err := s.connection.GetLibVersion()
	if err != nil {
		return worker.Facts{}, fmt.Errorf("asking libvirt for its version: %w", err)
	}
	qemu, err := s.connection.GetVersion()
	if err != nil {
		return worker.Facts{}, fmt.Errorf("asking libvirt for QEMU: %w; %s", err, Install)
	}
	return worker.Facts{Libvirt: version(number), QEMU: version(qemu)}, nil
}

// Machines returns libvirt's machine types for every architecture.
func (s *Session) Machines() (map[string][]string, error) {
	text, err := s.connection.GetCapabilities()
	if err != nil {
		return nil, fmt.Errorf("asking libvirt for its capabilities: %w", err)
	}
	var known capabilities
	if err := xml.Unmarshal([]byte(text), &known); err != nil {
		return nil, fmt.Errorf("reading libvirt's capabilities: %w", err)
	}
	machines := map[string][]string{}
	for _, guest := range known.Guests {
		architecture, ok := architectures[guest.Arch.Name]
		if !ok {
			continue
		}
		for _, machine := range guest.Arch.Machines {
			name := machine.Name
			if machine.Canonical != "" {
				name += "=" + machine.Canonical
			}
			machines[architecture] = append(machines[architecture], name)
		}
		slices.Sort(machines[architecture])
	}
	return machines, nil
}
