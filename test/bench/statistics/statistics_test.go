package statistics

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for name, tc := range map[string]struct {
		sorted []time.Duration
		q      float64
		want   time.Duration
	}{
		"half of a hundred values do not exceed the fiftieth":      {sorted: hundred, q: 0.50, want: 50},
		"ninety-nine of a hundred do not exceed the ninety-ninth":  {sorted: hundred, q: 0.99, want: 99},
		"a share that falls between two values takes the later":    {sorted: []time.Duration{1, 2, 3}, q: 0.5, want: 2},
		"the whole is the largest":                                 {sorted: []time.Duration{1, 2, 3}, q: 1, want: 3},
		"of few values the 99th percentile is the largest":         {sorted: []time.Duration{1, 2, 3}, q: 0.99, want: 3},
		"one value is every quantile":                              {sorted: []time.Duration{7}, q: 0.01, want: 7},
		"no values have the quantile zero instead of an index out": {sorted: nil, q: 0.5, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Quantile(tc.sorted, tc.q); got != tc.want {
				t.Errorf("Quantile(…, %v) = %v, want %v", tc.q, got, tc.want)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for name, tc := range map[string]struct {
		values []float64
		want   float64
	}{
		"an odd number has a middle":                 {values: []float64{9, 1, 5}, want: 5},
		"an even number has the mean of two":         {values: []float64{4, 1, 3, 2}, want: 2.5},
		"one wild value does not move it":            {values: []float64{1, 1e9, 2}, want: 2},
		"no values have none":                        {values: nil, want: math.NaN()},
		"one value is its own median, zero included": {values: []float64{0}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			before := append([]float64(nil), tc.values...)
			if diff := cmp.Diff(tc.want, Median(tc.values), cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("median (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.values); diff != "" {
				t.Errorf("the argument was reordered (-before +after):\n%s", diff)
			}
		})
	}
}

func TestMedianInterval(t *testing.T) {
	upTo := func(n int) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(n - i)
		}
		return values
	}
	// The expected ranks and confidences are those of printed tables of the sign test.
	for name, tc := range map[string]struct {
		values []float64
		want   Interval
	}{
		"no values know nothing":                                {values: nil, want: Interval{}},
		"one value has no confidence":                           {values: upTo(1), want: Interval{Low: 1, High: 1, Confidence: 0}},
		"five values cannot reach 95 % and say what they reach": {values: upTo(5), want: Interval{Low: 1, High: 5, Confidence: 0.9375}},
		"six values reach it with their whole range":            {values: upTo(6), want: Interval{Low: 1, High: 6, Confidence: 0.96875}},
		"nine values may leave out one at each end":             {values: upTo(9), want: Interval{Low: 2, High: 8, Confidence: 0.9609375}},
		"twenty values may leave out five at each end":          {values: upTo(20), want: Interval{Low: 6, High: 15, Confidence: 0.95861053}},
		"equal values are certain about themselves":             {values: []float64{3, 3, 3, 3, 3, 3}, want: Interval{Low: 3, High: 3, Confidence: 0.96875}},
		"a hundred values leave out thirty-nine at each end":    {values: upTo(100), want: Interval{Low: 40, High: 61, Confidence: 0.9647998}},
	} {
		t.Run(name, func(t *testing.T) {
			got := MedianInterval(tc.values, 0.95)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
				t.Errorf("interval (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPairs(t *testing.T) {
	a, b := []float64{3, 8, 5}, []float64{1, 2, 5}
	if diff := cmp.Diff([]float64{2, 6, 0}, Differences(a, b)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{3, 4, 1}, Ratios(a, b)); diff != "" {
		t.Errorf("ratios (-want +got):\n%s", diff)
	}
}
