package debian

import (
	_ "embed" // the lock files
)

// Set is a selection of packages, and the lock file that has their versions.
type Set struct {
	// File is the name of the lock file in the folder of this package.
	File string
	// Architecture of the packages, as Debian and Go name it.
	Architecture string

	text         []byte
	distribution string
	// archives are archives and their suites.
	archives []string
	// wanted are packages, which come with their dependencies unless only is set, leftOut those dependencies that are left out.
	wanted, leftOut []string
	only            bool
}

// Lock returns the lock file.
func (s Set) Lock() (*Lock, error) { return Parse(s.text) }

var (
	//go:embed defaulter-amd64.lock
	defaulterLock []byte
	//go:embed defaulter-arm64.lock
	defaulterLockARM64 []byte
	//go:embed toolchain.lock
	toolchainLock []byte
)

// Defaulters are the packages that stencil-defaulter uses, for each architecture on which it runs: libvirt's QEMU driver, and QEMU for x86, the
// architecture of the VMs.
var Defaulters = []Set{defaulter("amd64", defaulterLock), defaulter("arm64", defaulterLockARM64)}

func defaulter(architecture string, lock []byte) Set {
	s := defaulterPackages
	s.File, s.Architecture, s.text = "defaulter-"+architecture+".lock", architecture, lock
	return s
}

var defaulterPackages = Set{
	distribution: "debian-12",
	archives:     []string{"debian bookworm", "debian bookworm-updates", "debian-security bookworm-security"},
	wanted:       []string{"libvirt0", "libvirt-daemon-driver-qemu", "qemu-system-x86"},
	// Dependencies that neither libvirt nor QEMU open in the image.
	leftOut: []string{
		// For scripts of installation and for logins.
		"adduser", "debconf", "libcap2-bin", "libdb5.3", "libpam-modules", "libpam-modules-bin", "libpam0g", "libsasl2-modules-db", "libsemanage-common",
		"libsemanage2", "libsepol2", "passwd",
		// Names of languages, for programs with windows.
		"iso-codes",
		// Firmware of guests, which are never started.
		"ipxe-qemu", "seabios",
	},
}

// Toolchain are the compilers for amd64 and arm64 that run on amd64, their libraries, and the C libraries to link with. Those of Debian 11 have glibc
// 2.31, and what is linked with it runs with newer ones. That release is complete: its mirror and its archive have the same packages.
var Toolchain = Set{
	File: "toolchain.lock", Architecture: "amd64", text: toolchainLock, distribution: "debian-11",
	archives: []string{"debian bullseye"},
	only:     true,
	wanted: []string{
		"binutils", "binutils-common", "binutils-aarch64-linux-gnu", "binutils-x86-64-linux-gnu", "cpp-10", "cpp-10-aarch64-linux-gnu", "gcc-10", "gcc-10-aarch64-linux-gnu",
		"libbinutils", "libctf-nobfd0", "libctf0", "libgmp10", "libisl23", "libmpc3", "libmpfr6", "libzstd1", "zlib1g",
		"libc6", "libc6-dev", "libgcc-10-dev", "libgcc-s1", "linux-libc-dev",
		"libc6-arm64-cross", "libc6-dev-arm64-cross", "libgcc-10-dev-arm64-cross", "libgcc-s1-arm64-cross", "linux-libc-dev-arm64-cross",
		// Runs programs for arm64 in a test.
		"qemu-user-static",
	},
}
