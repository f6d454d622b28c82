package transfers

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/transfer"
)

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// throughAPIServer is the name of a flag.
const throughAPIServer = "through-api-server"

// access is how this machine reaches movers.
type access struct{ proxied bool }

func (a *access) register(flags *pflag.FlagSet) {
	flags.BoolVar(&a.proxied, throughAPIServer, false, "connect through the API server, even if the package has a URL outside of the cluster")
}

// endpoint returns the mover of a transfer, with the token of the Secret. It is reached by its URL outside of the cluster, if it has one, and otherwise by that
// of its Service and the API server.
func (a *access) endpoint(ctx context.Context, client *cluster.Client, namespace, inside, outside, secretName string, header map[string]string) (*cluster.Endpoint, error) {
	var secret struct {
		Data map[string]string `json:"data"`
	}
	found, err := client.GetInto(ctx, secrets, namespace, secretName, &secret)
	if err != nil {
		return nil, cluster.Failed("reading Secret "+secretName, err)
	}
	token, err := base64.StdEncoding.DecodeString(secret.Data["token"])
	if !found || err != nil || len(token) == 0 {
		return nil, cli.Cluster(fmt.Errorf("the Secret %s has no token", secretName))
	}
	all := map[string]string{transfer.TokenHeader: string(token)}
	maps.Copy(all, header)
	if outside == "" || a.proxied {
		at, err := url.Parse(inside)
		if err != nil {
			return nil, cli.Cluster(fmt.Errorf("the status has no URL: %w", err))
		}
		service, _, _ := strings.Cut(at.Hostname(), ".")
		return client.Proxied(namespace, service, "https", at.Path, all), nil
	}
	authorities, err := base64.StdEncoding.DecodeString(secret.Data["ca.crt"])
	if err != nil {
		return nil, cli.Cluster(fmt.Errorf("the Secret %s has no certificate", secretName))
	}
	endpoint, err := cluster.Outside(outside, authorities, all, "--"+throughAPIServer+" connects through the API server")
	if err != nil {
		return nil, cli.Cluster(fmt.Errorf("the URL outside of the cluster: %w", err))
	}
	return endpoint, nil
}
