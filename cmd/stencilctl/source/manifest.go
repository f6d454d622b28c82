package source

import (
	"os"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// FileOf returns the file of a command that takes one with -f, or as its only argument, and the other arguments. An argument is a file if it has the extension
// of a manifest and exists: names of objects may also end in .yaml.
func FileOf(flag string, arguments []string) (file string, names []string) {
	if flag != "" || len(arguments) != 1 || !cli.IsManifestName(arguments[0]) {
		return flag, arguments
	}
	if info, err := os.Stat(arguments[0]); err != nil || !info.Mode().IsRegular() {
		return "", arguments
	}
	return arguments[0], nil
}
