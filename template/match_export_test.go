package template

// Steps returns the number of steps of a comparison.
func (m *Match) Steps() int { return m.steps }
