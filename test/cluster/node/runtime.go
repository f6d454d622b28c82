package node

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
)

// runtimeSocket is where containerd serves kubelet.
const runtimeSocket = "/run/containerd/containerd.sock"

// runtimeConfig configures containerd 1.6 or later: https://github.com/containerd/containerd/blob/main/docs/cri/config.md.
const runtimeConfig = `version = 2
root = %q
state = "/run/containerd"

[grpc]
address = %q

[plugins."io.containerd.internal.v1.opt"]
path = %q

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = %q
# Containers may not have a lower value than the processes of the node.
restrict_oom_score_adj = true
disable_hugetlb_controller = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = %q

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = %q
`

// mirror has containerd pull all images from the node's registry.
const mirror = `server = "http://%[1]s"

[host."http://%[1]s"]
capabilities = ["pull", "resolve"]
`

// podNetwork gives each pod an address and a link to the node, over which it reaches other pods too: so their traffic passes the rules of kube-proxy.
const podNetwork = `{
  "cniVersion": "1.0.0", "name": "pods", "plugins": [
    {"type": "ptp", "ipMasq": false, "mtu": 1400, "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}
  ]
}
`

// startRuntime starts containerd, and returns when it answers.
func (c Config) startRuntime(ctx context.Context, plane *controlplane.Plane) error {
	networks, err := c.write(fmt.Sprintf(podNetwork, podRange), "cni", "pods.conflist")
	if err != nil {
		return err
	}
	hosts, err := c.write(fmt.Sprintf(mirror, Registry), "registries", "_default", "hosts.toml")
	if err != nil {
		return err
	}
	content := fmt.Sprintf(runtimeConfig, c.file("data", "containerd"), runtimeSocket, c.file("data", "opt"), Pause, filepath.Dir(networks), filepath.Dir(filepath.Dir(hosts)))
	config, err := c.write(content, "containerd.toml")
	if err != nil {
		return err
	}
	program, err := exec.LookPath("containerd")
	if err != nil {
		return err
	}
	if err := plane.StartProgram("containerd", program, "--config="+config); err != nil {
		return err
	}
	return deadline.Wait(ctx, "containerd answers", limit, func(ctx context.Context) error {
		if output, err := exec.CommandContext(ctx, "ctr", "--address="+runtimeSocket, "version").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	})
}
