// Command controlplane starts a control plane, prints how to reach it, and runs it until it is interrupted:
//
//	cd test && go run ./controlplane/cmd/controlplane -kubevirt
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/vmstencil/stencil/test/controlplane"
)

func main() {
	var options controlplane.Options
	flag.BoolVar(&options.KubeVirt, "kubevirt", false, "run KubeVirt's virt-api and virt-controller, and install its CRDs and CDI's")
	flag.BoolVar(&options.ControllerManager, "controller-manager", false, "run kube-controller-manager")
	flag.BoolVar(&options.CDI, "cdi", false, "run CDI with a CSI driver that is played; needs -controller-manager")
	flag.StringVar(&options.Dir, "dir", "", "keep data, certificates and logs in this empty folder (default a temporary one)")
	flag.BoolVar(&options.VirtualizationCRDs, "crds", false, "install the CRDs of KubeVirt and CDI without running KubeVirt")
	flag.Parse()
	if err := run(options); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(options controlplane.Options) (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	plane, err := controlplane.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	fmt.Printf("export KUBECONFIG=%s\n", plane.Kubeconfig())
	fmt.Fprintf(os.Stderr, "Logs are in %s/logs. Ctrl-C ends it.\n", plane.Dir())
	<-ctx.Done()
	return nil
}
