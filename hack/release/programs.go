package main

import (
	"fmt"
	"strings"
)

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// parsePlatforms parses a list such as linux/amd64,linux/arm64.
func parsePlatforms(list string) ([]platform, error) {
	var all []platform
	for text := range strings.SplitSeq(list, ",") {
		system, arch, found := strings.Cut(text, "/")
		if !found || system == "" || arch == "" || strings.Contains(arch, "/") {
			return nil, fmt.Errorf("platform %q: want OS/ARCHITECTURE, such as linux/amd64", text)
		}
		all = append(all, platform{system, arch})
	}
	return all, nil
}

// program is one of Stencil's programs.
type program struct {
	name string
	tags string
	// image is the name of its image, if that is not the name of the program.
	image string
	// module is the folder of a program that is a module of its own.
	module string
	// cgo is set if it is linked with the C library of its image, which has Debian's packages, or is on virt-launcher's image.
	cgo, debian, launcher bool
	// added is set if checkouts exist that do not have it yet: their releases, from which upgrades start, are without it.
	added bool
	// env are the variables of its image.
	env []string
	// link is a second name of the program in its image.
	link string
	// ports are those on which it serves by default.
	ports []int
	// authorities is set if its image has the certificate authorities of the internet.
	authorities bool
	description string
}

// repository returns the name of the image of a program.
func (p program) repository() string {
	if p.image != "" {
		return p.image
	}
	return p.name
}

// optional reports whether there are releases without its image.
func (p program) optional() bool { return p.added || p.debian || p.launcher }

// folder returns the folder in the checkout in which the program is built, and its package there.
func (p program) folder() (folder, pkg string) {
	if p.module != "" {
		return p.module, "."
	}
	return ".", "./cmd/" + p.name
}

// client is the program that users run.
const client = "stencilctl"

var programs = []program{
	{
		name: "stencil-manager",
		// A page of gRPC that this tag omits makes the programs half as large again.
		tags: "grpcnotrace",
		// The command of KubeVirt's own template component.
		link:  "manager",
		ports: []int{9443, 8080, 8081},
		// Registries and servers of golden images.
		authorities: true,
		description: "Renders and evaluates VirtualMachines of KubeVirt from templates",
	},
	{
		name:        "stencil-apiserver",
		tags:        "grpcnotrace",
		link:        "apiserver",
		ports:       []int{8443},
		description: "Serves process and create of VM templates",
	},
	{
		name:  "stencil-mover",
		ports: []int{8443},
		added: true,
		// Registries and servers with packages.
		authorities: true,
		description: "Moves the disks of VM templates that are imported and exported",
	},
	{
		name: client,
		// API servers with a public certificate.
		authorities: true,
		description: "The command line of Stencil",
	},
}
