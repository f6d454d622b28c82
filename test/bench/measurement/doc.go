// Package measurement repeats a piece of work and measures the cost of one repetition.
package measurement
