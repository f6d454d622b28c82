package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// DryRun is the value of kubectl's flag --dry-run.
type DryRun struct {
	value string
	// bare is set if --dry-run without a value means server.
	bare bool
}

// Values of the flag.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// Register adds the flag.
func (d *DryRun) Register(command *cobra.Command) {
	command.Flags().Var(d, "dry-run", "none, client (send nothing that would be stored) or server (evaluate it, but do not store it)")
	_ = command.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunClient, dryRunServer}, cobra.ShellCompDirectiveNoFileComp))
}

// RegisterBare is Register for a command whose older versions have --dry-run without a value. It still accepts that.
func (d *DryRun) RegisterBare(command *cobra.Command) {
	d.bare = true
	d.Register(command)
	command.Flags().Lookup("dry-run").NoOptDefVal = dryRunServer
}

// Requested reports whether nothing must be stored.
func (d *DryRun) Requested() bool { return d.Client() || d.Server() }

// Client reports whether nothing must be sent to be stored.
func (d *DryRun) Client() bool { return d.value == dryRunClient }

// Server reports whether the cluster must run admission on the objects without storing them.
func (d *DryRun) Server() bool { return d.value == dryRunServer }

// Suffix returns the suffix of a message about what was done.
func (d *DryRun) Suffix() string {
	if d.Requested() {
		return " (" + d.value + " dry run)"
	}
	return ""
}

// String implements pflag.Value.
func (d *DryRun) String() string {
	if d.value == "" {
		return dryRunNone
	}
	return d.value
}

// Set implements pflag.Value.
func (d *DryRun) Set(value string) error {
	if d.bare {
		switch value {
		case "true":
			value = dryRunServer
		case "false":
			value = dryRunNone
		}
	}
	switch value {
	case dryRunNone, dryRunClient, dryRunServer:
		d.value = value
		return nil
	default:
		return fmt.Errorf("must be one of none, client, server")
	}
}

// Type implements pflag.Value.
func (d *DryRun) Type() string { return "STRATEGY" }
