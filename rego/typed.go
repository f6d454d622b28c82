package rego

import (
	"errors"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/vmstencil/stencil/rego/internal/typing"
)

// errNotTyped is why a compiled policy could not be compiled again with what package typing adds. Then that finds nothing.
var errNotTyped = errors.New("not compiled")

// compiledBefore are the stages that leave parts of compiled rules as they are. Undefined functions are those of other modules.
var compiledBefore = []ast.StageID{
	ast.StageCheckUnusedImports, ast.StageCheckKeywordOverrides, ast.StageCheckDuplicateImports, ast.StageRewriteLocalVars,
	ast.StageRewriteTemplateStrings, ast.StageCheckVoidCalls, ast.StageRewritePrintCalls, ast.StageParseMetadataBlocks, ast.StageSetAnnotationSet,
	ast.StageRewriteRegoMetadataCalls, ast.StageRewriteWithValues, ast.StageCheckRuleConflicts, ast.StageCheckUndefinedFuncs,
	ast.StageCheckSafetyRuleHeads, ast.StageCheckSafetyRuleBodies, ast.StageRewriteTestRulesForTracing,
}

// checkTyping returns the mistakes in a compiled policy that OPA's type checker permits.
func (c *Compiler) checkTyping(text source, kinds []string, compiler *ast.Compiler) []Problem {
	types := compiler.TypeEnv
	found := typing.Check(typing.Input{
		Policy: compiler.Modules[policyModule], Package: policyPackage, Types: types, Entries: entries, Kinds: kinds,
		Suggest: func(value string, values []string) string {
			return didYouMean(value, slices.Sorted(slices.Values(values)))
		},
		Compile: func(module *ast.Module) (*ast.TypeEnv, []*ast.Error, error) {
			again := ast.NewCompiler().WithCapabilities(c.sandbox.Capabilities).SetErrorLimit(maxProblems).WithOnlyStagesUpTo(ast.StageCheckTypes).WithSkipStages(compiledBefore...)
			again.WithStageAfterID(ast.StageCheckRecursion, ast.CompilerStageDefinition{
				Name: "stencil_typing", MetricName: "stencil_typing",
				Stage: func(compiler *ast.Compiler) *ast.Error {
					compiler.TypeEnv = types
					_, rejection := checkGrowth(text, compiler)
					return rejection
				},
			})
			again.Compile(map[string]*ast.Module{policyModule: module})
			for _, err := range again.Errors {
				if err.Code != ast.TypeErr {
					return nil, nil, errNotTyped
				}
			}
			return again.TypeEnv, again.Errors, nil
		},
	})
	problems := make([]Problem, 0, len(found))
	for _, f := range found {
		problem := text.at(CodeType, f.Location, "%s", f.Message)
		if f.Err != nil {
			problem = text.translated(f.Err)
		}
		for generated, own := range compiler.RewrittenVars {
			problem.Message = strings.ReplaceAll(problem.Message, string(generated), string(own))
		}
		problems = append(problems, problem)
	}
	return problems
}
