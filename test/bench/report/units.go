package report

import (
	"fmt"
	"math"
	"time"
)

// Milliseconds prints a duration with two digits after the point, the resolution at which admission latencies differ.
func Milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// SignedMilliseconds prints a difference of durations, given in nanoseconds, with its sign.
func SignedMilliseconds(nanoseconds float64) string {
	return fmt.Sprintf("%+.2f ms", nanoseconds/float64(time.Millisecond))
}

// Microseconds prints nanoseconds with three significant digits.
func Microseconds(nanoseconds float64) string {
	return significant(nanoseconds/float64(time.Microsecond)) + " µs"
}

// MiB prints bytes.
func MiB(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// Seconds prints a duration with two digits after the point.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// Times prints a ratio.
func Times(ratio float64) string { return significant(ratio) + "×" }

// significant prints a positive number with at least three significant digits and without an exponent.
func significant(value float64) string {
	digits := 2
	if value > 0 {
		digits = min(max(0, 2-int(math.Floor(math.Log10(value)))), 6)
	}
	return fmt.Sprintf("%.*f", digits, value)
}
