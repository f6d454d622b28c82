package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/approve"
	"github.com/vmstencil/stencil/cmd/stencilctl/available"
	"github.com/vmstencil/stencil/cmd/stencilctl/capture"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/convert"
	"github.com/vmstencil/stencil/cmd/stencilctl/defaults"
	"github.com/vmstencil/stencil/cmd/stencilctl/diff"
	"github.com/vmstencil/stencil/cmd/stencilctl/explain"
	"github.com/vmstencil/stencil/cmd/stencilctl/image"
	"github.com/vmstencil/stencil/cmd/stencilctl/install"
	"github.com/vmstencil/stencil/cmd/stencilctl/lint"
	"github.com/vmstencil/stencil/cmd/stencilctl/oci"
	"github.com/vmstencil/stencil/cmd/stencilctl/ova"
	"github.com/vmstencil/stencil/cmd/stencilctl/policy"
	"github.com/vmstencil/stencil/cmd/stencilctl/process"
	"github.com/vmstencil/stencil/cmd/stencilctl/revisions"
	"github.com/vmstencil/stencil/cmd/stencilctl/seal"
)

// version is set by the linker in release builds: -ldflags "-X main.version=v1.2.3".
var version string

// pluginName is the name under which kubectl finds the binary as a plugin.
const pluginName = "kubectl-stencil"

// displayName returns the command name as the user entered it.
func displayName(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if name == pluginName {
		return "kubectl stencil"
	}
	return "stencilctl"
}

// newCommand assembles all commands. Each group of commands is a separate package next to this
// one.
func newCommand(path string, streams cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "stencilctl",
		Short: "Templates and policies for KubeVirt's virtual machines",
		Long: `Templates and policies for KubeVirt's virtual machines.

Exit codes: 0 success; 1 there are findings, such as a policy that denies; 2 the command line or a file is invalid;
3 the cluster or a registry cannot be reached, or denies the request; 4 any other error; 5 not everything could be decided.`,
		Version:       currentVersion(),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: displayName(path)},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetVersionTemplate(displayName(path) + " {{.Version}}\n")
	root.AddCommand(
		policy.NewCommand(streams),
		available.NewTemplates(streams),
		available.NewSchema(streams),
		process.NewProcess(streams),
		process.NewCreate(streams),
		lint.NewCommand(streams),
		convert.NewCommand(streams),
		diff.NewCommand(streams),
		defaults.NewCommand(streams),
		explain.NewCommand(streams),
		approve.NewCommand(streams),
		capture.NewCommand(streams),
		image.NewCommand(streams),
		ova.NewCommand(streams),
		oci.NewCommand(streams),
		seal.NewCommand(streams),
		revisions.NewCommand(streams),
		install.NewCommand(streams),
	)
	finish(root, displayName(path))
	return root
}

// finish adapts the examples to the command name, and makes groups reject subcommands that do
// not exist: cobra would print help and report success.
func finish(command *cobra.Command, name string) {
	command.Example = strings.ReplaceAll(command.Example, "stencilctl ", name+" ")
	if !command.Runnable() {
		command.Args = cobra.NoArgs
		command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
	}
	for _, each := range command.Commands() {
		finish(each, name)
	}
}

func currentVersion() string {
	built, revision := version, "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		if built == "" {
			built = info.Main.Version
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	return fmt.Sprintf("%s (revision %s, %s)", built, revision, runtime.Version())
}
