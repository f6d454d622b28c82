package defaulting

import (
	"fmt"
	"strings"
)

// request requests the defaults of a small VM as the webhook does, which leaves out what they do not depend on: VMs of one template are one request.
// Those of one shape and several notes, which are annotations, have the same devices.
func request(shape int, note string) []byte {
	var disks, volumes, interfaces, networks []string
	for i := range 3 {
		// Whether a disk is read-only is part of the shape and changes no address, so VMs of different shapes cost the same.
		disks = append(disks, fmt.Sprintf(`{"name":"d%d","disk":{"bus":"virtio","readonly":%t}}`, i, shape>>i&1 == 1))
		volumes = append(volumes, fmt.Sprintf(`{"name":"d%d","dataVolume":{}}`, i))
	}
	// Cdroms on SATA have no PCI address; the presence of each, and whether it is read-only, makes another shape.
	for i := range 5 {
		disks = append(disks, fmt.Sprintf(`{"name":"c%d","cdrom":{"bus":"sata","readonly":%t}}`, i, shape>>(3+i)&1 == 1))
		volumes = append(volumes, fmt.Sprintf(`{"name":"c%d","dataVolume":{}}`, i))
	}
	for i := range 1 + shape>>8%2 {
		interfaces = append(interfaces, fmt.Sprintf(`{"name":"n%d","bridge":{}}`, i))
		networks = append(networks, fmt.Sprintf(`{"name":"n%d","multus":{"networkName":"n%d"}}`, i, i))
	}
	extra := ""
	for i, device := range []string{`,"rng":{}`, `,"autoattachSerialConsole":false`, `,"autoattachMemBalloon":false`, `,"disableHotplug":true`, `,"autoattachVSOCK":true`, `,"inputs":[{"name":"t","type":"tablet","bus":"usb"}]`} {
		if shape>>(9+i)&1 == 1 {
			extra += device
		}
	}
	return fmt.Appendf(nil, `{"patchOnly":true,"vm":{"spec":{"template":{"metadata":{"annotations":{"note":%q}},"spec":{`+
		`"domain":{"memory":{"guest":"2Gi"},"cpu":{"cores":2},"devices":{"disks":[%s],"interfaces":[%s]%s}},"networks":[%s],"volumes":[%s]}}}}}`,
		note, strings.Join(disks, ","), strings.Join(interfaces, ","), extra, strings.Join(networks, ","), strings.Join(volumes, ","))
}

// shapes is how many there are.
const shapes = 1 << 15
