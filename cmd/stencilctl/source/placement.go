package source

import (
	"bytes"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// placement is the position of a module in its file. The zero value is unknown.
type placement struct {
	known bool
	// row and column are added to those in the module.
	row, column int
}

// whole is the placement of a module that is a separate file.
var whole = placement{known: true}

// Whole locates positions in a module that is a separate file.
type Whole struct{}

// Locate is like Policy.Locate.
func (Whole) Locate(row, column int) (fileRow, fileColumn int, known bool) { return row, column, true }

// placementOf returns the placement of a module in a manifest. It is known only for a literal
// block (`|`), the usual form: in other forms, rows of the module are not rows of the file.
func placementOf(d *document, module string) placement {
	node := d.node("spec", "rego")
	if node == nil || node.Style&yamlv3.LiteralStyle == 0 {
		return placement{}
	}
	lines := bytes.Split(d.text, []byte("\n"))
	p := placement{known: true, row: node.Line, column: -1}
	for i, want := range strings.Split(strings.TrimRight(module, "\n"), "\n") {
		if p.row+i >= len(lines) {
			return placement{}
		}
		written := strings.TrimSuffix(string(lines[p.row+i]), "\r")
		indent := len(written) - len(want)
		switch {
		case strings.TrimSpace(want) == "":
			continue // the indentation of an empty line is free
		case indent < 0 || written[indent:] != want || strings.TrimLeft(written[:indent], " ") != "":
			return placement{}
		case p.column < 0:
			p.column = indent
		case p.column != indent:
			return placement{}
		}
	}
	p.column = max(p.column, 0)
	p.row += d.row
	return p
}

// replace replaces a module in a file by another one.
func (p placement) replace(content []byte, module, by string) []byte {
	lines := strings.SplitAfter(string(content), "\n")
	last := p.row + len(strings.Split(strings.TrimRight(module, "\n"), "\n"))
	indent := strings.Repeat(" ", p.column)

	var out strings.Builder
	out.WriteString(strings.Join(lines[:p.row], ""))
	for _, line := range strings.Split(strings.TrimRight(by, "\n"), "\n") {
		if line != "" {
			out.WriteString(indent)
		}
		out.WriteString(line + "\n")
	}
	out.WriteString(strings.Join(lines[min(last, len(lines)):], ""))
	return []byte(out.String())
}
