package template

import "fmt"

// maxWarnings is the maximum number of warnings of a template.
const maxWarnings = 32

// warnings collects what is suspicious about a template but valid.
type warnings struct {
	list []string
}

func (w *warnings) full() bool { return len(w.list) >= maxWarnings }

func (w *warnings) add(format string, arguments ...any) {
	if !w.full() {
		w.list = append(w.list, fmt.Sprintf(format, arguments...))
	}
}
