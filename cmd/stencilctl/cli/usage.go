package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Connection is the annotation of flags that select the cluster and the user. They are the same for many commands, and the help of each lists its own only.
const Connection = "stencilctl_connection"

// Groups of commands in the help.
const (
	GroupUse     = "use"
	GroupAuthor  = "author"
	GroupGovern  = "govern"
	GroupImages  = "images"
	GroupInstall = "install"
)

// Groups returns the groups in the order of the help.
func Groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: GroupUse, Title: "Use templates:"},
		{ID: GroupAuthor, Title: "Write, capture and move templates:"},
		{ID: GroupGovern, Title: "Govern what is created:"},
		{ID: GroupImages, Title: "Keep boot images fresh:"},
		{ID: GroupInstall, Title: "Install and maintain Stencil:"},
	}
}

// HideConnections leaves the flags of Connection out of the usage of all commands, with a line about where they are.
func HideConnections(root *cobra.Command, name string) {
	usage := root.UsageFunc()
	root.SetUsageFunc(func(command *cobra.Command) error {
		hidden := connections(command.LocalFlags())
		for _, flag := range hidden {
			flag.Hidden = true
		}
		err := usage(command)
		for _, flag := range hidden {
			flag.Hidden = false
		}
		if err == nil && len(hidden) > 0 {
			_, err = fmt.Fprintf(command.OutOrStderr(), "\nUse \"%s options\" for the flags that select the cluster and the user.\n", name)
		}
		return err
	})
}

func connections(flags *pflag.FlagSet) (found []*pflag.Flag) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations[Connection] != nil && !flag.Hidden {
			found = append(found, flag)
		}
	})
	return found
}

// takesFiles reports whether a command with subcommands is given manifests, which it takes with -f, too.
func takesFiles(command *cobra.Command, arguments []string) bool {
	return command.Flags().Lookup("filename") != nil && !slices.ContainsFunc(arguments, func(argument string) bool { return !IsManifestName(argument) })
}

// IsManifestName reports whether a name has the extension of a manifest.
func IsManifestName(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name)))
}

// Subcommand validates the arguments of a command that has subcommands and takes no arguments: cobra would print help and report success for one that does
// not exist.
func Subcommand(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 || takesFiles(command, arguments) {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", arguments[0], command.CommandPath())
	command.SuggestionsMinimumDistance = 2
	if near := command.SuggestionsFor(arguments[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return Usage(errors.New(text))
}
