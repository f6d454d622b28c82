// Package statistics sums up repeated measurements without assuming anything about their distribution: latencies have long tails, and a round on a
// busy host must not change the result.
package statistics
