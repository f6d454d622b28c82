// Package statistics sums up repeated measurements without assuming anything about their distribution: latencies have long
// tails, and a round that met a busy machine must not move the result.
package statistics
