package controlplane

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/product"
)

// Each plane begins with the same hundred definitions and roles, and the API server takes longer to accept them than to start. So the data of an etcd
// that has them is stored once, in Stencil's cache, and planes of tests begin with a copy.

// prepare installs what a plane has before its components start, and what depends on no address, key or certificate of it: definitions, and KubeVirt's
// permissions and catalogue.
func (p *Plane) prepare(ctx context.Context) error {
	if p.options.CDI {
		if err := p.installCDICRDs(ctx); err != nil {
			return err
		}
	}
	if p.options.VirtualizationCRDs {
		if err := p.InstallVirtualizationCRDs(ctx); err != nil {
			return err
		}
	}
	if !p.options.KubeVirt {
		return nil
	}
	client, err := dynamic.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	if err := p.permitKubeVirt(ctx, client); err != nil {
		return err
	}
	return p.InstallCatalogue(ctx)
}

// begin gives the plane the data of a prepared one, if there is some, and reports whether it did. Tests make what is missing; others, which start
// one plane and not a hundred, do not.
func (p *Plane) begin(ctx context.Context) (prepared bool, err error) {
	if !p.options.VirtualizationCRDs && !p.options.CDI {
		return false, nil
	}
	folder, err := product.CacheFolder("planes")
	if err != nil {
		return false, err
	}
	key, err := p.preparedKey()
	if err != nil {
		return false, err
	}
	stored := filepath.Join(folder, key)
	if _, err := os.Stat(stored); err != nil {
		if !testing.Testing() {
			return false, nil
		}
		if err := p.store(ctx, stored); err != nil {
			return false, fmt.Errorf("preparing the data of planes: %w", err)
		}
	}
	// Unused data is removed by its time of change.
	now := time.Now()
	_ = os.Chtimes(stored, now, now)
	// Most of a log of etcd is empty.
	output, err := exec.CommandContext(ctx, "cp", "-R", "--sparse=always", stored, p.EtcdData()).CombinedOutput()
	if err != nil {
		return false, fmt.Errorf("copying the data of a prepared plane: %w: %s", err, output)
	}
	if p.options.VirtualizationCRDs {
		p.mark(virtualizationCRDs)
	}
	if p.options.KubeVirt {
		p.mark(kubeVirtPermissions)
	}
	return true, nil
}

// awaitPrepared returns when the API server serves the definitions of prepared data.
func (p *Plane) awaitPrepared(ctx context.Context) error {
	client, err := apiextensions.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	definitions, err := client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the definitions: %w", err)
	}
	for _, definition := range definitions.Items {
		if err := awaitServed(ctx, client, &definition); err != nil {
			return err
		}
	}
	return nil
}

// prepared are the options that decide about the prepared data.
func (o Options) prepared() Options {
	return Options{KubeVirt: o.KubeVirt, VirtualizationCRDs: o.VirtualizationCRDs, CDI: o.CDI, CDILater: o.CDILater}
}

// preparedKey names the data by all that decides about it: the tools, and which of them are installed.
func (p *Plane) preparedKey() (string, error) {
	options := p.options.prepared()
	names := options.Tools()
	slices.Sort(names)
	digest := sha256.New()
	fmt.Fprintf(digest, "1 %t %t %t %t\n", options.KubeVirt, options.CDI, options.CDILater, options.VirtualizationCRDs)
	for _, name := range names {
		info, err := os.Stat(p.tools[name])
		if err != nil {
			return "", fmt.Errorf("reading the tool %s: %w", name, err)
		}
		fmt.Fprintln(digest, name, p.tools[name], info.Size(), info.ModTime().UnixNano())
	}
	digest.Write(kubevirtDefinitions)
	return fmt.Sprintf("%x", digest.Sum(nil)[:8]), nil
}

// storedPlanesFor is how long prepared data is stored after its last use.
const storedPlanesFor = 7 * 24 * time.Hour

// store makes the data on a plane of its own. Packages of tests that need it at the same time wait for the first.
func (p *Plane) store(ctx context.Context, to string) (err error) {
	var lock *os.File
	err = deadline.Wait(ctx, "another process has prepared the data of planes", startLimit, func(context.Context) error {
		lock, err = Lock(to+".lock", os.O_CREATE|os.O_RDWR)
		return err
	})
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	product.Prune(filepath.Dir(to), storedPlanesFor, filepath.Base(to)+".lock")
	options := p.options.prepared()
	made, err := openFolder("")
	if err != nil {
		return err
	}
	plane := &Plane{
		options: options, folder: made, log: io.Discard, ports: freePorts, tools: p.tools,
		components: map[component]bool{kubeVirt: options.KubeVirt, cdi: options.CDI},
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := plane.startEtcd(ctx, plane.tools["etcd"]); err != nil {
		return err
	}
	if err := plane.startAPIServer(ctx, plane.tools["kube-apiserver"]); err != nil {
		return err
	}
	if err := plane.prepare(ctx); err != nil {
		return err
	}
	return plane.keep(ctx, to)
}

// keep stops the plane and stores the data of its etcd, without what belongs to this API server: its authorities, its leases, and events.
func (p *Plane) keep(ctx context.Context, to string) error {
	if err := p.StopAPIServer(); err != nil {
		return err
	}
	for _, prefix := range []string{"/registry/configmaps/kube-system/extension-apiserver-authentication", "/registry/leases/", "/registry/events/"} {
		if err := p.askEtcd(ctx, "deleterange", map[string][]byte{"key": []byte(prefix), "range_end": after(prefix)}, &struct{}{}); err != nil {
			return fmt.Errorf("deleting from etcd: %w", err)
		}
	}
	etcd, err := p.process(etcdProcess)
	if err != nil {
		return err
	}
	if err := etcd.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping etcd: %w", err)
	}
	select {
	case <-etcd.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// In two steps, so that no other process finds a part.
	part := to + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if output, err := exec.CommandContext(ctx, "cp", "-R", "--sparse=always", p.EtcdData(), part).CombinedOutput(); err != nil {
		return fmt.Errorf("storing the data of etcd: %w: %s", err, output)
	}
	return os.Rename(part, to)
}
