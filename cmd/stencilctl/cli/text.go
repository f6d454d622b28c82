package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Count returns a number with its noun: "1 file", "2 files".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Columns writes rows in aligned columns, as kubectl does.
func Columns(w io.Writer, rows ...[]string) error {
	table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return Internal(fmt.Errorf("writing the output: %w", err))
	}
	return nil
}

// Placed names an object in messages by its resource, namespace and name. A name alone would not say where a command has created it.
func Placed(resource, namespace, name string) string {
	if namespace == "" {
		return resource + "/" + name
	}
	return resource + " " + namespace + "/" + name
}

// Named returns a name, or what is known of one that the cluster generates from a prefix.
func Named(name, prefix string) string {
	if name != "" || prefix == "" {
		return name
	}
	return prefix + "* (generated)"
}
