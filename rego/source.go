package rego

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxBrackets is how deeply brackets may be nested in the source.
const maxBrackets = 64

// sourceFile is the name of a policy's source in locations. It is the same for all, so that policies share programs.
const sourceFile = "(policy)"

// named replaces the locations in a message, such as those of conflicting rules, by ones with the name of the policy.
func named(message, policy string) string {
	return strings.ReplaceAll(message, sourceFile+":", policy+":")
}

// source is the text of a policy, with functions to describe positions in it.
type source struct {
	text  string
	lines []string
}

func newSource(text string) source {
	return source{text: text, lines: strings.Split(text, "\n")}
}

// line returns the text of a row, shortened to the length that fits into a status.
func (s source) line(row int) string {
	if row < 1 || row > len(s.lines) {
		return ""
	}
	return shorten(strings.TrimRight(s.lines[row-1], "\r"), 200)
}

func (s source) problem(code string, row, column int, format string, arguments ...any) Problem {
	return Problem{Code: code, Row: row, Column: column, Line: s.line(row), Message: shorten(fmt.Sprintf(format, arguments...), MaxMessageBytes)}
}

func (s source) at(code string, location *ast.Location, format string, arguments ...any) Problem {
	if location == nil {
		return s.problem(code, 0, 0, format, arguments...)
	}
	// OPA reports column 0 when something is missing at the beginning of a row.
	return s.problem(code, location.Row, max(location.Col, 1), format, arguments...)
}

// shorten cuts a text to so many bytes without cutting a character.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// check returns problems that can be found before parsing: the length, the encoding, an empty source, deep nesting.
func (s source) check() []Problem {
	switch {
	case len(s.text) > MaxSourceBytes:
		return []Problem{{Code: CodeLimit, Message: fmt.Sprintf("the policy has %d bytes; at most %d are allowed", len(s.text), MaxSourceBytes)}}
	case !utf8.ValidString(s.text):
		return []Problem{{Code: CodeParse, Message: "the policy is not valid UTF-8"}}
	case strings.TrimSpace(s.text) == "":
		return []Problem{{Code: CodeParse, Message: "the policy is empty"}}
	}
	if row, column := s.tooDeep(); row > 0 {
		return []Problem{s.problem(CodeLimit, row, column, "brackets are nested more than %d deep", maxBrackets)}
	}
	return nil
}

// tooDeep finds the first bracket that is nested too deeply, or a repeated operator that nests like brackets. Texts and comments are skipped.
func (s source) tooDeep() (row, column int) {
	depth, repeated := 0, 0
	row, column = 1, 0
	quote := byte(0)
	for i := 0; i < len(s.text); i++ {
		c := s.text[i]
		column++
		if c == '\n' {
			row, column = row+1, 0
			if quote == '"' || quote == '#' {
				quote = 0
			}
			continue
		}
		switch {
		case quote == '#':
		case quote == '"' && c == '\\':
			i++
			column++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '`' || c == '#':
			quote = c
		case c == '[' || c == '{' || c == '(':
			depth++
		case c == ']' || c == '}' || c == ')':
			depth--
		}
		if quote == 0 && c == '-' {
			repeated++
		} else if c != ' ' {
			repeated = 0
		}
		if depth > maxBrackets || repeated > maxBrackets {
			return row, column
		}
	}
	return 0, 0
}

// parse returns the module, or what is wrong with the source.
func (s source) parse(name string, capabilities *ast.Capabilities) (*ast.Module, []Problem) {
	options := ast.ParserOptions{
		RegoVersion:       ast.RegoV1,
		ProcessAnnotation: strings.Contains(s.text, "METADATA"),
		Capabilities:      capabilities,
	}
	module, err := ast.ParseModuleWithOpts(name, s.text, options)
	if err == nil && module == nil {
		return nil, []Problem{{Code: CodeParse, Message: "the policy is empty"}}
	}
	if err == nil {
		return module, nil
	}
	var errs ast.Errors
	if !errors.As(err, &errs) {
		if single := (*ast.Error)(nil); errors.As(err, &single) && strings.Contains(single.Message, "empty module") {
			return nil, []Problem{{Code: CodeParse, Message: "the policy is empty"}}
		}
		return nil, []Problem{{Code: CodeParse, Message: shorten(err.Error(), MaxMessageBytes)}}
	}
	problems := make([]Problem, 0, len(errs))
	for _, err := range errs {
		hint := ""
		if strings.Contains(err.Message, "keyword is required") {
			hint = "; this is Rego v0, and policies are Rego v1"
		}
		problems = append(problems, s.at(CodeParse, err.Location, "%s%s", err.Message, hint))
	}
	return nil, problems
}
