// Package machine describes what the benchmarks ran on, as a class and not as an individual.
package machine
