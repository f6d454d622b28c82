// Command server runs the controllers and the admission webhooks of CDI, as cdi-controller and cdi-apiserver do, in one process.
//
// CDI's own commands cannot run twice on one host: cdi-controller has its metrics on port 8443 and reads its keys from /var/run/cdi, and
// cdi-apiserver listens on port 8443 as well. Here the port is a flag and the keys are made in memory; every controller and every webhook is CDI's.
// What a version of CDI wires is in its cmd/cdi-controller and cmd/cdi-apiserver.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
)

// namespace is CDI's own namespace when it does not run in a Pod.
const namespace = "cdi"

type options struct {
	controllerKubeconfig, apiServerKubeconfig string
	certificate, key                          string
	port                                      uint
}

func main() {
	var given options
	flag.StringVar(&given.controllerKubeconfig, "controller-kubeconfig", "", "kubeconfig of the controllers")
	flag.StringVar(&given.apiServerKubeconfig, "apiserver-kubeconfig", "", "kubeconfig of the webhooks")
	flag.StringVar(&given.certificate, "tls-cert-file", "", "serving certificate of the webhooks")
	flag.StringVar(&given.key, "tls-key-file", "", "its key")
	flag.UintVar(&given.port, "port", 0, "port of the webhooks, on loopback")
	flag.Parse()
	log.SetLogger(klog.Background())
	if err := run(signals.SetupSignalHandler(), given); err != nil {
		fmt.Fprintln(os.Stderr, "cdi:", err)
		os.Exit(1)
	}
}

// run starts the controllers and then the webhooks, so that an answer of a webhook proves that the controllers run.
func run(ctx context.Context, given options) error {
	signing, err := signingKey(given.apiServerKubeconfig)
	if err != nil {
		return err
	}
	manager, err := newManager(ctx, given.controllerKubeconfig, signing)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() { ended <- manager.Start(ctx) }()
	go func() {
		if !manager.GetCache().WaitForCacheSync(ctx) {
			ended <- fmt.Errorf("the controllers' caches were not filled")
			return
		}
		if err := serve(ctx, given, ctx.Done()); err != nil && err != http.ErrServerClosed {
			ended <- fmt.Errorf("serving webhooks: %w", err)
		}
	}()
	return <-ended
}
