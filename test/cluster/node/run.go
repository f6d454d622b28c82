package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/vmstencil/stencil/test/controlplane"
)

// limit bounds each wait of a start.
const limit = 2 * time.Minute

// Tools are the names of the tools that a node needs beside the tools of its control plane.
var Tools = slices.Concat([]string{"kubelet", "kube-proxy", "kube-scheduler", "coredns", "snapshot-crds"}, storageTools)

// PlaneOptions are the options of the node's control plane.
func (c Config) PlaneOptions() controlplane.Options {
	return controlplane.Options{
		ControllerManager: true, Dir: c.file("plane"), Log: os.Stderr, Address: Address,
	}
}

// Run starts the node in the namespaces of this process, and runs it until ctx ends.
func Run(ctx context.Context, c Config) error {
	if err := c.isolate(ctx); err != nil {
		return fmt.Errorf("isolating the node: %w", err)
	}
	if err := c.createGroups(); err != nil {
		return err
	}
	tools, err := controlplane.Tools(ctx, Tools...)
	if err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, c.PlaneOptions())
	if err != nil {
		return err
	}
	if err := c.startRegistry(ctx, plane); err != nil {
		return fmt.Errorf("starting the registry: %w", err)
	}
	if err := c.startRuntime(ctx, plane); err != nil {
		return err
	}
	if err := c.startNode(ctx, plane, tools); err != nil {
		return err
	}
	if err := c.startDNS(ctx, plane, tools["coredns"]); err != nil {
		return err
	}
	if err := c.startStorage(ctx, plane, tools); err != nil {
		return fmt.Errorf("starting the storage: %w", err)
	}
	if err := c.offer(ctx, plane); err != nil {
		return err
	}
	<-ctx.Done()
	return plane.Stop()
}

// offer connects the socket of the API server, and writes the attachment.
func (c Config) offer(ctx context.Context, plane *controlplane.Plane) error {
	address, err := url.Parse(plane.AdminConfig().Host)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", c.file(APISocket))
	if err != nil {
		return err
	}
	go Forward(ctx, listener, "tcp", address.Host)
	attachment, err := plane.Attachment()
	if err != nil {
		return err
	}
	content, err := json.Marshal(attachment)
	if err != nil {
		return err
	}
	partial, err := c.write(string(content), AttachmentFile+".partial")
	if err != nil {
		return err
	}
	return os.Rename(partial, c.file(AttachmentFile))
}
