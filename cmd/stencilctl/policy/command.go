// Package policy holds the commands of `stencilctl policy`: they check, test and evaluate
// policies with the engine of the webhooks. Only simulate needs a cluster, and prove without files.
package policy

import (
	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// NewCommand returns the group of commands.
func NewCommand(streams cli.Streams) *cobra.Command {
	group := &cobra.Command{
		Use:   "policy",
		Short: "Write, test and try out VirtualMachinePolicies",
		Long: `Write, test and try out VirtualMachinePolicies, which are rules in Rego for virtual machines.

The commands take manifests of VirtualMachinePolicies (YAML or JSON, any number of documents), plain Rego modules, folders
of those, and "-" for the standard input. They use the engine of the cluster: a policy that passes here passes there.`,
		Aliases: []string{"policies", "vmpol"},
	}
	group.AddCommand(
		newCheck(streams),
		newTest(streams),
		newEval(streams),
		newExplain(streams),
		newFmt(streams),
		newSimulate(streams),
		newProve(streams),
	)
	return group
}
