package statistics

import (
	"math"
	"slices"
)

// Interval is a range that holds the true median with at least the probability Confidence.
type Interval struct {
	Low, High  float64
	Confidence float64
}

// MedianInterval returns the narrowest pair of values, symmetric in rank, that encloses the median with the given confidence (0.95, say), whatever
// the distribution: the number of values below the median is binomial with one half. Too few values cannot reach the confidence; then the interval is
// their whole range and contains the reached one. It is zero for no values. (H. A. David, H. N. Nagaraja: Order Statistics, section 7.1.)
func MedianInterval(values []float64, confidence float64) Interval {
	n := len(values)
	if n == 0 {
		return Interval{}
	}
	sorted := slices.Sorted(slices.Values(values))
	result := Interval{Low: sorted[0], High: sorted[n-1], Confidence: enclosing(n, 1)}
	for rank := 2; rank <= (n+1)/2; rank++ {
		reached := enclosing(n, rank)
		if reached < confidence {
			break
		}
		result = Interval{Low: sorted[rank-1], High: sorted[n-rank], Confidence: reached}
	}
	return result
}

// enclosing is the probability that the median lies between the value of the given rank and the one of the same rank from the
// other end, among n values.
func enclosing(n, rank int) float64 {
	outside := 0.0
	for k := range rank {
		outside += 2 * math.Exp(logChoose(n, k)-float64(n)*math.Ln2)
	}
	return max(0, 1-outside)
}

func logChoose(n, k int) float64 {
	whole, _ := math.Lgamma(float64(n + 1))
	chosen, _ := math.Lgamma(float64(k + 1))
	left, _ := math.Lgamma(float64(n - k + 1))
	return whole - chosen - left
}
