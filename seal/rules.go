package seal

import "github.com/vmstencil/stencil/seal/internal/inode"

// machineIDSize is the size of a machine ID in bytes. A file with fewer has none: it is empty, or has the word "uninitialized".
const machineIDSize = 32

// superuser is the home of the guest's superuser.
const superuser = "/root"

// rule is a kind of files that identify a VM.
type rule struct {
	// path is that in the system. A * stands for any characters of one name.
	path   string
	reason string
	// size is the least size in bytes of a regular file that is a finding.
	size uint64
	// any is true if files of all types are findings.
	any bool
	// link is true if a symbolic link is none, and is not followed.
	link bool
}

// rules are what systemd (https://systemd.io/BUILDING_IMAGES), cloud-init and virt-sysprep remove before an image is shared.
var rules = []rule{
	{path: "/etc/machine-id", reason: "machine ID", size: machineIDSize},
	// It is a link to /etc/machine-id otherwise.
	{path: "/var/lib/dbus/machine-id", reason: "machine ID", size: machineIDSize, link: true},
	{path: "/etc/ssh/ssh_host_*_key", reason: "SSH host key", size: 1},
	{path: superuser + "/.ssh/authorized_keys", reason: "authorized SSH keys", size: 1},
	{path: superuser + "/.ssh/authorized_keys2", reason: "authorized SSH keys", size: 1},
	{path: "/home/*/.ssh/authorized_keys", reason: "authorized SSH keys", size: 1},
	{path: "/home/*/.ssh/authorized_keys2", reason: "authorized SSH keys", size: 1},
	{path: "/var/lib/cloud/instance", reason: "state of cloud-init", any: true},
	{path: "/var/lib/cloud/instances/*", reason: "state of cloud-init", any: true},
	{path: "/var/lib/dhcp/*.leases*", reason: "DHCP lease", size: 1},
	{path: "/var/lib/dhclient/*.lease*", reason: "DHCP lease", size: 1},
	{path: "/var/lib/dhcpcd/*.lease*", reason: "DHCP lease", size: 1},
	{path: "/var/lib/NetworkManager/*.lease", reason: "DHCP lease", size: 1},
	{path: "/var/lib/systemd/random-seed", reason: "random seed", size: 1},
	{path: "/var/lib/systemd/credential.secret", reason: "credential key", size: 1},
}

// matches reports whether a file of the path is a finding, and if not, why that is not known.
func (r rule) matches(info inode.Info) (found bool, unknown string) {
	switch {
	case r.any:
		return true, ""
	case info.Type == inode.Regular:
		return info.Size >= r.size, ""
	case info.Type == inode.Symlink && !r.link:
		return false, linkNotFollowed
	}
	return false, ""
}
