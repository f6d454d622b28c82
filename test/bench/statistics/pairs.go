package statistics

// Differences returns a minus b of each round. Both must have the same length: the i-th values belong to one round, so what disturbed the host in
// that round disturbed both.
func Differences(a, b []float64) []float64 {
	return pairs(a, b, func(a, b float64) float64 { return a - b })
}

// Ratios returns a over b of each round, under the same condition.
func Ratios(a, b []float64) []float64 {
	return pairs(a, b, func(a, b float64) float64 { return a / b })
}

func pairs(a, b []float64, of func(a, b float64) float64) []float64 {
	result := make([]float64, len(a))
	for i := range a {
		result[i] = of(a[i], b[i])
	}
	return result
}
