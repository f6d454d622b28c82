package report

import (
	"fmt"
	"io"
	"strings"
)

// Section is the result of one benchmark.
type Section struct {
	// Name of the benchmark on the command line and in the markers of the document.
	Name string
	// Context describes where and when it was measured, in one line.
	Context string
	Tables  []Table
	Targets []Target
	// Notes are sentences that a reader needs to evaluate the numbers.
	Notes []string
}

// Table is a grid with a heading. The first column is text, all others are numbers.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// Target is a limit of the project, beside the measured value.
type Target struct {
	What, Wanted, Measured string
	Met                    bool
}

// tables returns the section's tables and, last, that of its targets.
func (s Section) tables() []Table {
	if len(s.Targets) == 0 {
		return s.Tables
	}
	targets := Table{Title: "Targets", Columns: []string{"target", "wanted", "measured", "met"}}
	for _, t := range s.Targets {
		met := "yes"
		if !t.Met {
			met = "NO"
		}
		targets.Rows = append(targets.Rows, []string{t.What, t.Wanted, t.Measured, met})
	}
	return append(append([]Table{}, s.Tables...), targets)
}

// Text writes the section for a terminal.
func (s Section) Text(out io.Writer) {
	fmt.Fprintf(out, "\n== %s: %s\n", s.Name, s.Context)
	for _, table := range s.tables() {
		fmt.Fprintf(out, "\n%s\n", table.Title)
		widths := table.widths()
		for _, row := range append([][]string{table.Columns}, table.Rows...) {
			fmt.Fprintln(out, "  "+strings.TrimRight(strings.Join(aligned(row, widths), "  "), " "))
		}
	}
	for _, note := range s.Notes {
		fmt.Fprintf(out, "\nnote: %s\n", note)
	}
}

// Markdown writes the section for the document, below a heading that the document itself has.
func (s Section) Markdown(out io.Writer) {
	fmt.Fprintf(out, "Measured %s.\n", s.Context)
	for _, table := range s.tables() {
		fmt.Fprintf(out, "\n**%s**\n\n", table.Title)
		widths := table.widths()
		rule := make([]string, len(widths))
		for i, width := range widths {
			rule[i] = strings.Repeat("-", width-1) + ":"
		}
		rule[0] = strings.Repeat("-", widths[0])
		for i, row := range append([][]string{table.Columns, rule}, table.Rows...) {
			if i != 1 {
				row = aligned(row, widths)
			}
			fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
		}
	}
	for _, note := range s.Notes {
		fmt.Fprintf(out, "\n%s\n", note)
	}
}

// widths returns the width of each column in characters, three at least: Markdown needs room for its rule.
func (t Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(3, widths[i], len([]rune(cell)))
		}
	}
	return widths
}

// aligned pads the cells: text to the left, numbers to the right.
func aligned(row []string, widths []int) []string {
	padded := make([]string, len(row))
	for i, cell := range row {
		space := strings.Repeat(" ", widths[i]-len([]rune(cell)))
		if i == 0 {
			padded[i] = cell + space
		} else {
			padded[i] = space + cell
		}
	}
	return padded
}
