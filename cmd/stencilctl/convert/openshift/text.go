package openshift

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The placeholders of the two styles. Those of a whole value stand alone.
var (
	braces           = regexp.MustCompile(`\$+\{(?:[a-zA-Z0-9_]+\}|\{?[a-zA-Z0-9_]+ *\|)?`)
	wholeBraces      = regexp.MustCompile(`^\$\{\{([a-zA-Z0-9_]+)\}\}$`)
	parentheses      = regexp.MustCompile(`\$+\([a-zA-Z0-9_]+\)`)
	wholeParentheses = regexp.MustCompile(`^\$\(\(([a-zA-Z0-9_]+)\)\)$`)
)

// rewrite writes all texts of a value as Stencil's language has them.
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

// text writes one text as Stencil's language has it. A whole value may be a placeholder
// for JSON.
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
			return "$" + text
		}
		return text
	}
	return braces.ReplaceAllStringFunc(text, func(reference string) string {
		dollars := strings.IndexByte(reference, '{')
		name := strings.TrimSuffix(reference[dollars+1:], "}")
		switch {
		case strings.HasSuffix(name, "|"):
			return "$" + reference // OpenShift has no encoders: it is text
		case name == "" && dollars == 1:
			return reference
		case name == "":
			return "$" + reference // two dollars and a brace would be an escape
		case c.declared[name] && dollars == 1:
			return reference
		case c.declared[name]:
			c.escaped(name, reference[dollars-2:], at)
			return reference
		default:
			c.undeclared(name, reference[dollars-1:], at)
			return "$" + reference
		}
	})
}

// parenthesized writes a text in which placeholders have parentheses. What looks like
// one of Stencil's is text in it.
func (c *conversion) parenthesized(text, at string, whole bool) string {
	if found := wholeParentheses.FindStringSubmatch(text); found != nil && whole {
		if c.declared[found[1]] {
			return "${{" + found[1] + "}}"
		}
		c.undeclared(found[1], text, at)
		return text
	}
	text = strings.ReplaceAll(text, "${", "$${")
	return parentheses.ReplaceAllStringFunc(text, func(reference string) string {
		dollars := strings.IndexByte(reference, '(')
		name := reference[dollars+1 : len(reference)-1]
		if !c.declared[name] {
			return reference // $(hostname) is how shells write commands, and hardly worth a note
		}
		if dollars > 1 {
			c.escaped(name, reference[dollars-2:], at)
		}
		return reference[:dollars] + "{" + name + "}"
	})
}

// escaped tells of a dollar before a value, which cannot be written: it makes an escape
// of the placeholder.
func (c *conversion) escaped(name, reference, at string) {
	c.lose(at, "%s was a dollar and the value of %s, and becomes the text ${%s}: write it in another way", reference, name, name)
}

// undeclared tells once for each name that it stays as it is, as in OpenShift.
func (c *conversion) undeclared(name, reference, at string) {
	if !c.kept[name] {
		c.kept[name] = true
		c.note(at, "%s stays as it is, because no parameter is called %s", reference, name)
	}
}
