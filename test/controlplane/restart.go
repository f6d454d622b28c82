package controlplane

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/deadline"
)

// RestartAPIServer is StopAPIServer and StartAPIServer.
func (p *Plane) RestartAPIServer(ctx context.Context) error {
	if err := p.StopAPIServer(); err != nil {
		return err
	}
	return p.StartAPIServer(ctx)
}

// StopAPIServer kills kube-apiserver, as the failure of its node would. Until StartAPIServer, connections to the plane's address are rejected.
func (p *Plane) StopAPIServer() error { return p.halt(apiServerProcess) }

// StartAPIServer starts kube-apiserver again, at the same address and with the same data and certificates, and returns when it is ready.
func (p *Plane) StartAPIServer(ctx context.Context) error {
	ctx, cancel := deadline.WithTimeout(ctx, "the API server is ready again", startLimit)
	defer cancel()
	started, err := p.resume(apiServerProcess)
	if err != nil {
		return err
	}
	return p.awaitAPIServer(ctx, started)
}

// RestartEtcd is StopEtcd and StartEtcd.
func (p *Plane) RestartEtcd(ctx context.Context) error {
	if err := p.StopEtcd(); err != nil {
		return err
	}
	return p.StartEtcd(ctx)
}

// StopEtcd kills etcd. Until StartEtcd the API server runs, and can neither read nor write what is stored. No data is lost: what etcd
// has not flushed is in the page cache, which outlives the process.
func (p *Plane) StopEtcd() error {
	if err := p.halt(etcdProcess); err != nil {
		return err
	}
	// A killed process leaves its sockets behind, and awaitEtcd treats a socket as an etcd that listens.
	for _, socket := range []string{etcdSocket, etcdPeerSocket} {
		if err := os.Remove(p.folder.file(socket)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("removing a socket of etcd: %w", err)
		}
	}
	return nil
}

// StartEtcd starts etcd again with the same data, and returns when it answers and the API server, which has to be running, reads
// through it.
func (p *Plane) StartEtcd(ctx context.Context) error {
	ctx, cancel := deadline.WithTimeout(ctx, "etcd answers again", startLimit)
	defer cancel()
	started, err := p.resume(etcdProcess)
	if err != nil {
		return err
	}
	if err := p.awaitEtcd(ctx, started); err != nil {
		return err
	}
	apiServer, err := p.process(apiServerProcess)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	return apiServer.await(ctx, func(ctx context.Context) error {
		// The API server retains the result of its health check of etcd for a while. Etcd itself has to answer the first request, and
		// the cache, which follows etcd by watches, has to be current for the second.
		if _, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("reading a namespace: %w", err)
		}
		if _, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("listing namespaces: %w", err)
		}
		return client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// process returns the process of this name that was started last.
func (p *Plane) process(name string) (*process, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	i := slices.IndexFunc(p.processes, func(each *process) bool { return each.name == name })
	if i < 0 || p.stopped {
		return nil, fmt.Errorf("this process runs no %s of the plane; a test that stops parts of a plane needs one of its own", name)
	}
	return p.processes[i], nil
}

// halt kills a process and waits until it has ended. Its place among the processes stays, for resume.
func (p *Plane) halt(name string) error {
	running, err := p.process(name)
	if err != nil {
		return err
	}
	running.kill()
	return nil
}

// resume starts a process that halt has killed with the same arguments and environment. The new one takes the place of the former: Stop ends processes
// in the reverse order of their first start.
func (p *Plane) resume(name string) (*process, error) {
	former, err := p.process(name)
	if err != nil {
		return nil, err
	}
	select {
	case <-former.ended:
	default:
		return nil, fmt.Errorf("%s is running", name)
	}
	started, err := p.startProcessWith(former.command.Env, name, former.command.Path, former.command.Args[1:]...)
	if err != nil {
		return nil, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.processes = slices.DeleteFunc(p.processes, func(each *process) bool { return each == started })
	if i := slices.Index(p.processes, former); i >= 0 {
		p.processes[i] = started
	}
	return started, nil
}

// startAgain starts a process again each time it ends, as a kubelet would, until the plane is stopped. The log of the one that ended is
// kept as logs/NAME.previous.log.
func (p *Plane) startAgain(running *process) {
	for {
		<-running.ended
		// The port may be taken for a moment. The error of a rename shows as a missing log.
		time.Sleep(time.Second)
		_ = os.Rename(running.logPath, strings.TrimSuffix(running.logPath, ".log")+".previous.log")
		started, err := p.resume(running.name)
		if err != nil {
			return
		}
		running = started
	}
}
