// Command demo shows what Stencil does on a real control plane on this machine:
// it starts one, installs the chart, runs stencil-manager, applies the examples
// and creates VirtualMachines as their owners would. `make demo` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

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
	stencil, err := platform.Start(running, platform.Options{KubeVirt: true, Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := stencil.Stop(); err == nil {
			err = stopErr
		}
	}()
	fmt.Fprintf(out, "\nThe control plane, KubeVirt's API server and controller, and stencil-manager run (%.0f s).\n", time.Since(start).Seconds())

	tour := &tour{stencil: stencil, out: out}
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
