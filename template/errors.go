package template

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// InvalidError is returned by Compile, Bind, BindName and Render if the template or the given values are invalid. Its causes
// are in the order of their places, and name
//
//   - places in the template, such as spec.parameters[0].name or
//     spec.virtualMachine.spec.template.spec.domain.cpu.cores,
//   - parameters[NAME] for a value that the caller gave,
//   - metadata.name for a name given to BindName.
//
// No cause contains the value of a sensitive parameter, nor more than a line of any other value. After 256 causes the rest
// are only counted.
type InvalidError struct {
	Causes field.ErrorList
}

// Error lists all causes.
func (e *InvalidError) Error() string {
	if len(e.Causes) == 0 {
		return "invalid for no stated cause"
	}
	return e.Causes.ToAggregate().Error()
}

// problems collects causes.
type problems struct {
	causes field.ErrorList
	more   int
}

func (p *problems) add(cause *field.Error) {
	if p.full() {
		p.more++
		return
	}
	p.causes = append(p.causes, cause)
}

func (p *problems) full() bool { return len(p.causes) >= maxCauses }

func (p *problems) any() bool { return len(p.causes) > 0 }

func (p *problems) count() int { return len(p.causes) + p.more }

func (p *problems) merge(others problems) {
	for _, cause := range others.causes {
		p.add(cause)
	}
	p.more += others.more
}

// invalid adds a cause of the type Invalid. Its value is shown unless it is omitted.
func (p *problems) invalid(at string, value any, format string, arguments ...any) {
	p.add(&field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: value, Detail: fmt.Sprintf(format, arguments...)})
}

// err returns the collected causes as an InvalidError, or nil.
func (p *problems) err() error {
	if !p.any() {
		return nil
	}
	causes := p.causes
	if p.more > 0 {
		causes = append(causes[:len(causes):len(causes)], &field.Error{
			Type: field.ErrorTypeTooMany, Field: "spec", BadValue: omitted,
			Detail: fmt.Sprintf("%d more causes are not listed", p.more),
		})
	}
	return &InvalidError{Causes: causes}
}

// omitted replaces an offending value that must not or need not be shown.
var omitted = field.OmitValueType{}

// shown returns an offending text as a cause shows it.
func shown(text string) any {
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// tooLarge returns the cause for an exceeded limit.
func tooLarge(at, what string, size, limit int, unit string) *field.Error {
	return &field.Error{
		Type: field.ErrorTypeInvalid, Field: at, BadValue: omitted,
		Detail: fmt.Sprintf("%s must be at most %d %s, and is %d", what, limit, unit, size),
	}
}

// unsupported returns the cause for a value that is not in a list. A long list is truncated.
func unsupported[T ~string](at string, value any, values []T) *field.Error {
	const listed = 16
	var detail strings.Builder
	detail.WriteString("must be one of ")
	for i, v := range values {
		if i == listed {
			fmt.Fprintf(&detail, " and %d more", len(values)-listed)
			break
		}
		if i > 0 {
			detail.WriteString(", ")
		}
		fmt.Fprintf(&detail, "%q", shown(string(v)))
	}
	return &field.Error{Type: field.ErrorTypeNotSupported, Field: at, BadValue: value, Detail: detail.String()}
}
