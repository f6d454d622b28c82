// Package metrics reads counters in the text format of Prometheus
// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
package metrics

import (
	"fmt"
	"strconv"
	"strings"
)

// Sum adds up the series of a metric that have all of these labels, which are as the text has them: `operation="CREATE"`. Without any
// such series it is 0. A value that is no number is an error.
func Sum(text, name string, labels ...string) (float64, error) {
	total := 0.0
	for line := range strings.Lines(text) {
		series, found := strings.CutPrefix(line, name+"{")
		if !found {
			continue
		}
		end := strings.LastIndex(series, "} ")
		if end < 0 || !hasAll(series[:end], labels) {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(series[end+2:]), 64)
		if err != nil {
			return 0, fmt.Errorf("reading the value of metric %s: %w", name, err)
		}
		total += value
	}
	return total, nil
}

// Value returns the value of one series, whose name has its labels as the text has them. It is 0 when there is none.
func Value(text, series string) float64 {
	for line := range strings.Lines(text) {
		if number, found := strings.CutPrefix(line, series+" "); found {
			value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil {
				return 0
			}
			return value
		}
	}
	return 0
}

func hasAll(series string, labels []string) bool {
	for _, label := range labels {
		if !strings.Contains(series, label) {
			return false
		}
	}
	return true
}
