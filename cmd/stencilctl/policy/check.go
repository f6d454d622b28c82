package policy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/reports"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/rego"
)

func newCheck(streams cli.Streams) *cobra.Command {
	var files sources
	format := cli.NewFormat(cli.Table, cli.JSON, cli.YAML, cli.JUnit, cli.SARIF)
	var named cli.Files
	command := &cobra.Command{
		Use:   "check FILE... | -f FILE...",
		Short: "Check whether policies compile",
		Long: `Check whether policies compile.

Manifests are read strictly, parameters are checked against their schema, and modules are compiled as the cluster
compiles them: types of input and parameters, references and built-in functions are checked. Tests are not run.`,
		Example: `  stencilctl policy check policies/
  helm template ./policies | stencilctl policy check -
  stencilctl policy check policies/ -o sarif > policies.sarif`,
		RunE: func(command *cobra.Command, paths []string) error {
			reader, err := files.reader(streams)
			if err != nil {
				return err
			}
			policies, err := reader.Policies(named.All(paths))
			if err != nil {
				return err
			}
			found, err := check(command.Context(), policies)
			if err != nil {
				return err
			}
			switch {
			case format.Is(cli.SARIF):
				err = format.Write(streams.Out, sarifOf(found))
			case format.Is(cli.JUnit):
				err = cli.Internal(reports.WriteJUnit(streams.Out, suitesOf(policies, found)))
			case !format.Is(cli.Table):
				err = format.Write(streams.Out, checked{Policies: len(policies), Problems: found})
			default:
				printProblems(streams.Out, streams, found)
				if len(found) == 0 {
					fmt.Fprintf(streams.Out, "%s %s in order\n", streams.Paint(cli.Green, "ok"), cli.Count(len(policies), "policy", "policies"))
				}
			}
			if err == nil && len(found) > 0 {
				return cli.ErrFindings
			}
			return err
		},
	}
	named.Register(command)
	files.register(command)
	format.Register(command, "output", "o")
	return command
}

// checked is the JSON and YAML output of check.
type checked struct {
	Policies int       `json:"policies"`
	Problems []problem `json:"problems"`
}

// check compiles policies and returns all problems.
func check(ctx context.Context, policies []*source.Policy) ([]problem, error) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		return nil, cli.Internal(err)
	}
	found := []problem{}
	names := map[string]string{}
	for _, policy := range policies {
		found = append(found, manifestProblems(policy.File, policy.Name(), policy.Problems)...)
		if other, twice := names[policy.Name()]; twice {
			found = append(found, problem{
				File: policy.File, Policy: policy.Name(), Field: "metadata.name", Code: codeManifest,
				Message: fmt.Sprintf("%s holds a policy of the same name: in a cluster one replaces the other", other),
			})
		}
		names[policy.Name()] = policy.File
		compiled, err := compile(ctx, compiler, policy.Spec.Definition, compileTimeout)
		problems := problemsOf(policy.File, policy.Name(), policy, err)
		if err != nil && len(problems) == 0 {
			return nil, cli.Internal(fmt.Errorf("compiling policy %s: %w", policy.Name(), err))
		}
		found = append(found, problems...)
		if err == nil {
			found = append(found, unreached(policy, compiled)...)
		}
	}
	return found, nil
}

// unreached returns the rules and tests of a policy about requests that it does not evaluate.
func unreached(policy *source.Policy, compiled *rego.Policy) []problem {
	var found []problem
	for _, each := range policy.Spec.Unreached(compiled) {
		found = append(found, place(policy.File, policy.Name(), policy, each))
	}
	return found
}

func sarifOf(problems []problem) *reports.Sarif {
	var findings []reports.Finding
	for _, p := range problems {
		findings = append(findings, p.sarif())
	}
	return reports.SARIF(rules, findings)
}

// suitesOf returns a suite for each policy: a case for each of its problems, or one that passed.
func suitesOf(policies []*source.Policy, problems []problem) []reports.Suite {
	var suites []reports.Suite
	for _, policy := range policies {
		s := reports.Suite{Name: policy.Name(), File: policy.File}
		for _, p := range problems {
			if p.Policy == policy.Name() && p.File == policy.File {
				s.Cases = append(s.Cases, p.junit())
			}
		}
		if len(s.Cases) == 0 {
			s.Cases = []reports.Case{{Name: "compiles", Class: policy.Name(), File: policy.File}}
		}
		suites = append(suites, s)
	}
	return suites
}
