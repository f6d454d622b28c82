// Command cluster runs a real cluster with KubeVirt and Stencil on this host until Ctrl-C. `make cluster` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/test/cluster"
)

func main() {
	demo := flag.Bool("demo", false, "show the way of a user from a template to the login of a guest")
	once := flag.Bool("once", false, "end after printing instead of running until Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *demo, *once)
	interrupted := ctx.Err() != nil
	stop()
	if err != nil && !interrupted {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, demo, once bool) (err error) {
	began := time.Now()
	c, err := cluster.Start(ctx, os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	fmt.Fprintf(os.Stderr, "cluster: the node is ready after %.0f s\n", time.Since(began).Seconds())
	if demo {
		err = c.Demo(ctx, os.Stdout)
	} else {
		err = c.Install(ctx)
	}
	if err != nil || once {
		return err
	}
	fmt.Printf("\nThe cluster is ready after %.0f s, and runs until Ctrl-C. In another terminal:\n\n  export KUBECONFIG=%s\n  alias kubectl=\"$(hack/tool kubectl)\"\n",
		time.Since(began).Seconds(), c.Plane.Kubeconfig())
	<-ctx.Done()
	return nil
}
