// Command node runs a node of a cluster in new namespaces. Package cluster starts it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/vmstencil/stencil/test/cluster/node"
)

func main() {
	folder := flag.String("folder", "", "`folder` with the configuration of the node")
	first := flag.Bool("init", false, "be process 1 of the namespaces, and start the node as another process")
	flag.Parse()
	if err := run(*folder, *first); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func run(folder string, first bool) error {
	if first {
		return node.Init("/proc/self/exe", "-folder="+folder)
	}
	config, err := node.Read(folder)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return node.Run(ctx, config)
}
