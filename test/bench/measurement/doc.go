// Package measurement repeats a piece of work and says what one repetition costs.
package measurement
