package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// Files are the files of a command that takes them as arguments, or with -f, as other commands and kubectl do.
type Files struct{ named []string }

// Register adds the flag. It replaces the check of the arguments.
func (f *Files) Register(command *cobra.Command) {
	command.Flags().StringSliceVarP(&f.named, "filename", "f", nil, "files or folders, as the arguments FILE are")
	command.Args = func(_ *cobra.Command, arguments []string) error {
		if len(arguments)+len(f.named) == 0 {
			return Usage(errors.New("files must be given: FILE..., or -f FILE"))
		}
		return nil
	}
}

// All returns the files of the arguments and of the flag.
func (f *Files) All(arguments []string) []string {
	return append(arguments[:len(arguments):len(arguments)], f.named...)
}
