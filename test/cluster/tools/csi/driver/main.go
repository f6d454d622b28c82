// Command driver is a CSI driver for the nodes of test clusters: https://github.com/container-storage-interface/spec. A volume is a file with
// holes in a folder of the host, with an ext4 file system. Snapshots and clones are copies of the file; writes to the volume wait meanwhile. It registers
// itself with kubelet, so it needs no further program on the node. Volumes without a file system
// (volumeMode Block) are not supported, and a volume that is mounted does not grow: ext4 does only with CAP_SYS_RESOURCE, which
// containers of continuous integration lack.
//
// It must run in the mount namespace of kubelet, as root. Loop devices are released when their last user ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// name is the name of the driver, in classes and volumes.
const name = "disks.stencil.test"

func main() {
	folder := flag.String("folder", "", "`folder` of volumes and snapshots")
	kubelet := flag.String("kubelet", "/var/lib/kubelet", "`folder` of kubelet")
	node := flag.String("node", "", "`name` of this node")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *folder, *kubelet, *node); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder, kubelet, node string) error {
	store, err := openStore(folder)
	if err != nil {
		return err
	}
	endpoint := filepath.Join(kubelet, "plugins", name, "csi.sock")
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, identity{})
	csi.RegisterControllerServer(server, controller{store: store})
	csi.RegisterNodeServer(server, nodeService{store: store, name: node})
	registrar := grpc.NewServer()
	registration.RegisterRegistrationServer(registrar, registrant{endpoint: endpoint})
	ended := make(chan error, 2)
	for path, each := range map[string]*grpc.Server{endpoint: server, filepath.Join(kubelet, "plugins_registry", name+"-reg.sock"): registrar} {
		listener, err := listen(ctx, path)
		if err != nil {
			return err
		}
		go func() { ended <- each.Serve(listener) }()
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

func listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	// A killed driver leaves its socket.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, "unix", path)
}

// registrant answers kubelet, which finds the socket in its folder plugins_registry.
type registrant struct {
	registration.UnimplementedRegistrationServer

	endpoint string
}

func (r registrant) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (registrant) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		fmt.Fprintln(os.Stderr, "driver: kubelet does not accept it:", status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// identity describes the driver.
type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: name, VendorVersion: "1.0.0"}, nil
}

func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}}},
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_OFFLINE}}},
	}}, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}
