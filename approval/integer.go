package approval

import "strconv"

// isInteger reports whether text is an integer in JSON syntax, of any size.
func isInteger(text string) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	if text == "" || text[0] == '0' && len(text) > 1 {
		return false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// compareInteger compares an integer of any size with a bound.
func compareInteger(text string, bound int64) int {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil && n == bound:
		return 0
	case err == nil && n < bound, err != nil && text[0] == '-':
		return -1
	default:
		return 1
	}
}
