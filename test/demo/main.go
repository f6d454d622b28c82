// Command demo shows what Stencil does on a real control plane on this host: it starts one, installs the chart, runs stencil-manager, applies the
// examples and creates VirtualMachines as their owners would. `make demo` runs it.
//
// It builds only what it needs to create a VirtualMachine from a template. The other tools are built meanwhile: kube-controller-manager, KubeVirt and
// CDI join the control plane when they are ready.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/defaulter"
	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/platform"
)

func main() {
	once := flag.Bool("once", false, "end after printing instead of running until Ctrl-C")
	tourist := flag.Bool("tour", false, "wait for Enter before each chapter but the first")
	chapter := flag.String("chapter", "", "show one `chapter` only, and do those before it without output:\n"+contents())
	started := flag.Int64("started", time.Now().Unix(), "Unix time in `seconds` from which the demo counts")
	flag.Parse()
	shown := guide{screen: os.Stdout, only: *chapter}
	if *tourist {
		shown.keys = bufio.NewScanner(os.Stdin)
	}
	if err := run(shown, *once, time.Unix(*started, 0)); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(shown guide, once bool, start time.Time) error {
	if err := shown.check(); err != nil {
		return err
	}
	out := shown.screen
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	registry := images.Start()
	defer registry.Close()
	server := newShelf()
	defer server.Close()
	options := platform.Options{
		CDILater: true, APIServer: true, Transfers: true, Log: os.Stderr,
		Values: map[string]any{
			"goldenImages": map[string]any{"namespaces": []any{"*"}, "allowedNetworks": []any{"127.0.0.0/8"}},
			"revisions":    map[string]any{"write": true},
		},
	}
	if _, err := controlplane.Tools(ctx, options.Tools()...); err != nil {
		return unless(ctx, err)
	}
	var further []string
	if shown.reaches(virtualization) {
		further = platform.VirtualizationTools()
	}
	later, err := controlplane.StartToolBuild(ctx, further...)
	if err != nil {
		return err
	}
	defer later.Stop()
	return onPlatform(ctx, shown, options, func(stencil *platform.Platform, sidecar *defaulter.Defaulter) error {
		fmt.Fprintf(out, "\nThe control plane, stencil-manager and stencil-apiserver run, %.0f s after the start.\n", time.Since(start).Seconds())
		tour := &tour{stencil: stencil, out: out, guide: shown, start: start, defaulter: sidecar, images: registry, shelf: server}
		if err := tour.run(ctx, later); err != nil && !errors.Is(err, errShown) {
			return unless(ctx, err)
		}
		if once {
			return nil
		}
		fmt.Fprintf(out, "\nIt keeps running until Ctrl-C. In another terminal:\n\n%s\n", access(stencil))
		fmt.Fprintf(out, "As ada, who owns VMs in team-a:\n\n  export KUBECONFIG=%s\n  kubectl create --namespace=team-a -f docs/examples/machines/runner.yaml\n\n", tour.ada.Kubeconfig)
		fmt.Fprintf(out, "As olga, who has no rights yet; docs/tutorials gives her a namespace for templates:\n\n  export KUBECONFIG=%s\n\n", tour.olga.Kubeconfig)
		<-ctx.Done()
		fmt.Fprintln(out, "\nStopping.")
		return nil
	})
}

// unless returns err unless ctx has ended: an error that Ctrl-C causes is no failure of the demo.
func unless(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// onPlatform runs show on a platform, with a defaulter that is not started yet if there is a QEMU, and stops what runs.
func onPlatform(ctx context.Context, shown guide, options platform.Options, show func(*platform.Platform, *defaulter.Defaulter) error) (err error) {
	// A context of its own: Ctrl-C has to end the demo in order, not kill its processes.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	sidecar, err := newDefaulter(shown)
	if err != nil {
		return err
	}
	if sidecar != nil {
		defer func() { err = errors.Join(err, sidecar.Close()) }()
		options.ManagerArgs = []string{"--defaulting-socket=" + sidecar.Socket()}
		options.Values["defaulting"] = map[string]any{"enabled": true}
	}
	stencil, err := platform.Start(running, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stencil.Stop()) }()
	return show(stencil, sidecar)
}

// access returns the commands that give another terminal the administrator's permissions.
func access(stencil *platform.Platform) string {
	return fmt.Sprintf("  export KUBECONFIG=%s\n  alias kubectl=\"$(hack/tool kubectl)\"\n  kubectl get vmt,vm --all-namespaces\n", stencil.Plane.Kubeconfig())
}

// newDefaulter prepares the defaulter where there is a QEMU, and prints what to install where there is none: everything else is built from Go
// modules.
func newDefaulter(shown guide) (*defaulter.Defaulter, error) {
	if !shown.reaches(guestChapter) {
		return nil, nil
	}
	if qemu, _ := exec.LookPath("qemu-system-x86_64"); qemu == "" {
		fmt.Fprintf(shown.screen, "Without the part about what a guest sees: %s\n", defaulter.Install)
		return nil, nil
	}
	return defaulter.New()
}
