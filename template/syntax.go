package template

import (
	"errors"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// Braces returns the template with its placeholders in braces: a changed copy if spec.syntax is Parentheses, and t itself otherwise.
// What cannot be decoded stays as it is.
func Braces(t *v1beta1.VirtualMachineTemplate) *v1beta1.VirtualMachineTemplate {
	return withBraces(t, false)
}

// withBraces is Braces. With joined, $((NAME)) beside digits and others of its kind becomes ${{NAME}}, which the compiler joins to a number where one
// is expected.
func withBraces(t *v1beta1.VirtualMachineTemplate, joined bool) *v1beta1.VirtualMachineTemplate {
	if t.Spec.Syntax != v1beta1.SyntaxParentheses {
		return t
	}
	s := parentheses{keep: t.Spec.UndefinedReferences == v1beta1.UndefinedReferencesKeep, declared: map[string]bool{}, joined: joined}
	for i := range t.Spec.Parameters {
		s.declared[t.Spec.Parameters[i].Name] = true
	}
	t = t.DeepCopy()
	t.Spec.Syntax = ""
	s.document(t.Spec.VirtualMachine)
	for i := range t.Spec.Objects {
		s.document(&t.Spec.Objects[i])
	}
	s.joined = false
	t.Spec.Message = s.text(t.Spec.Message)
	labels := make(map[string]string, len(t.Spec.ObjectLabels))
	for key, value := range t.Spec.ObjectLabels {
		labels[s.text(key)] = s.text(value)
	}
	if len(labels) == len(t.Spec.ObjectLabels) && len(labels) > 0 {
		t.Spec.ObjectLabels = labels
	}
	return t
}

// parentheses rewrites placeholders of the proposal of Kubernetes' templates: $(NAME), and $((NAME)) without quotes.
type parentheses struct {
	declared map[string]bool
	// keep means that placeholders that are not declared are text.
	keep bool
	// joined is described at withBraces.
	joined bool
}

var (
	// inParentheses matches what has a meaning in a template with parentheses, or would get one with braces.
	inParentheses = regexp.MustCompile(`\$\$\(|\$\{|\$\(\((?:[a-zA-Z0-9_]+)\)\)|\$\((?:[a-zA-Z0-9_]+)(?: *\|[^)\n]*)?\)`)
	// joinedInParentheses matches a concatenation of placeholders without quotes, and digits, that can be a number; joinedInBraces with braces.
	joinedInParentheses = regexp.MustCompile(`^-?[0-9]*(?:\$\(\([a-zA-Z0-9_]+\)\)[0-9]*)+$`)
	joinedInBraces      = regexp.MustCompile(`^-?[0-9]*(?:\$\{\{[a-zA-Z0-9_]+\}\}[0-9]*)+$`)
	// inBraces matches the same, with braces.
	inBraces = regexp.MustCompile(`\$\$\{|\$\{\{([a-zA-Z0-9_]+)\}\}|\$\{([a-zA-Z0-9_]+(?: *\|[^}\n]*)?)\}|\$\{`)
)

func (s parentheses) document(object *runtime.RawExtension) {
	document, cause := encoded(object, virtualMachineAt)
	if cause != nil {
		return
	}
	tree, err := decode(string(document), MaxDepth, virtualMachineAt)
	if err != nil {
		return
	}
	s.node(&tree)
	*object = runtime.RawExtension{Raw: tree.appendCanonical(make([]byte, 0, len(document)+len(document)/8))}
}

func (s parentheses) node(n *node) {
	if n.kind == kindString {
		n.text = s.text(n.text)
	}
	for i := range n.items {
		s.node(&n.items[i])
	}
	keys := s
	keys.joined = false
	for i := range n.members {
		n.members[i].key = keys.text(n.members[i].key)
		s.node(&n.members[i].value)
	}
}

// text rewrites a text. $((NAME)) beside other text inserts text, as $(NAME) does, unless it can be a part of a number.
func (s parentheses) text(text string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	unquoted := s.joined && joinedInParentheses.MatchString(text)
	return inParentheses.ReplaceAllStringFunc(text, func(found string) string {
		switch found {
		case "$$(":
			return "$("
		case "${":
			return "$${"
		}
		inner := strings.TrimSuffix(strings.TrimPrefix(found, "$("), ")")
		name := strings.Trim(inner, "()")
		if name, _, _ = strings.Cut(name, "|"); s.keep && !s.declared[strings.TrimRight(name, " ")] {
			return found
		}
		if inner[0] != '(' {
			return "${" + inner + "}"
		}
		if found == text || unquoted {
			return "${{" + name + "}}"
		}
		return "${" + name + "}"
	})
}

// inParenthesesAgain returns a message about a template as the template is written.
func inParenthesesAgain(message string) string {
	return inBraces.ReplaceAllStringFunc(message, func(found string) string {
		switch {
		case found == "$${":
			return "$$("
		case found == "${":
			return "$("
		case strings.HasPrefix(found, "${{"):
			return "$((" + found[len("${{"):len(found)-len("}}")] + "))"
		default:
			return "$(" + found[len("${"):len(found)-len("}")] + ")"
		}
	})
}

// respell returns the error of a template as the template is written.
func respell(err error) error {
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	for _, cause := range invalid.Causes {
		cause.Detail, cause.Field = inParenthesesAgain(cause.Detail), inParenthesesAgain(cause.Field)
		if text, is := cause.BadValue.(string); is {
			cause.BadValue = inParenthesesAgain(text)
		}
	}
	return invalid
}
