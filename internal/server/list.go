package server

import "strings"

// List is the value of a flag that takes several words separated by commas.
type List []string

// String implements flag.Value.
func (l *List) String() string {
	return strings.Join(*l, ",")
}

// Set implements flag.Value. Spaces around words and empty words are ignored.
func (l *List) Set(text string) error {
	*l = nil
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			*l = append(*l, word)
		}
	}
	return nil
}
