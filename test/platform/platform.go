// Package platform builds the environment of a cluster admin: a control plane, the chart installed by helm, and a stencil-manager that runs with
// exactly the permissions of the chart. End-to-end tests, benchmarks and the demo use it.
package platform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/release"
)

// Options are the components and settings of a platform.
type Options struct {
	// KubeVirt adds KubeVirt's own API server and controller, and the instance
	// types and preferences that the examples name.
	KubeVirt bool
	// ControllerManager adds kube-controller-manager, and garbage collection with it.
	ControllerManager bool
	// CDI adds CDI, with simulated storage and nodes; it needs ControllerManager. CDILater leaves it to Plane.StartCDI or
	// StartVirtualization.
	CDI, CDILater bool
	// Transfers adds imports and exports of templates. Their movers are processes of the test, which users reach through the API server after
	// packages.Offer. It needs CDI.
	Transfers bool
	// Log receives progress. Optional.
	Log io.Writer
	// APIServer adds stencil-apiserver.
	APIServer bool
	// APIServerArgs are further flags of it.
	APIServerArgs []string
	// ManagerArgs are further flags of the manager.
	ManagerArgs []string
	// Replicated starts each server behind an address that others of its kind can share: see StartReplica and Replace.
	Replicated bool
	// AuditPolicy enables Plane.AuditEvents, which returns the recorded requests to the API server.
	AuditPolicy string
	// Values are merged over the chart's.
	Values map[string]any
	// Chart is the path of the chart, a folder or a package, or its address in a registry. Default: that of this checkout.
	Chart string
	// Container returns how a program runs from its image with values of the chart. Optional; without it, programs run as processes of the test, or
	// from the images that all packages of a run share.
	Container Container
	// Folders of the host that the servers read. Servers in containers see them at the same paths.
	Folders []string
	// BeforeInstall runs on the plane before the chart is installed. Optional.
	BeforeInstall func(ctx context.Context, plane *controlplane.Plane) error
}

// Container returns how a program runs from its image with values of the chart.
type Container func(ctx context.Context, plane *controlplane.Plane, program manager.Program, values map[string]any) (*manager.Container, error)

// plane returns the options of the control plane.
func (o Options) plane() controlplane.Options {
	return controlplane.Options{
		KubeVirt: o.KubeVirt, ControllerManager: o.ControllerManager, CDI: o.CDI, CDILater: o.CDILater,
		VirtualizationCRDs: true, AuditPolicy: o.AuditPolicy, Log: o.Log, Services: o.Transfers,
	}
}

// Tools returns the names of the tools that Start needs, for a caller that builds them before.
func (o Options) Tools() []string {
	return append(o.plane().Tools(), "kubectls", "helm")
}

// Platform is a running cluster with Stencil.
type Platform struct {
	Plane   *controlplane.Plane
	Manager *manager.Process
	// APIServer is stencil-apiserver; nil when there is none.
	APIServer *manager.Process

	ctx      context.Context
	options  Options
	install  install.Options
	process  manager.Options
	service  *manager.Service
	replicas []*manager.Process
	// apiServers is the service of stencil-apiserver, as service is that of the manager.
	apiServers *manager.Service
	// logs are open files, closed after the processes that write them.
	logs []*os.File
	// released is the release that all packages of the run share; nil if servers are processes of the test.
	released *release.Release
	// sharedAPIServerURL is where stencil-apiserver of a platform is that another process started.
	sharedAPIServerURL string
}

// Start starts everything; what it started is stopped again when it fails.
func Start(ctx context.Context, options Options) (*Platform, error) {
	settings := options.plane()
	if options.Transfers {
		mover, err := product.Binary(ctx, "stencil-mover")
		if err != nil {
			return nil, err
		}
		settings.Processes = controlplane.Processes{Label: v1beta1.LabelTransferUID, Programs: map[string]string{"stencil-mover": mover}}
		// The servers of tests are on this machine.
		values := map[string]any{"transfers": map[string]any{
			"enabled": true, "allowedNetworks": []any{"127.0.0.0/8"}, "image": map[string]any{"tag": "test"},
		}}
		gen.Merge(values, options.Values)
		options.Values = values
	}
	plane, err := controlplane.Start(ctx, settings)
	if err != nil {
		return nil, err
	}
	p := &Platform{Plane: plane, ctx: ctx, options: options}
	if err = p.useSharedRelease(); err == nil {
		err = p.start()
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Platform) start() error {
	address, err := p.shared(&p.service)
	if err != nil {
		return err
	}
	if p.options.BeforeInstall != nil {
		if err := p.options.BeforeInstall(p.ctx, p.Plane); err != nil {
			return err
		}
	}
	p.say("installing the chart with helm")
	p.install = install.Options{ManagerURL: "https://" + address, Values: p.options.Values, Chart: p.options.Chart}
	if p.options.APIServer {
		if p.install.APIServerAddress, err = p.apiServerAddress(); err != nil {
			return err
		}
	}
	if err := install.Chart(p.ctx, p.Plane, p.install); err != nil {
		return err
	}
	if err := install.AwaitDefinitions(p.ctx, p.Plane); err != nil {
		return err
	}
	if p.process, err = p.install.Manager(p.Plane); err != nil {
		return err
	}
	if p.process.Container, err = p.container(manager.StencilManager); err != nil {
		return err
	}
	if p.process.Container != nil {
		p.process.Args = p.install.OutsideArgs()
	}
	p.process.Args = append(p.process.Args, p.options.ManagerArgs...)
	if p.service == nil {
		p.process.WebhookAddress = address
	}
	p.say("building and starting stencil-manager")
	if err := p.StartManager(); err != nil {
		return err
	}
	if p.released != nil && !strings.Contains(p.Manager.Logs(), p.released.Version) {
		return fmt.Errorf("the manager is not that of release %s:\n%s", p.released.Version, p.Manager.Logs())
	}
	if err := p.awaitWebhooks(); err != nil {
		return err
	}
	if err := install.AwaitPolicies(p.ctx, p.Plane); err != nil {
		return err
	}
	if err := install.AwaitAddedWebhooks(p.ctx, p.Plane); err != nil {
		return err
	}
	if err := install.AwaitBindings(p.ctx, p.Plane); err != nil {
		return err
	}
	if p.options.KubeVirt {
		if err := install.AwaitExempt(p.ctx, p.Plane, controlplane.VirtController); err != nil {
			return fmt.Errorf("%w\n%s", err, p.Manager.Logs())
		}
	}
	if p.options.APIServer {
		return p.StartAPIServer()
	}
	return nil
}

// apiServerAddress returns where stencil-apiserver will be.
func (p *Platform) apiServerAddress() (string, error) {
	free, err := p.shared(&p.apiServers)
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(free)
	// The API server follows an ExternalName Service only to a name.
	return net.JoinHostPort("localhost", port), err
}

// VirtualizationTools returns the names of the tools that StartVirtualization needs.
func VirtualizationTools() []string {
	return controlplane.Options{KubeVirt: true, ControllerManager: true, CDI: true}.Tools()
}

// StartVirtualization adds kube-controller-manager, CDI and KubeVirt, with its instance types and preferences, to a platform that was started with
// CDILater and without the others. Stencil continues to run.
func (p *Platform) StartVirtualization(ctx context.Context) error {
	for _, start := range []func(context.Context) error{
		p.Plane.StartControllerManager,
		p.Plane.StartCDI,
		// Before virt-controller, which reads them for each stored VirtualMachine.
		p.Plane.InstallCatalogue,
		p.Plane.StartKubeVirt,
	} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	return install.AwaitExempt(ctx, p.Plane, controlplane.VirtController)
}

// shared returns the address at which the API server reaches the servers of a service, which it starts if they are replicated.
func (p *Platform) shared(service **manager.Service) (string, error) {
	if !p.options.Replicated {
		return manager.FreeAddress()
	}
	var err error
	if *service, err = manager.NewService(p.ctx); err != nil {
		return "", err
	}
	return (*service).Address(), nil
}

// StartAPIServer starts stencil-apiserver with these flags beside its own, at the address that the chart was given, and waits until the API server
// reaches it.
func (p *Platform) StartAPIServer(more ...string) error {
	p.say("building and starting stencil-apiserver")
	user, err := p.install.APIServerUser(p.Plane)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(p.install.APIServerAddress)
	if err != nil {
		return err
	}
	container, err := p.container(manager.StencilAPIServer)
	if err != nil {
		return err
	}
	options := manager.Options{
		Program:    manager.StencilAPIServer,
		Container:  container,
		Kubeconfig: user.Kubeconfig,
		Namespace:  install.Namespace,
		Args:       slices.Concat(p.options.APIServerArgs, more),
	}
	if container == nil {
		options.Args = slices.Concat(p.install.APIServerArgs(), options.Args)
	}
	if p.apiServers == nil {
		options.WebhookAddress = net.JoinHostPort("127.0.0.1", port)
	}
	if p.APIServer, err = manager.Start(p.ctx, options); err != nil {
		return err
	}
	if p.apiServers != nil {
		p.apiServers.Add(p.ctx, p.APIServer)
	}
	return p.awaitAPIServices()
}

// Replace replaces the servers by those that container returns, as a Deployment does: new ones are ready before old ones stop.
// Options.Replicated is needed.
func (p *Platform) Replace(container Container) error {
	if p.service == nil {
		return errNotReplicated
	}
	p.options.Container = container
	var err error
	if p.process.Container, err = p.container(manager.StencilManager); err != nil {
		return err
	}
	before, apiServer := p.Manager, p.APIServer
	if err := p.StartManager(); err != nil {
		return err
	}
	if err := before.Stop(); err != nil {
		return err
	}
	if apiServer == nil {
		return nil
	}
	if err := p.StartAPIServer(); err != nil {
		return err
	}
	return apiServer.Stop()
}

var errNotReplicated = errors.New("the platform was not started with Options.Replicated")

// container returns how a program runs; nil if not from an image.
func (p *Platform) container(program manager.Program) (*manager.Container, error) {
	if p.options.Container == nil {
		return nil, nil
	}
	contained, err := p.options.Container(p.ctx, p.Plane, program, p.options.Values)
	if err != nil {
		return nil, err
	}
	withFolders := *contained
	withFolders.Volumes = maps.Clone(contained.Volumes)
	for _, folder := range p.options.Folders {
		withFolders.Volumes[folder] = folder
	}
	return &withFolders, nil
}

// StartManager starts the manager, at the address that the chart was given.
func (p *Platform) StartManager() (err error) {
	p.Manager, err = p.launch()
	return err
}

// RestartManager stops the manager, and starts it with these flags beside its own.
func (p *Platform) RestartManager(more ...string) error {
	if err := p.StopManager(); err != nil {
		return err
	}
	var err error
	p.Manager, err = p.launch(more...)
	return err
}

// StartReplica starts one more manager with these flags, at the address that all of them share; Options.Replicated is needed. Stop ends
// it, unless the caller has done so.
func (p *Platform) StartReplica(more ...string) (*manager.Process, error) {
	if p.service == nil {
		return nil, errNotReplicated
	}
	started, err := p.launch(more...)
	if err == nil {
		p.replicas = append(p.replicas, started)
	}
	return started, err
}

// launch starts a manager.
func (p *Platform) launch(more ...string) (*manager.Process, error) {
	given := p.process
	given.Args = append(append([]string(nil), given.Args...), more...)
	file, err := p.logFile()
	if err != nil {
		return nil, err
	}
	p.logs = append(p.logs, file)
	given.Log = file
	started, err := manager.Start(p.ctx, given)
	if err == nil && p.service != nil {
		p.service.Add(p.ctx, started)
	}
	return started, err
}

// StopManager stops the manager as a node would, with SIGTERM.
func (p *Platform) StopManager() error { return p.Manager.Stop() }

// Stop stops everything and removes all files.
func (p *Platform) Stop() error {
	var err error
	if p.APIServer != nil {
		err = p.APIServer.Stop()
	}
	if p.Manager != nil {
		err = errors.Join(err, p.Manager.Stop())
	}
	for _, each := range p.replicas {
		err = errors.Join(err, each.Stop())
	}
	for _, service := range []*manager.Service{p.service, p.apiServers} {
		if service != nil {
			service.Close()
		}
	}
	for _, file := range p.logs {
		err = errors.Join(err, file.Close())
	}
	if p.released != nil {
		err = errors.Join(err, os.RemoveAll(p.released.Folder))
	}
	return errors.Join(err, p.Plane.Stop())
}

// useSharedRelease installs and runs the release that all packages of the run share, if there is one and the options have no other.
func (p *Platform) useSharedRelease() (err error) {
	if p.options.Container != nil || p.options.Chart != "" {
		return nil
	}
	if p.released, err = release.Shared(); err == nil && p.released != nil {
		p.options.Chart, p.options.Container = p.released.ChartAddress, p.released.Container
	}
	return err
}

// Options are those with which the chart was installed.
func (p *Platform) Options() install.Options { return p.install }

// Example is the path of a file under docs/examples.
func (p *Platform) Example(path string) string {
	chart, err := install.ChartFolder()
	if err != nil {
		return path
	}
	return filepath.Join(chart, "..", "..", "docs", "examples", path)
}

func (p *Platform) say(what string) {
	if p.options.Log != nil {
		fmt.Fprintf(p.options.Log, "platform: %s\n", what)
	}
}
