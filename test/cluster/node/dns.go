package node

import (
	"context"
	"fmt"
	"net"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
)

const clusterDomain = "cluster.local"

// corefile configures CoreDNS: https://coredns.io/plugins/kubernetes/. Names outside of the cluster do not exist.
const corefile = `%s {
	bind %s
	errors
	kubernetes {
		kubeconfig %s
	}
}
. {
	bind %s
	template ANY ANY {
		rcode NXDOMAIN
	}
}
`

// startDNS starts CoreDNS, and returns when it serves the name of the API server.
func (c Config) startDNS(ctx context.Context, plane *controlplane.Plane, program string) error {
	file, err := c.write(fmt.Sprintf(corefile, clusterDomain, Address, plane.Kubeconfig(), Address), "Corefile")
	if err != nil {
		return err
	}
	if err := plane.StartProgram("coredns", program, "-conf="+file); err != nil {
		return err
	}
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(Address, "53"))
	}}
	return deadline.Wait(ctx, "CoreDNS answers", limit, func(ctx context.Context) error {
		_, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+clusterDomain+".")
		return err
	})
}
