// Package excerpt cuts texts and lists to the lengths that the API server accepts and messages show.
package excerpt

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

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

// List joins entries by commas: the first limit ones, and the number of the others. noun names what is counted; it may be empty.
func List(entries []string, limit int, noun string) string {
	more := len(entries) - limit
	if more <= 0 {
		return strings.Join(entries, ", ")
	}
	return strings.TrimSuffix(fmt.Sprintf("%s and %d more %s", strings.Join(entries[:limit], ", "), more, noun), " ")
}

// Sentences joins texts by semicolons: the first limit ones, and the number of the others.
func Sentences(texts []string, limit int) string {
	joined := strings.Join(texts[:min(len(texts), limit)], "; ")
	if more := len(texts) - limit; more > 0 {
		joined += fmt.Sprintf("; and %d more", more)
	}
	return joined
}
