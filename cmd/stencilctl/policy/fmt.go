package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
)

// formatting is the command fmt.
type formatting struct {
	streams            cli.Streams
	write, diff, check bool
}

func newFmt(streams cli.Streams) *cobra.Command {
	f := formatting{streams: streams}
	var named cli.Files
	command := &cobra.Command{
		Use:   "fmt FILE... | -f FILE...",
		Short: "Format the Rego of policies",
		Long: `Format the Rego of policies in the way that all Rego is formatted (opa fmt).

In a manifest only the module changes: comments, order and quoting of everything else stay. It is indented with spaces
there, because kubectl prints a text with tabs on one line. Without flags the formatted files are printed.`,
		Example: `  stencilctl policy fmt -w policies/
  stencilctl policy fmt --check policies/   # in CI`,
		RunE: func(_ *cobra.Command, paths []string) error {
			files, err := (&source.Reader{In: streams.In}).Files(named.All(paths))
			if err != nil {
				return err
			}
			return f.run(files)
		},
	}
	named.Register(command)
	command.Flags().BoolVarP(&f.write, "write", "w", false, "write the files back, and list those that changed")
	command.Flags().BoolVarP(&f.diff, "diff", "d", false, "print what would change")
	command.Flags().BoolVar(&f.check, "check", false, "list the files that are not formatted, and fail if there are any")
	command.MarkFlagsMutuallyExclusive("write", "diff")
	command.MarkFlagsMutuallyExclusive("write", "check")
	return command
}

func (f *formatting) run(files []source.File) error {
	var problems []problem
	changed := false
	for i := range files {
		file := &files[i]
		content, found := formatted(file)
		if len(found) > 0 {
			problems = append(problems, found...)
			continue
		}
		differs := !bytes.Equal(content, file.Content)
		changed = changed || differs
		if err := f.show(file, content, differs); err != nil {
			return err
		}
	}
	printProblems(f.streams.Err, f.streams, problems)
	if len(problems) > 0 || changed && f.check {
		return cli.ErrFindings
	}
	return nil
}

func (f *formatting) show(file *source.File, content []byte, differs bool) error {
	out := f.streams.Out
	if f.write && file.Name == source.StdinName {
		return cli.Usage(errors.New("the standard input cannot be written back"))
	}
	var err error
	switch {
	case !f.write && !f.diff && !f.check:
		_, err = out.Write(content)
	case !differs:
	case f.write:
		fmt.Fprintln(out, file.Name)
		err = rewrite(file.Name, content)
	default:
		if f.check {
			fmt.Fprintln(out, file.Name)
		}
		if f.diff {
			err = difflib.WriteUnifiedDiff(out, difflib.UnifiedDiff{
				A: difflib.SplitLines(string(file.Content)), FromFile: file.Name,
				B: difflib.SplitLines(string(content)), ToFile: file.Name + " (formatted)", Context: 3,
			})
		}
	}
	return cli.Internal(err)
}

// rewrite replaces the content of a file and preserves its mode.
func rewrite(name string, content []byte) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, content, info.Mode().Perm())
}

// formatted returns the content of a file with its modules formatted.
func formatted(file *source.File) ([]byte, []problem) {
	var problems []problem
	var modules []string
	for i := range file.Modules {
		module := &file.Modules[i]
		options := format.Opts{
			RegoVersion:   ast.RegoV1,
			ParserOptions: &ast.ParserOptions{RegoVersion: ast.RegoV1},
		}
		after, err := format.SourceWithOpts(file.Name, []byte(module.Source), options)
		_, _, known := module.Locate(0, 0)
		switch {
		case err != nil:
			problems = append(problems, parseProblems(file.Name, module.Policy, module.Source, module, err)...)
			after = []byte(module.Source)
		case !known && strings.TrimRight(string(after), "\n") != strings.TrimRight(module.Source, "\n"):
			problems = append(problems, problem{
				File: file.Name, Policy: module.Policy, Field: "spec.rego", Code: codeManifest,
				Message: "it is not formatted, and can only be when it is written as a block of lines (rego: |)",
			})
			after = []byte(module.Source)
		}
		if known && err == nil && module.InManifest {
			after = []byte(withSpaces(string(after)))
		}
		modules = append(modules, string(after))
	}
	return file.WithModules(modules), problems
}

// withSpaces replaces each tab of indentation by two spaces: kubectl prints a text with tabs on
// one line, in quotes. A module with strings that span several lines is not changed.
func withSpaces(module string) string {
	lines := strings.Split(module, "\n")
	for i, line := range lines {
		if strings.Count(line, "`")%2 != 0 {
			return module
		}
		rest := strings.TrimLeft(line, "\t")
		lines[i] = strings.Repeat("  ", len(line)-len(rest)) + rest
	}
	return strings.Join(lines, "\n")
}
