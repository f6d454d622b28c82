// Command demo shows what Stencil does on a real control plane on this machine:
// it starts one, installs the chart, runs stencil-manager, applies the examples
// and creates VirtualMachines as their owners would. `make demo` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/test/defaulter"
	"github.com/vmstencil/stencil/test/platform"
)

func main() {
	once := flag.Bool("once", false, "end after printing instead of running until Ctrl-C")
	flag.Parse()
	if err := run(os.Stdout, *once); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, once bool) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	start := time.Now()
	// A context of its own: Ctrl-C has to end the demo in order, not kill what
	// it runs on.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	options := platform.Options{KubeVirt: true, ControllerManager: true, CDI: true, APIServer: true, Log: os.Stderr}
	sidecar, err := startDefaulter(running, out)
	if err != nil {
		return err
	}
	if sidecar != nil {
		defer func() { err = errors.Join(err, sidecar.Close()) }()
		options.ManagerArgs = []string{"--defaulting-socket=" + sidecar.Socket()}
		options.Values = map[string]any{"defaulting": map[string]any{"enabled": true}}
	}
	stencil, err := platform.Start(running, options)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := stencil.Stop(); err == nil {
			err = stopErr
		}
	}()
	fmt.Fprintf(out, "\nThe control plane, KubeVirt's and CDI's API servers and controllers, stencil-manager and stencil-apiserver run (%.0f s).\n", time.Since(start).Seconds())

	tour := &tour{stencil: stencil, out: out, defaulted: sidecar != nil}
	if err := tour.run(ctx); err != nil {
		return err
	}
	if once {
		return nil
	}
	fmt.Fprintf(out, "\nIt keeps running until Ctrl-C. In another terminal:\n\n  export KUBECONFIG=%s\n  alias kubectl=\"$(hack/tool kubectl)\"\n  kubectl get vmt,vm --all-namespaces\n\n", stencil.Plane.Kubeconfig())
	fmt.Fprintf(out, "As ada, who owns machines in team-a:\n\n  export KUBECONFIG=%s\n  kubectl create --namespace=team-a -f docs/examples/machines/runner.yaml\n\n", tour.ada.Kubeconfig)
	<-ctx.Done()
	fmt.Fprintln(out, "\nStopping.")
	return nil
}

// startDefaulter starts the defaulter where there is a QEMU, and says what to install where there is none: everything else
// needs nothing that is not built from Go modules.
func startDefaulter(ctx context.Context, out io.Writer) (*defaulter.Defaulter, error) {
	if qemu, _ := exec.LookPath("qemu-system-x86_64"); qemu == "" {
		fmt.Fprintf(out, "Without the part about what a guest sees: %s\n", defaulter.Install)
		return nil, nil
	}
	sidecar, err := defaulter.New(ctx)
	if err != nil {
		return nil, err
	}
	if err := sidecar.Start(ctx); err != nil {
		return nil, errors.Join(err, sidecar.Close())
	}
	return sidecar, nil
}
