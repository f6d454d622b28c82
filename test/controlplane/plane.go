package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane/csi"
	"github.com/vmstencil/stencil/test/controlplane/kubelet"
	"github.com/vmstencil/stencil/test/controlplane/services"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/product"
)

// Options are the components of a plane. The zero value is an API server with its etcd.
type Options struct {
	// KubeVirt adds KubeVirt: its and CDI's CRDs, its instance types and preferences, virt-api with its webhooks and aggregated API, and virt-controller.
	KubeVirt bool

	// VirtualizationCRDs adds the CRDs of KubeVirt and CDI without either of them, as InstallVirtualizationCRDs does on a running plane. KubeVirt implies it.
	VirtualizationCRDs bool

	// ControllerManager adds kube-controller-manager: service accounts, garbage collection, namespace deletion, ReplicaSets, and
	// the aggregation that gives the ClusterRoles admin, edit and view their rules.
	ControllerManager bool

	// CDI adds CDI and what it needs: its CRDs and those of volume snapshots, its controllers and webhooks, a CSI driver with storage
	// and snapshot classes (Plane.CSI), and a node for its worker pods (Plane.Nodes). It needs ControllerManager, which binds volumes.
	CDI bool

	// Processes are the pods of the node that run as processes of this machine. They need CDI or StartCDI. Plane.Nodes().RunProcesses adds
	// such pods to a running plane.
	Processes Processes

	// CDILater leaves CDI's CRDs out of InstallVirtualizationCRDs: the cluster does not have CDI until Plane.StartCDI adds it.
	CDILater bool

	// Services makes the API server reach the cluster addresses of Services, by Plane.Network. Otherwise no traffic is routed to them.
	Services bool

	// Log receives the progress of a start, os.Stderr when nil. What the processes log goes to files (see Plane.Dir).
	Log io.Writer

	// Dir is where the plane stores its data, certificates and logs. When empty, a temporary folder is made and Stop removes it. A folder named here
	// is created if need be, must be empty, and stays after Stop.
	Dir string

	// AuditPolicy is an audit.k8s.io/v1 Policy in YAML. When given, Plane.AuditEvents returns what was recorded.
	AuditPolicy string

	// APIServerArgs are appended to kube-apiserver's command line.
	APIServerArgs []string

	// Address is the address of this machine at which pods reach the API server, for real nodes. It listens on all addresses then, and on loopback only
	// otherwise.
	Address string

	// ports replaces freePorts in tests of this package.
	ports portChooser
}

// Processes selects pods that run as processes of this machine; see kubelet.Nodes.RunProcesses for what they get. The zero value is none.
type Processes struct {
	// Label is on the pods, with any value.
	Label string
	// Programs are the paths of programs by their name: see kubelet.Programs.
	Programs map[string]string
}

// Plane is a running control plane.
type Plane struct {
	options Options
	folder  *folder
	log     io.Writer
	ports   portChooser

	// clients signs client certificates, servers the serving certificates of everything the plane runs.
	clients, servers *authority
	host             string
	admin            *User

	csi     *csi.Driver
	nodes   *kubelet.Nodes
	network *services.Network
	// controllers is kube-controller-manager; nil when there is none.
	controllers *process

	mutex      sync.Mutex
	components map[component]bool
	processes  []*process
	stopped    bool
	// tools are the paths of the tools of the components.
	tools    map[string]string
	kubectls kubectls
}

// startLimit bounds each wait of a start. An overloaded host stretches it, see package deadline.
const startLimit = 2 * time.Minute

// Start builds what is missing, starts a plane and returns when it answers. The context bounds the start, not the plane's
// life, which ends with Stop.
func Start(ctx context.Context, options Options) (*Plane, error) {
	if options.Log == nil {
		options.Log = os.Stderr
	}
	if testing.Testing() {
		// The programs on a plane, and the chart, come from outside the module of the test.
		if _, err := product.Digest(); err != nil {
			return nil, err
		}
	}
	options.VirtualizationCRDs = options.VirtualizationCRDs || options.KubeVirt
	if options.CDI && !options.ControllerManager {
		return nil, errors.New("Options.CDI needs Options.ControllerManager: nothing else binds volumes to claims")
	}
	tools, err := Tools(ctx, options.Tools()...)
	if err != nil {
		return nil, err
	}
	folder, err := openFolder(options.Dir)
	if err != nil {
		return nil, err
	}
	plane := &Plane{options: options, folder: folder, log: options.Log, ports: options.ports, tools: tools, components: map[component]bool{
		controllerManager: options.ControllerManager, kubeVirt: options.KubeVirt, cdi: options.CDI,
	}}
	if plane.ports == nil {
		plane.ports = freePorts
	}
	began := time.Now()
	if err := plane.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a control plane: %w", err), plane.Stop())
	}
	plane.progress("control plane at %s ready in %.1f s", plane.host, time.Since(began).Seconds())
	return plane, nil
}

func (p *Plane) start(ctx context.Context) error {
	ctx, cancel := deadline.WithTimeout(ctx, "the control plane is ready", startLimit)
	defer cancel()
	prepared, err := p.begin(ctx)
	if err != nil {
		return err
	}
	if err := p.startEtcd(ctx, p.tools["etcd"]); err != nil {
		return err
	}
	if err := p.startAPIServer(ctx, p.tools["kube-apiserver"]); err != nil {
		return err
	}
	install := p.prepare
	if prepared {
		install = p.awaitPrepared
	}
	if err := install(ctx); err != nil {
		return err
	}
	if p.options.ControllerManager {
		if err := p.startControllerManager(); err != nil {
			return err
		}
	}
	if p.options.KubeVirt {
		if err := p.startKubeVirt(ctx); err != nil {
			return err
		}
	}
	if err := p.awaitControllers(ctx); err != nil {
		return err
	}
	if p.options.CDI {
		return p.startCDI(ctx)
	}
	return nil
}

// Stop ends every process of the plane, waits for them, and removes the plane's folder unless Options.Dir named it. It may be
// called more than once.
func (p *Plane) Stop() error {
	p.kubectls.stop()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.stopped {
		return nil
	}
	p.stopped = true
	if p.csi != nil {
		p.csi.Stop()
	}
	if p.nodes != nil {
		p.nodes.Stop()
	}
	// Processes end in reverse order, so that no component logs that the API server it depends on is unavailable.
	for i := len(p.processes) - 1; i >= 0; i-- {
		p.processes[i].kill()
	}
	if p.network != nil {
		p.network.Stop()
	}
	return p.folder.close()
}

// Dir is the plane's folder. Each process NAME logs to logs/NAME.log in it.
func (p *Plane) Dir() string { return p.folder.path }

// AdminConfig returns a new client configuration for a member of system:masters, without client-side rate limits.
func (p *Plane) AdminConfig() *rest.Config { return p.admin.Config() }

// Kubeconfig is the path of a kubeconfig file for the same administrator.
func (p *Plane) Kubeconfig() string { return p.admin.Kubeconfig }

// Admin is the user behind AdminConfig and Kubeconfig.
func (p *Plane) Admin() *User { return p.admin }

// tool returns the path of one tool.
func (p *Plane) tool(ctx context.Context, name string) (string, error) {
	p.mutex.Lock()
	path, known := p.tools[name]
	p.mutex.Unlock()
	if known {
		return path, nil
	}
	found, err := Tools(ctx, name)
	return found[name], err
}

// add adds the paths of the tools of a component.
func (p *Plane) add(tools map[string]string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	maps.Copy(p.tools, tools)
}

func (p *Plane) progress(format string, arguments ...any) {
	fmt.Fprintf(p.log, format+"\n", arguments...)
}
