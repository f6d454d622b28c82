// Package machine describes the class of the host that the benchmarks ran on.
package machine
