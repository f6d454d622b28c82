package openshift

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/template/plain"
)

// The placeholders of the two styles. A whole-value placeholder is the entire text.
var (
	braces           = regexp.MustCompile(`\$+\{(?:[a-zA-Z0-9_]+\}|\{?[a-zA-Z0-9_]+ *\|)?`)
	wholeBraces      = regexp.MustCompile(`^\$\{\{([a-zA-Z0-9_]+)\}\}$`)
	parentheses      = regexp.MustCompile(`\$+(?:\([a-zA-Z0-9_]+\)|\(\([a-zA-Z0-9_]+\)\))`)
	wholeParentheses = regexp.MustCompile(`^\$\(\(([a-zA-Z0-9_]+)\)\)$`)
)

// rewrite converts all texts of a value to Stencil's placeholder syntax.
func (c *conversion) rewrite(value any, at string) any {
	switch value := value.(type) {
	case string:
		return c.text(value, at, true)
	case []any:
		for i := range value {
			value[i] = c.rewrite(value[i], fmt.Sprintf("%s[%d]", at, i))
		}
		return value
	case map[string]any:
		written := make(map[string]any, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			place := at + "." + key
			if strings.ContainsAny(key, "./") {
				place = at + "[" + key + "]"
			}
			written[c.text(key, place, false)] = c.rewrite(value[key], place)
		}
		return written
	default:
		return value
	}
}

// text converts one text to Stencil's placeholder syntax. With whole, the text may be a
// placeholder for a JSON value.
func (c *conversion) text(text, at string, whole bool) string {
	if !strings.Contains(text, "$") {
		return text
	}
	if c.options.Parentheses {
		return c.parenthesized(text, at, whole)
	}
	if found := wholeBraces.FindStringSubmatch(text); found != nil {
		if whole && !c.declared[found[1]] {
			c.undeclared(found[1], text, at)
			return c.plain(text)
		}
		return text
	}
	return braces.ReplaceAllStringFunc(text, func(reference string) string {
		dollars := strings.IndexByte(reference, '{')
		name := strings.TrimSuffix(reference[dollars+1:], "}")
		switch {
		case name == "" && dollars == 1:
			return reference
		case name == "", strings.HasSuffix(name, "|"): // OpenShift has no encoders: it is text
			return c.plain(reference)
		case c.declared[name]:
			return c.dollars(dollars-1) + reference[dollars-1:]
		default:
			c.undeclared(name, reference[dollars-1:], at)
			return c.plain(reference)
		}
	})
}

// parenthesized converts a text with placeholders in parentheses. Text in Stencil's placeholder
// syntax stays text.
func (c *conversion) parenthesized(text, at string, whole bool) string {
	if found := wholeParentheses.FindStringSubmatch(text); found != nil && whole {
		if c.declared[found[1]] {
			return "${{" + found[1] + "}}"
		}
		c.undeclared(found[1], text, at)
		return text
	}
	return parentheses.ReplaceAllStringFunc(c.plain(text), func(reference string) string {
		dollars := strings.IndexByte(reference, '(')
		name := strings.Trim(reference[dollars:], "()")
		if !c.declared[name] {
			c.undeclared(name, reference[dollars-1:], at)
			return reference
		}
		if strings.HasPrefix(reference[dollars:], "((") {
			c.note(at, "%s is beside other text, so that the value stays text; a template with syntax Parentheses joins digits with it to a number", reference[dollars-1:])
		}
		return c.dollars(dollars-1) + "${" + name + "}"
	})
}

// plain writes a text so that it stays as it is.
func (c *conversion) plain(text string) string {
	written := plain.Text(text, c.dollar)
	c.usesDollar = c.usesDollar || written != text
	return written
}

// dollars writes dollar signs that are before a placeholder.
func (c *conversion) dollars(count int) string {
	return strings.TrimSuffix(c.plain(strings.Repeat("$", count)+"{"), "{")
}

// undeclared reports once for each name that the reference is not replaced, as in OpenShift.
func (c *conversion) undeclared(name, reference, at string) {
	if !c.retained[name] {
		c.retained[name] = true
		c.note(at, "%s stays as it is, because no parameter is called %s", reference, name)
	}
}
