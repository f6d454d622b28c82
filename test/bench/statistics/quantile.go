package statistics

import (
	"math"
	"slices"
	"time"
)

// Quantile returns the smallest of the sorted values that at least the share q of them does not exceed (the nearest rank: a
// value that was measured, never one in between). q lies in (0, 1]. It is 0 for no values.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median returns the middle of the values, the mean of the two middle ones when their number is even, and NaN for none. It
// leaves the order of its argument alone.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
