package template

// Steps is how much work a comparison was.
func (m *Match) Steps() int { return m.steps }
