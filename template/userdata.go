package template

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// userDataSuspicions finds parameters that are inserted into cloud-init's YAML as they are, or with the encoder sh. A value
// without a line break adds no key, but YAML's own syntax in it changes the meaning of its line, or makes the document
// invalid. A line break in a multiline parameter ends its block of text.
func (c *Compiled) userDataSuspicions(vm *node, w *warnings) {
	at := virtualMachineAt
	for _, key := range []string{"spec", "template", "spec", "volumes"} {
		if vm = vm.get(key); vm == nil {
			return
		}
		at = at.field(key)
	}
	for i := range vm.items {
		for _, source := range cloudInitSources {
			from := vm.items[i].get(source)
			if from == nil {
				continue
			}
			for _, key := range []string{"userData", "networkData"} {
				if text := from.get(key); text != nil && text.open != nil && text.open.segments != nil {
					c.documentSuspicions(text.open.segments, at.item(i).field(source).field(key), w)
				}
			}
		}
	}
}

// documentSuspicions checks one document, and warns once for each parameter.
func (c *Compiled) documentSuspicions(segments []segment, at *location, w *warnings) {
	var d document
	var warned []int
	script := strings.HasPrefix(segments[0].text, "#!")
	if script || len(segments) == 1 {
		return // no YAML, or a parameter that gives the document
	}
	for _, s := range segments {
		if s.parameter == noParameter {
			d.literal(s.text)
			continue
		}
		p := &c.parameters[s.parameter]
		if s.encoder != encodeNone && s.encoder != encodeShell || slices.Contains(warned, s.parameter) || w.full() {
			d.placeholder()
			continue
		}
		switch where := d.context(); {
		case p.Multiline && where == inBlock:
			w.add("%s: line %d: a line break in %s ends its block of text: write ${%s|yaml} as a whole value elsewhere, or declare it without multiline", at, d.line+1, p.Name, p.Name)
			warned = append(warned, s.parameter)
		case !p.Multiline && where == inBlock, p.staysInYAML(where):
		default:
			w.add("%s: line %d: YAML reads ': ', ' #' and quotes in %s: write ${%s|yaml} as the whole value, without quotes, or give it a pattern", at, d.line+1, p.Name, p.Name)
			warned = append(warned, s.parameter)
		}
		d.placeholder()
	}
}

// document is a text of YAML as far as it has been read, by lines. It supports as much of YAML as a warning needs.
type document struct {
	line    int
	current string // the line, up to the current position
	block   int    // 1 + the indentation of the node with a block of text, or 0
}

// context is the YAML context of a placeholder.
type context uint8

const (
	inPlain  context = iota
	inDouble         // between double quotes
	inSingle         // between single quotes
	inBlock          // in a block of text or a comment, which ends with a line
)

// blockHeader matches the end of a line that begins a block of text.
var blockHeader = regexp.MustCompile(`(^|[ ])[|>][-+0-9]*[ ]*$`)

func (d *document) literal(text string) {
	for {
		line, rest, ended := strings.Cut(text, "\n")
		d.current += line
		if !ended {
			return
		}
		if !d.inBlock() {
			d.block = 0
			if blockHeader.MatchString(d.current) {
				d.block = 1 + nodeIndent(d.current)
			}
		}
		d.line++
		d.current, text = "", rest
	}
}

// placeholder appends a stand-in for a value, which ends no line and no block.
func (d *document) placeholder() { d.current += "x" }

// inBlock reports whether the line belongs to a block of text.
func (d *document) inBlock() bool {
	text := strings.TrimLeft(d.current, " ")
	return d.block > 0 && (text == "" || len(d.current)-len(text) >= d.block)
}

// nodeIndent returns the indentation of the node that a block of text belongs to: its key, or the dash of its item.
func nodeIndent(line string) int {
	rest := strings.TrimLeft(line, " ")
	indent := len(line) - len(rest)
	for {
		item, isItem := strings.CutPrefix(rest, "- ")
		item = strings.TrimLeft(item, " ")
		if !isItem || strings.HasPrefix(item, "|") || strings.HasPrefix(item, ">") {
			return indent
		}
		indent += len(rest) - len(item)
		rest = item
	}
}

func (d *document) context() context {
	d.current += "x"
	defer func() { d.current = d.current[:len(d.current)-1] }()
	if d.inBlock() || strings.HasPrefix(strings.TrimLeft(d.current, " "), "#") {
		return inBlock
	}
	where := inPlain
	for i := 0; i < len(d.current); i++ {
		switch c := d.current[i]; {
		case c == '\\' && where == inDouble:
			i++
		case c == '"' && where != inSingle:
			where = toggled(where, inDouble)
		case c == '\'' && where != inDouble:
			where = toggled(where, inSingle)
		}
	}
	return where
}

func toggled(where, quotes context) context {
	if where == quotes {
		return inPlain
	}
	return quotes
}

// indicators are the characters that change the meaning, by context.
var indicators = [...]string{inPlain: ":#\"'{}[],&*!|>%@`\n", inDouble: "\"\\\n", inSingle: "'\n"}

// staysInYAML reports whether every value of the parameter is read as that value.
func (p *parameter) staysInYAML(where context) bool {
	switch {
	case len(p.Enum) > 0, p.Type != "" && p.Type != v1beta1.ParameterTypeString:
		return true
	case p.Pattern == "":
		return false
	}
	parsed, err := syntax.Parse(p.Pattern, syntax.Perl)
	return err == nil && !mayHold(parsed, indicators[where])
}

// mayHold reports whether texts that an expression matches may contain any of the characters. It may return true wrongly,
// never false.
func mayHold(r *syntax.Regexp, characters string) bool {
	switch r.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return true
	case syntax.OpLiteral:
		return strings.ContainsAny(characters, string(r.Rune))
	case syntax.OpCharClass:
		for i := 0; i < len(r.Rune); i += 2 {
			if strings.ContainsFunc(characters, func(c rune) bool { return c >= r.Rune[i] && c <= r.Rune[i+1] }) {
				return true
			}
		}
		return false
	default:
		return slices.ContainsFunc(r.Sub, func(sub *syntax.Regexp) bool { return mayHold(sub, characters) })
	}
}
