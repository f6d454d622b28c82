package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// The environment variables that images set.
const (
	kubevirtVariable = "STENCIL_KUBEVIRT"
	pinVariable      = "STENCIL_PIN_MACHINE_TYPES"
)

// options are the settings of the process.
type options struct {
	version  bool
	socket   string
	root     string
	user     int
	watchdog time.Duration
	queue    int
	kubevirt string
	pin      bool
}

func parse(arguments []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("stencil-defaulter", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.version, "version", false, "Print the version and exit.")
	flags.StringVar(&o.socket, "socket", "/run/stencil/defaulter.sock", "Unix socket to serve on, mode 0660.")
	flags.StringVar(&o.root, "root", "/var/lib/stencil-defaulter", "Folder of libvirt's state, best in memory. Everything in it but the cache is removed when a worker starts.")
	flags.IntVar(&o.user, "user", 65532, "User and group that the worker becomes when the process was started as root.")
	flags.DurationVar(&o.watchdog, "watchdog", 5*time.Second, "Timeout of libvirt for one VM, after which its process is killed.")
	flags.IntVar(&o.queue, "queue", 64, "Maximum number of VMs that libvirt processes or that wait for it; more are rejected with 429.")
	flags.StringVar(&o.kubevirt, "kubevirt", os.Getenv(kubevirtVariable), "Version of KubeVirt whose virt-launcher has the libvirt and QEMU of this process; "+kubevirtVariable+" by default, which the image sets. Where the cluster runs another minor version, machine types are not pinned. If empty, they are taken for those of the cluster.")
	flags.BoolVar(&o.pin, "pin-machine-types", os.Getenv(pinVariable) != "false", "Pin machine types where a request has that policy. If false, such requests are rejected: the nodes may not have the machine types of this QEMU. True by default, unless "+pinVariable+" is false, as in the image with Debian's QEMU.")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("there is no argument %q", flags.Arg(0))
	case o.socket == "" || o.root == "":
		return o, errors.New("--socket and --root must not be empty")
	case o.watchdog <= 0 || o.queue <= 0:
		return o, errors.New("--watchdog and --queue must be positive")
	}
	return o, nil
}
