package approval

import (
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// InvalidError is what Compile returns for an approval that it cannot compile. The causes have paths such as spec.overrides[2].
type InvalidError struct {
	Causes field.ErrorList
}

// Error lists all causes.
func (e *InvalidError) Error() string {
	return e.Causes.ToAggregate().Error()
}

// omitted replaces an invalid value that must not or need not be shown.
var omitted = field.OmitValueType{}

// maxShown is how many bytes of a value a cause shows.
const maxShown = 128

// shown returns a text in the form of causes, shortened to maxShown.
func shown(text string) string {
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
