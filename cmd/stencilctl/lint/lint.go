package lint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	templatelint "github.com/vmstencil/stencil/template/lint"
)

// linting is the command lint.
type linting struct {
	streams cli.Streams
	format  *cli.Format
	failOn  *cli.Format
}

// NewCommand returns the command.
func NewCommand(streams cli.Streams) *cobra.Command {
	l := linting{
		streams: streams,
		format:  cli.NewFormat(cli.Table, cli.JSON, cli.SARIF),
		failOn:  cli.NewFormat(string(templatelint.Error), string(templatelint.Warning), string(templatelint.Advice)),
	}
	var files cli.Files
	command := &cobra.Command{
		Use:   "lint FILE... | -f FILE...",
		Short: "Check templates for errors and possible improvements",
		Long: `Check templates for errors and possible improvements.

The cluster rejects templates with errors, and returns warnings when it stores a template; only this command returns advice.
Every finding has its row and column. The files are manifests in YAML or JSON, folders of those, and "-" for the standard
input; objects in them other than VirtualMachineTemplates are ignored.`,
		Example: `  stencilctl lint templates/
  stencilctl lint -o sarif templates/ > lint.sarif
  kubectl get vmt fedora -n golden -o yaml | stencilctl lint -`,
		RunE: func(_ *cobra.Command, paths []string) error { return l.run(files.All(paths)) },
	}
	files.Register(command)
	l.format.Register(command, "output", "o")
	cli.Alias(command, "format", "output")
	command.Flags().Var(l.failOn, "fail-on", "the least that makes the exit code 1: error, warning or advice")
	return command
}

// placed is a finding in a file. Its JSON form is output.
type placed struct {
	File string `json:"file"`
	// Row and Column are in the file, counted from 1.
	Row    int `json:"row"`
	Column int `json:"column"`
	// Template is NAMESPACE/NAME, or NAME when the file has no namespace.
	Template string `json:"template"`
	templatelint.Finding
}

// report is the JSON output.
type report struct {
	Templates int      `json:"templates"`
	Findings  []placed `json:"findings"`
}

func (l *linting) run(paths []string) error {
	reader := &source.Reader{In: l.streams.In}
	objects, err := reader.Objects(paths)
	if err != nil {
		return err
	}
	found := report{Findings: []placed{}}
	for i := range objects {
		if object := &objects[i]; object.IsTemplate() {
			found.Templates++
			found.Findings = append(found.Findings, findings(object)...)
		}
	}
	if found.Templates == 0 {
		return cli.Usage(errors.New("there is no VirtualMachineTemplate to check"))
	}
	slices.SortStableFunc(found.Findings, func(a, b placed) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Column, b.Column))
	})
	if err := l.print(&found); err != nil {
		return err
	}
	if slices.ContainsFunc(found.Findings, func(f placed) bool { return l.counts(f.Severity) }) {
		return cli.ErrFindings
	}
	return nil
}

// counts reports whether a finding makes the command fail.
func (l *linting) counts(severity templatelint.Severity) bool {
	switch severity {
	case templatelint.Error:
		return true
	case templatelint.Warning:
		return !l.failOn.Is(string(templatelint.Error))
	default:
		return l.failOn.Is(string(templatelint.Advice))
	}
}

// findings returns the findings about one template.
func findings(object *source.Object) []placed {
	name := object.Name()
	if namespace := object.Namespace(); namespace != "" {
		name = namespace + "/" + name
	}
	locator := object.Locator()
	var all []placed
	for _, f := range append(manifest(object), check(object)...) {
		row, column := locator.Locate(f.Path, f.Key)
		all = append(all, placed{File: object.File, Row: row, Column: column, Template: name, Finding: f})
	}
	return all
}

func check(object *source.Object) []templatelint.Finding {
	template, _, err := object.Template()
	if err != nil {
		return nil // manifest reports the error
	}
	return templatelint.Check(template)
}

// manifest returns what the API server would reject before it calls webhooks.
func manifest(object *source.Object) []templatelint.Finding {
	var all []templatelint.Finding
	add := func(path string, key bool, message string) {
		all = append(all, templatelint.Finding{Rule: templatelint.RuleManifest, Severity: templatelint.Error, Path: path, Message: message, Key: key})
	}
	version, _ := object.Content["apiVersion"].(string)
	if known := []string{v1beta1.GroupVersion.String(), v1beta1.GroupVersion.Group + "/v1alpha1"}; !slices.Contains(known, version) {
		add("apiVersion", false, fmt.Sprintf("must be one of %s", strings.Join(known, ", ")))
	}
	template, unknown, err := object.Template()
	if err != nil {
		// The outer errors contain the file and the object, which are printed anyway.
		add("", false, errors.Unwrap(errors.Unwrap(err)).Error())
		return all
	}
	for _, each := range unknown {
		switch path, meant, found := source.UnknownField(each, template); {
		case meant != "":
			add(path, true, fmt.Sprintf("there is no such field; did you mean %s?", meant))
		case found:
			add(path, true, "there is no such field")
		default:
			add("", false, each.Error())
		}
	}
	metadata, _ := object.Content["metadata"].(map[string]any)
	if generate, _ := metadata["generateName"].(string); object.Name() == "" && generate == "" {
		add("metadata", false, "the template has no name")
	}
	return all
}
