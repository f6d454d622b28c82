package approval

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/environment"
)

// expressionCost is what one evaluation of an expression may cost, in the units of
// Kubernetes' own limits, of which a million take about a tenth of a second.
const expressionCost = 100_000

// expression is a CEL expression over the value of a parameter.
type expression struct {
	text    string
	program cel.Program
}

// expressions makes the environment in which expressions are compiled: that of Kubernetes, in the version that every API server of the last two
// releases supports, with two variables.
//
// It is made once, because making it takes some milliseconds. It never changes.
var expressions = sync.OnceValues(func() (*cel.Env, error) {
	set := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	return set.NewExpressionsEnv().Extend(
		cel.Variable("value", cel.StringType),
		cel.Variable("params", cel.MapType(cel.StringType, cel.StringType)),
	)
})

func compileExpression(text string) (*expression, error) {
	env, err := expressions()
	if err != nil {
		return nil, fmt.Errorf("making the CEL environment: %w", err)
	}
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if ast.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("must be a bool, not %s", ast.OutputType())
	}
	program, err := env.Program(ast, cel.CostLimit(expressionCost))
	if err != nil {
		return nil, err
	}
	return &expression{text: text, program: program}, nil
}

var errTooExpensive = errors.New("its evaluation takes too long for a value of this size")

// holds evaluates the expression. The text of an error may contain values, except that of errTooExpensive.
func (e *expression) holds(value string, params map[string]string) (bool, error) {
	if params == nil {
		params = map[string]string{}
	}
	var cancelled interpreter.EvalCancelledError
	result, _, err := e.program.Eval(map[string]any{"value": value, "params": params})
	switch {
	case errors.As(err, &cancelled):
		return false, errTooExpensive
	case err != nil:
		return false, err
	default:
		return result.Value() == true, nil
	}
}
