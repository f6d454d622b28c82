package policy

import (
	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
)

// sources are the flags for policies that are plain Rego modules, which contain no parameters
// and kinds.
type sources struct {
	parameters string
	kinds      []string
}

func (s *sources) register(command *cobra.Command) {
	command.Flags().StringVar(&s.parameters, "parameters", "", "file with data.parameters, for policies that are plain Rego modules")
	command.Flags().StringSliceVar(&s.kinds, "kinds", nil, "kinds of objects, for policies that are plain Rego modules (default VirtualMachine)")
}

func (s *sources) reader(streams cli.Streams) (*source.Reader, error) {
	reader := &source.Reader{In: streams.In, Kinds: s.kinds}
	if s.parameters == "" {
		return reader, nil
	}
	var err error
	reader.Parameters, err = reader.Values(s.parameters)
	return reader, err
}
