// Package excerpt cuts texts to the lengths that the API server accepts.
package excerpt

import "unicode/utf8"

// mark replaces what was cut off.
const mark = "…"

// Of returns text, cut at a character when it has more than limit bytes, with a mark at the end that counts. A limit below the
// three bytes of the mark leaves nothing.
func Of(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len(mark)
	if end < 0 {
		return ""
	}
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
