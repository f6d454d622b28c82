package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vmstencil/stencil/cmd/stencilctl/about"
	"github.com/vmstencil/stencil/cmd/stencilctl/approve"
	"github.com/vmstencil/stencil/cmd/stencilctl/available"
	"github.com/vmstencil/stencil/cmd/stencilctl/capture"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/convert"
	"github.com/vmstencil/stencil/cmd/stencilctl/defaults"
	"github.com/vmstencil/stencil/cmd/stencilctl/diff"
	"github.com/vmstencil/stencil/cmd/stencilctl/explain"
	"github.com/vmstencil/stencil/cmd/stencilctl/image"
	"github.com/vmstencil/stencil/cmd/stencilctl/install"
	"github.com/vmstencil/stencil/cmd/stencilctl/lint"
	"github.com/vmstencil/stencil/cmd/stencilctl/manual"
	"github.com/vmstencil/stencil/cmd/stencilctl/oci"
	"github.com/vmstencil/stencil/cmd/stencilctl/ova"
	"github.com/vmstencil/stencil/cmd/stencilctl/policy"
	"github.com/vmstencil/stencil/cmd/stencilctl/process"
	"github.com/vmstencil/stencil/cmd/stencilctl/revisions"
	"github.com/vmstencil/stencil/cmd/stencilctl/seal"
)

// version is set by the linker in release builds: -ldflags "-X main.version=v1.2.3".
var version string

// suggested are other words for a command, by its name.
var suggested = map[string][]string{
	"templates": {"list", "get", "available"},
	"process":   {"render", "preview"},
	"create":    {"new", "apply", "deploy", "run"},
	"lint":      {"validate", "check"},
	"capture":   {"clone", "snapshot"},
	"explain":   {"why"},
	"approve":   {"allow", "approval"},
	"image":     {"golden"},
}

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
		Version:       currentVersion().String(),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: displayName(path)},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetVersionTemplate(displayName(path) + " {{.Version}}\n")
	root.AddGroup(cli.Groups()...)
	for group, commands := range map[string][]*cobra.Command{
		cli.GroupUse: {
			available.NewTemplates(streams), available.NewSchema(streams), process.NewProcess(streams), process.NewCreate(streams),
			explain.NewCommand(streams), diff.NewCommand(streams), defaults.NewCommand(streams),
		},
		cli.GroupAuthor: {
			lint.NewCommand(streams), convert.NewCommand(streams), capture.NewCommand(streams),
			ova.NewCommand(streams), oci.NewCommand(streams), seal.NewCommand(streams),
		},
		cli.GroupGovern:  {approve.NewCommand(streams), policy.NewCommand(streams)},
		cli.GroupImages:  {image.NewCommand(streams)},
		cli.GroupInstall: {install.NewCommand(streams), revisions.NewCommand(streams)},
		"":               {newOptions(streams), about.NewCommand(streams, displayName(path), currentVersion()), manual.NewCommand(streams, currentVersion().Version)},
	} {
		for _, command := range commands {
			command.GroupID = group
			command.SuggestFor = suggested[command.Name()]
		}
		root.AddCommand(commands...)
	}
	finish(root, displayName(path))
	cli.HideConnections(root, displayName(path))
	return root
}

// newOptions returns the command options, which lists the flags that the help of other commands leaves out.
func newOptions(streams cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that select the cluster and the user",
		Long:  "List the flags that select the cluster and the user, as in kubectl. Commands that need a cluster take them.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			(&cluster.Flags{}).RegisterUnnamespaced(flags)
			_, err := fmt.Fprintf(streams.Out, "Commands that need a cluster take these flags:\n\n%s", flags.FlagUsages())
			return err
		},
	}
}

// finish adapts the examples to the command name, and makes groups reject subcommands that do
// not exist: cobra would print help and report success.
func finish(command *cobra.Command, name string) {
	command.Example = strings.ReplaceAll(command.Example, "stencilctl ", name+" ")
	if command.HasSubCommands() {
		command.Args = cli.Subcommand
	}
	if !command.Runnable() {
		command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
	}
	for _, each := range command.Commands() {
		finish(each, name)
	}
}

func currentVersion() about.Client {
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
	return about.Client{Version: built, Revision: revision, Go: runtime.Version()}
}
