package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/vmstencil/stencil/test/cluster/node"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/product"
)

// limit bounds each wait of a start.
const limit = 4 * time.Minute

// Cluster is a running cluster.
type Cluster struct {
	// Plane is its control plane, as the host reaches it.
	Plane *controlplane.Plane

	config node.Config
	// release is the folder of the release whose images the registry has.
	release string
	log     io.Writer
	stop    func() error
}

// Start starts a node without KubeVirt and Stencil, and returns when it is ready. It builds what is missing.
func Start(ctx context.Context, log io.Writer) (*Cluster, error) {
	removeOrphans(os.TempDir())
	stores, err := prepare(ctx, log)
	if err != nil {
		return nil, err
	}
	folder, err := newFolder()
	if err != nil {
		return nil, err
	}
	c := &Cluster{log: log, config: node.Config{Folder: folder.path, ID: folder.id(), Stores: stores}}
	c.stop = sync.OnceValue(func() error { return errors.Join(c.config.RemoveGroups(), folder.remove()) })
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster: %w", err), c.Stop())
	}
	return c, nil
}

// Stop ends the cluster and removes everything that it has written. It may be called more than once.
func (c *Cluster) Stop() error { return c.stop() }

// Dir is the folder of the cluster, with the logs of the node's programs in plane/logs.
func (c *Cluster) Dir() string { return c.config.Folder }

func (c *Cluster) start(ctx context.Context) error {
	program, err := buildNode(ctx)
	if err != nil {
		return err
	}
	if err := c.config.Write(); err != nil {
		return err
	}
	ended, kill, err := c.launch(program)
	if err != nil {
		return err
	}
	release := c.stop
	c.stop = sync.OnceValue(func() error {
		kill()
		<-ended
		return release()
	})
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		<-ended
		cancel(fmt.Errorf("the node ended; its log ends with:\n%s", c.tail()))
	}()
	var attachment *controlplane.Attachment
	err = deadline.Wait(alive, "the node is ready", limit, func(context.Context) error {
		content, err := os.ReadFile(filepath.Join(c.config.Folder, node.AttachmentFile))
		if err != nil {
			return err
		}
		return json.Unmarshal(content, &attachment)
	})
	if err != nil {
		return err
	}
	return c.attach(attachment)
}

// launch starts the node in new namespaces. The returned channel is closed when it has ended.
func (c *Cluster) launch(program string) (ended <-chan struct{}, kill func(), err error) {
	log, err := os.Create(c.logFile())
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	// No context: it runs until Stop.
	command := exec.CommandContext(context.Background(), program, "-init", "-folder="+c.config.Folder)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = attributes()
	done, started := make(chan struct{}), make(chan error)
	go func() {
		// The node is killed when this thread ends, so it lives as long.
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			// The log contains the reason.
			_ = command.Wait()
		}
		close(done)
	}()
	if err := <-started; err != nil {
		return nil, nil, fmt.Errorf("starting the node in namespaces of its own, which needs root: %w", err)
	}
	// Process 1 of the namespaces: all others end with it.
	return done, func() { _ = command.Process.Signal(syscall.SIGKILL) }, nil
}

// attach connects a port on loopback to the API server.
func (c *Cluster) attach(attachment *controlplane.Attachment) error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go node.Forward(context.Background(), listener, "unix", filepath.Join(c.config.Folder, node.APISocket))
	end := c.stop
	c.stop = sync.OnceValue(func() error { return errors.Join(listener.Close(), end()) })
	attachment.Host = "https://" + listener.Addr().String()
	c.Plane, err = controlplane.Attach(attachment, c.log)
	return err
}

// Push adds an image to the cluster's registry, where containerd finds it under its reference.
func (c *Cluster) Push(ctx context.Context, reference string, image v1.Image) error {
	to, err := node.InRegistry(reference)
	if err != nil {
		return err
	}
	return remote.Write(to, image, remote.WithContext(ctx), remote.WithTransport(c.registry()))
}

// registry reaches the registry from outside of the node's network.
func (c *Cluster) registry() http.RoundTripper {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(c.config.Folder, node.RegistrySocket))
	}}
}

func (c *Cluster) logFile() string { return filepath.Join(c.config.Folder, "node.log") }

func (c *Cluster) tail() string {
	const most = 4 << 10
	content, err := os.ReadFile(c.logFile())
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-most):])
}

// buildNode builds the program of the node.
func buildNode(ctx context.Context) (string, error) {
	root, err := product.Root()
	if err != nil {
		return "", err
	}
	program := filepath.Join(root, "bin", "node")
	return program, build(ctx, "cmd/node", program)
}

// build builds a program of this package's folder, without C.
func build(ctx context.Context, name, program string) error {
	folder, err := folderOf(name)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", name, err, output)
	}
	return nil
}
