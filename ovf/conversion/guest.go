package conversion

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/vmstencil/stencil/ovf"
)

// family is what decides about drivers.
type family string

const (
	familyLinux   family = "Linux"
	familyWindows family = "Windows"
	familyOther   family = "other"
)

// guest is what is known about an operating system.
type guest struct {
	// source describes what the descriptor declares.
	source string
	family family
	// preference is a name of KubeVirt's common-instancetypes; empty if none fits.
	preference string
	// architecture is a value of KubeVirt's field; empty for the cluster's default.
	architecture string
}

// rule maps names of an operating system to a preference.
type rule struct {
	pattern    *regexp.Regexp
	family     family
	preference string
}

func match(pattern string, family family, preference string) rule {
	return rule{regexp.MustCompile(pattern), family, preference}
}

// rules are applied to VMware's and VirtualBox's identifiers and to descriptions, in lower case and without anything but letters, digits and
// dots. The first one that matches applies.
var rules = []rule{
	match(`solaris|sunos|freebsd|netbsd|openbsd`, familyOther, ""),
	match(`win(dows)?server2025|windows2022srvnext|windows2025|2k25`, familyWindows, "windows.2k25"),
	match(`win(dows)?server2022|windows2019srvnext|windows2022|2k22`, familyWindows, "windows.2k22"),
	match(`win(dows)?server2019|windows2019srv|windows2019|2k19`, familyWindows, "windows.2k19"),
	match(`win(dows)?server2016|windows9server|windows2016|2k16`, familyWindows, "windows.2k16"),
	match(`windows11|windows12`, familyWindows, "windows.11"),
	match(`windows10|windows9.?64guest|windows9guest`, familyWindows, "windows.10"),
	match(`^win|windows`, familyWindows, ""),
	match(`oracle(enterprise)?linux|^oracle`, familyLinux, "oraclelinux"),
	match(`rhel10|redhat10|(redhat|rhel)enterpriselinux10|enterpriselinux10`, familyLinux, "rhel.10"),
	match(`rhel9|redhat9|enterpriselinux9`, familyLinux, "rhel.9"),
	match(`rhel8|redhat8|enterpriselinux8`, familyLinux, "rhel.8"),
	match(`rhel7|redhat7|enterpriselinux7`, familyLinux, "rhel.7"),
	match(`rhel|redhat|enterpriselinux`, familyLinux, "linux"),
	match(`centosstream10|centos10`, familyLinux, "centos.stream10"),
	match(`centosstream9|centos9`, familyLinux, "centos.stream9"),
	match(`centos7`, familyLinux, "centos.7"),
	match(`ubuntu`, familyLinux, "ubuntu"),
	match(`debian`, familyLinux, "debian"),
	match(`fedora`, familyLinux, "fedora"),
	match(`tumbleweed`, familyLinux, "opensuse.tumbleweed"),
	match(`opensuse`, familyLinux, "opensuse.leap"),
	match(`sles|^susele|suselinuxenterprise(server|[0-9])`, familyLinux, "sles"),
	match(`alpine`, familyLinux, "alpine"),
	match(`linux|centos|suse|photon|crxsys|gentoo|arch|mandr|coreos|asianux|rocky|alma`, familyLinux, "linux"),
}

// cim are the preferences of numbers of CIM_OperatingSystem.OSType; the keys of families without a preference have an empty one.
var cim = map[int]rule{
	36: {family: familyLinux, preference: "linux"}, 79: {family: familyLinux, preference: "linux"}, 80: {family: familyLinux, preference: "linux"},
	82: {family: familyLinux, preference: "opensuse.leap"}, 83: {family: familyLinux, preference: "opensuse.leap"}, 84: {family: familyLinux, preference: "sles"}, 85: {family: familyLinux, preference: "sles"},
	86: {family: familyLinux, preference: "linux"}, 87: {family: familyLinux, preference: "linux"}, 89: {family: familyLinux, preference: "linux"},
	90: {family: familyLinux, preference: "linux"}, 91: {family: familyLinux, preference: "linux"}, 92: {family: familyLinux, preference: "linux"},
	93: {family: familyLinux, preference: "ubuntu"}, 94: {family: familyLinux, preference: "ubuntu"}, 95: {family: familyLinux, preference: "debian"}, 96: {family: familyLinux, preference: "debian"},
	97: {family: familyLinux, preference: "linux"}, 98: {family: familyLinux, preference: "linux"}, 99: {family: familyLinux, preference: "linux"}, 100: {family: familyLinux, preference: "linux"}, 101: {family: familyLinux, preference: "linux"},
	106: {family: familyLinux, preference: "linux"}, 107: {family: familyLinux, preference: "linux"}, 108: {family: familyLinux, preference: "oraclelinux"}, 109: {family: familyLinux, preference: "oraclelinux"},
	58: {family: familyWindows}, 67: {family: familyWindows}, 69: {family: familyWindows}, 70: {family: familyWindows}, 71: {family: familyWindows}, 73: {family: familyWindows}, 74: {family: familyWindows},
	76: {family: familyWindows}, 77: {family: familyWindows}, 103: {family: familyWindows}, 105: {family: familyWindows}, 111: {family: familyWindows}, 112: {family: familyWindows}, 113: {family: familyWindows},
	114: {family: familyWindows}, 115: {family: familyWindows}, 116: {family: familyWindows}, 117: {family: familyWindows}, 118: {family: familyWindows, preference: "windows.2k16"},
	119: {family: familyWindows, preference: "windows.10"}, 120: {family: familyWindows, preference: "windows.10"},
	// Solaris, SunOS, FreeBSD, NetBSD, GNU Hurd, Open UNIX, OpenBSD, z/OS.
	29: {family: familyOther}, 30: {family: familyOther}, 42: {family: familyOther}, 43: {family: familyOther}, 44: {family: familyOther}, 64: {family: familyOther}, 65: {family: familyOther},
	68: {family: familyOther}, 78: {family: familyOther}, 81: {family: familyOther},
}

var beside = regexp.MustCompile(`[^a-z0-9.]+`)

// guestOf evaluates VMware's identifier first, then VirtualBox's, the description, and the number, because the first ones are more specific. A description is free
// text: it does not override the family that the number has.
func guestOf(os ovf.OperatingSystem) guest {
	g := guest{source: "unknown", family: familyOther}
	byNumber, numbered := cim[os.ID]
	for i, text := range []string{os.VMware, os.VirtualBox, os.Description} {
		if text == "" {
			continue
		}
		if g.source == "unknown" {
			g.source = text
		}
		lower := strings.ToLower(text)
		if strings.HasPrefix(lower, "arm") || strings.HasSuffix(lower, "_arm64") {
			g.architecture = "arm64"
			lower = strings.TrimPrefix(lower, "arm-")
		}
		if rule, found := find(beside.ReplaceAllString(lower, "")); found && (i < 2 || !numbered || rule.family == byNumber.family) {
			g.source, g.family, g.preference = text, rule.family, rule.preference
			if i == 2 && g.preference == "" && numbered {
				// The description names a family only, and the number a release.
				g.preference = byNumber.preference
			}
			return g
		}
	}
	if numbered {
		g.family, g.preference = byNumber.family, byNumber.preference
		if g.source == "unknown" {
			g.source = "number " + strconv.Itoa(os.ID)
		}
	}
	return g
}

func find(text string) (rule, bool) {
	for _, rule := range rules {
		if rule.pattern.MatchString(text) {
			return rule, true
		}
	}
	return rule{}, false
}

// systems are the operating systems that exports declare, by the beginning of the preference.
var systems = []struct {
	preference string
	os         ovf.OperatingSystem
}{
	{"windows.2k25", ovf.OperatingSystem{ID: 1, VMware: "windows2022srvNext_64Guest", Description: "Microsoft Windows Server 2025 (64-bit)"}},
	{"windows.2k22", ovf.OperatingSystem{ID: 1, VMware: "windows2019srvNext_64Guest", Description: "Microsoft Windows Server 2022 (64-bit)"}},
	{"windows.2k19", ovf.OperatingSystem{ID: 1, VMware: "windows2019srv_64Guest", Description: "Microsoft Windows Server 2019 (64-bit)"}},
	{"windows.2k16", ovf.OperatingSystem{ID: 1, VMware: "windows9Server64Guest", Description: "Microsoft Windows Server 2016 (64-bit)"}},
	{"windows.11", ovf.OperatingSystem{ID: 1, VMware: "windows11_64Guest", Description: "Microsoft Windows 11 (64-bit)"}},
	{"windows.10", ovf.OperatingSystem{ID: 1, VMware: "windows9_64Guest", Description: "Microsoft Windows 10 (64-bit)"}},
	{"rhel.10", ovf.OperatingSystem{ID: 80, VMware: "rhel10_64Guest", Description: "Red Hat Enterprise Linux 10 (64-bit)"}},
	{"rhel.9", ovf.OperatingSystem{ID: 80, VMware: "rhel9_64Guest", Description: "Red Hat Enterprise Linux 9 (64-bit)"}},
	{"rhel.8", ovf.OperatingSystem{ID: 80, VMware: "rhel8_64Guest", Description: "Red Hat Enterprise Linux 8 (64-bit)"}},
	{"rhel.7", ovf.OperatingSystem{ID: 80, VMware: "rhel7_64Guest", Description: "Red Hat Enterprise Linux 7 (64-bit)"}},
	{"centos.stream9", ovf.OperatingSystem{ID: 107, VMware: "centos9_64Guest", Description: "CentOS Stream 9 (64-bit)"}},
	{"centos.stream10", ovf.OperatingSystem{ID: 107, VMware: "centos9_64Guest", Description: "CentOS Stream 10 (64-bit)"}},
	{"ubuntu", ovf.OperatingSystem{ID: 94, VMware: "ubuntu64Guest", Description: "Ubuntu Linux (64-bit)"}},
	{"debian", ovf.OperatingSystem{ID: 96, VMware: "debian12_64Guest", Description: "Debian GNU/Linux (64-bit)"}},
	{"fedora", ovf.OperatingSystem{ID: 101, VMware: "fedora64Guest", Description: "Fedora (64-bit)"}},
	{"opensuse", ovf.OperatingSystem{ID: 83, VMware: "opensuse64Guest", Description: "openSUSE (64-bit)"}},
	{"sles", ovf.OperatingSystem{ID: 85, VMware: "sles15_64Guest", Description: "SUSE Linux Enterprise Server (64-bit)"}},
	{"oraclelinux", ovf.OperatingSystem{ID: 109, VMware: "oracleLinux9_64Guest", Description: "Oracle Linux (64-bit)"}},
	{"", ovf.OperatingSystem{ID: 102, VMware: "otherGuest64", Description: "Other (64-bit)"}},
}

func systemOf(preference string) ovf.OperatingSystem {
	for _, s := range systems {
		if strings.HasPrefix(preference, s.preference) {
			return s.os
		}
	}
	return ovf.OperatingSystem{}
}
