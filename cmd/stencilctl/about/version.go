// Package about holds the command version, which prints the versions of this program and of the cluster.
package about

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
)

// timeout is the limit for the requests to the cluster. The version of this program is printed without them.
const timeout = 5 * time.Second

// Client is the version of this program.
type Client struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
}

// String returns the version on one line.
func (c Client) String() string {
	return fmt.Sprintf("%s (revision %s, %s)", c.Version, c.Revision, c.Go)
}

// server describes a cluster.
type server struct {
	Kubernetes string `json:"kubernetes"`
	// APIs are the versions of Stencil's API groups that the cluster serves, GROUP/VERSION. It does not publish the version of Stencil itself.
	APIs []string `json:"apis"`
}

// report is the JSON and YAML output.
type report struct {
	Client Client  `json:"client"`
	Server *server `json:"server,omitempty"`
}

// printing is the command version.
type printing struct {
	streams cli.Streams
	cluster cluster.Flags
	only    bool
	format  *cli.Format
}

// NewCommand returns the command. name is the name of this program.
func NewCommand(streams cli.Streams, name string, client Client) *cobra.Command {
	p := printing{streams: streams, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of the cluster",
		Long: `Print the version of this program, of the cluster's Kubernetes, and the API groups of Stencil that the cluster serves. A cluster that cannot be reached is
reported on standard error, and does not fail the command.`,
		Example: `  stencilctl version
  stencilctl version --client -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.run(command.Context(), name, client) },
	}
	command.Flags().BoolVar(&p.only, "client", false, "only the version of this program, without a cluster")
	p.cluster.RegisterUnnamespaced(command.Flags())
	p.format.Register(command, "output", "o")
	return command
}

func (p *printing) run(ctx context.Context, name string, client Client) error {
	found := report{Client: client}
	if !p.only {
		var err error
		if found.Server, err = p.server(ctx); err != nil {
			fmt.Fprintf(p.streams.Err, "Note: the version of the cluster is not known: %v\n", err)
		}
	}
	if !p.format.Is(cli.Table) {
		return p.format.Write(p.streams.Out, found)
	}
	fmt.Fprintf(p.streams.Out, "%s %s\n", name, client)
	if found.Server != nil {
		fmt.Fprintf(p.streams.Out, "Kubernetes %s\n", found.Server.Kubernetes)
		for _, api := range found.Server.APIs {
			fmt.Fprintf(p.streams.Out, "API %s\n", api)
		}
	}
	return nil
}

func (p *printing) server(ctx context.Context) (*server, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := p.cluster.Client(p.streams.Err)
	if err != nil {
		return nil, err
	}
	kubernetes, err := client.Version(ctx)
	if err != nil {
		return nil, err
	}
	apis, err := client.Versions(ctx, "template.kubevirt.io", "subresources.template.kubevirt.io", "stencil.kubevirt.io")
	return &server{Kubernetes: kubernetes, APIs: apis}, err
}
