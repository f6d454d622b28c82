package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Alias keeps an old name of a flag working: it is in no help, and its use prints a note to standard error. pflag's own deprecation prints to the output of the
// command, which programs read.
func Alias(command *cobra.Command, old, name string) {
	flag := command.Flags().Lookup(name)
	alias := *flag
	alias.Name, alias.Shorthand, alias.Hidden = old, "", true
	alias.Annotations = map[string][]string{AliasOf: {name}}
	alias.Value = &aliased{Value: flag.Value, of: flag, old: old, command: command}
	command.Flags().AddFlag(&alias)
}

// AliasOf is the annotation of an old name of a flag, with the new one.
const AliasOf = "stencilctl_alias_of"

// aliased is the value of an old name of a flag.
type aliased struct {
	pflag.Value
	of      *pflag.Flag
	old     string
	command *cobra.Command
	noted   bool
}

// Set implements pflag.Value.
func (a *aliased) Set(value string) error {
	if !a.noted {
		fmt.Fprintf(a.command.ErrOrStderr(), "Note: --%s is now --%s, and its old name will be removed\n", a.old, a.of.Name)
		a.noted = true
	}
	if err := a.Value.Set(value); err != nil {
		return err
	}
	a.of.Changed = true
	return nil
}
