// Package manual writes the files about stencilctl that its archives contain: pages for man, and completions of shells.
package manual

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// NewCommand returns the command manual, which the build of a release runs. It is in no help.
func NewCommand(streams cli.Streams, version string) *cobra.Command {
	return &cobra.Command{
		Use:    "manual FOLDER",
		Short:  "Write pages for man and completions of shells into a folder",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(command *cobra.Command, folders []string) error {
			files, err := Files(command.Root(), version)
			if err != nil {
				return cli.Internal(err)
			}
			for name, content := range files {
				path := filepath.Join(folders[0], filepath.FromSlash(name))
				err := os.MkdirAll(filepath.Dir(path), 0o755)
				if err == nil {
					err = os.WriteFile(path, content, 0o644)
				}
				if err != nil {
					return cli.Internal(fmt.Errorf("writing the manual: %w", err))
				}
			}
			fmt.Fprintf(streams.Out, "%s: %s\n", folders[0], cli.Count(len(files), "file", "files"))
			return nil
		},
	}
}

// Files returns the files by their path. They depend on the commands and the version only, so that everyone builds the same archive.
func Files(root *cobra.Command, version string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for path, write := range map[string]func(io.Writer) error{
		"completions/stencilctl.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"completions/_stencilctl":     root.GenZshCompletion,
		"completions/stencilctl.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"completions/stencilctl.ps1":  root.GenPowerShellCompletionWithDesc,
	} {
		var content bytes.Buffer
		if err := write(&content); err != nil {
			return nil, fmt.Errorf("generating %s: %w", path, err)
		}
		files[path] = content.Bytes()
	}
	pages(root, version, files)
	return files, nil
}

func pages(command *cobra.Command, version string, files map[string][]byte) {
	if !documented(command) {
		return
	}
	files["man/man1/"+nameOf(command)+".1"] = page(command, version)
	for _, below := range command.Commands() {
		pages(below, version, files)
	}
}

// documented reports whether a command has a page. Those that cobra adds have none.
func documented(command *cobra.Command) bool {
	return !command.Hidden && command.Name() != "completion" && command.Name() != "help"
}

// nameOf returns the name of the page of a command.
func nameOf(command *cobra.Command) string {
	return strings.ReplaceAll(command.CommandPath(), " ", "-")
}

// page returns the page of a command, in the language of man(7).
func page(command *cobra.Command, version string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, ".TH %s 1 \"\" %q \"Stencil\"\n", strings.ToUpper(nameOf(command)), "stencilctl "+version)
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n", escaped(nameOf(command)), escaped(command.Short))
	fmt.Fprintf(&out, ".SH SYNOPSIS\n.B %s\n", escaped(command.UseLine()))
	fmt.Fprintf(&out, ".SH DESCRIPTION\n%s\n", strings.ReplaceAll(escaped(cmp.Or(command.Long, command.Short)), "\n\n", "\n.PP\n"))
	for _, part := range []struct{ title, text string }{
		{"OPTIONS", command.LocalFlags().FlagUsages()},
		{"EXAMPLES", command.Example},
	} {
		if part.text != "" {
			fmt.Fprintf(&out, ".SH %s\n.nf\n%s\n.fi\n", part.title, escaped(strings.TrimRight(part.text, "\n")))
		}
	}
	var others []string
	if command.HasParent() {
		others = append(others, nameOf(command.Parent()))
	}
	for _, below := range command.Commands() {
		if documented(below) {
			others = append(others, nameOf(below))
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(&out, ".SH SEE ALSO\n.BR %s (1)\n", escaped(strings.Join(others, " (1), ")))
	}
	return out.Bytes()
}

// escaped returns text that man prints as it is.
func escaped(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
