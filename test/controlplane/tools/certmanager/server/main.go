// Command server runs cert-manager's controllers and its CA injector, as cert-manager's commands controller and cainjector do, in one process.
//
// Those commands are Go modules that only build inside cert-manager's own checkout (each replaces cert-manager by ../.. and has a path that differs
// from its folder's), so they are wired here from cert-manager's own controllers. Left out are the issuers that need a service outside the cluster
// (ACME, Vault, CyberArk), with the cloud SDKs that they bring, CertificateSigningRequests, Ingresses and gateways, and cert-manager's own webhook,
// which no code outside that checkout may import.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
)

// namespace is where cert-manager is installed unless its installer is configured otherwise.
const namespace = "cert-manager"

type options struct{ controllerKubeconfig, injectorKubeconfig string }

func main() {
	var given options
	flag.StringVar(&given.controllerKubeconfig, "controller-kubeconfig", "", "kubeconfig of the controllers")
	flag.StringVar(&given.injectorKubeconfig, "cainjector-kubeconfig", "", "kubeconfig of the CA injector")
	flag.Parse()
	log.SetLogger(klog.Background())
	if err := run(signals.SetupSignalHandler(), given); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, given options) error {
	injector, err := newInjector(ctx, given.injectorKubeconfig)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return injector.Start(ctx) })
	if err := startControllers(ctx, group, given.controllerKubeconfig); err != nil {
		return err
	}
	return group.Wait()
}
