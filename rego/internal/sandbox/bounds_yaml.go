package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	yamlnode "go.yaml.in/yaml/v3"
)

// decodeYAML decodes a text, once for all policies of a request: several may read the user data of a VM.
func decodeYAML(context topdown.BuiltinContext, operands []*ast.Term) (*ast.Term, error) {
	text, ok := operands[0].Value.(ast.String)
	if !ok {
		return nil, errText
	}
	decode := func() (value *ast.Term, err error) {
		if err := checkYAML(text); err != nil {
			return nil, err
		}
		err = topdown.GetBuiltin(ast.YAMLUnmarshal.Name)(context, operands[:1], func(found *ast.Term) error {
			value = found
			return nil
		})
		// The error is shared as well, and must not contain the position of this call.
		var typed *topdown.Error
		if errors.As(err, &typed) {
			err = errors.New(strings.TrimPrefix(typed.Message, ast.YAMLUnmarshal.Name+": "))
		}
		return value, err
	}
	if spent, ok := context.Cancel.(*Budget); ok && spent.Documents != nil {
		return spent.Documents.document(text, decode)
	}
	return decode()
}

func yamlUnmarshal(context topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
	value, err := decodeYAML(context, operands)
	if err != nil {
		return err
	}
	return found(value)
}

// yamlIsValid returns false for documents that yaml.unmarshal would reject as too large.
func yamlIsValid(context topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
	_, err := decodeYAML(context, operands)
	return found(ast.InternedTerm(err == nil))
}

// checkYAML bounds a text in YAML, in which an alias, *NAME, is replaced by a copy.
func checkYAML(text ast.String) error {
	if err := document([]*ast.Term{{Value: text}}); err != nil {
		return err
	}
	if len(text) <= maxParts && strings.IndexByte(string(text), '*') < 0 {
		return nil
	}
	var root yamlnode.Node
	if err := yamlnode.Unmarshal([]byte(text), &root); err != nil {
		return err
	}
	if expanded(&root, maxParts, MaxDepth) > maxParts {
		return fmt.Errorf("the document has more than %d parts or is nested more than %d deep", maxParts, MaxDepth)
	}
	return nil
}

// expanded counts the nodes with aliases replaced, and stops beyond the limit.
func expanded(node *yamlnode.Node, limit, depth int) int {
	if depth == 0 {
		return limit + 1
	}
	if node.Kind == yamlnode.AliasNode {
		return expanded(node.Alias, limit, depth-1)
	}
	n := 1
	for _, child := range node.Content {
		if n += expanded(child, limit-n, depth-1); n > limit {
			return n
		}
	}
	return n
}
