// Package report turns what was measured into tables, for a terminal and for docs/performance.md, from the same data.
package report
