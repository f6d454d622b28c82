package main

import "strings"

// list is the value of a flag that takes several words separated by commas.
type list []string

// String implements flag.Value.
func (l *list) String() string {
	return strings.Join(*l, ",")
}

// Set implements flag.Value. Spaces around words and empty words do not count.
func (l *list) Set(text string) error {
	*l = nil
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			*l = append(*l, word)
		}
	}
	return nil
}
