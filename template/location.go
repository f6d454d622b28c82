package template

import "strconv"

// location is a place in a template. It is built while walking, and converted to text only if a problem is reported.
type location struct {
	parent *location
	name   string
	index  int
	step   step
}

type step uint8

const (
	stepRoot step = iota
	stepField
	stepKey
	stepIndex
)

var (
	specAt           = &location{name: "spec"}
	virtualMachineAt = specAt.field("virtualMachine")
	parametersAt     = specAt.field("parameters")
	labelsAt         = specAt.field("objectLabels")
	objectsAt        = specAt.field("objects")
	messageAt        = specAt.field("message")
)

func (l *location) field(name string) *location {
	return &location{parent: l, name: name, step: stepField}
}

func (l *location) key(name string) *location {
	return &location{parent: l, name: name, step: stepKey}
}

func (l *location) item(index int) *location {
	return &location{parent: l, index: index, step: stepIndex}
}

// member returns a field or a key, depending on the characters of the name. It is used if no schema determines whether an
// object is a struct or a map.
func (l *location) member(name string) *location {
	for i := 0; i < len(name); i++ {
		if c := name[i]; !isWord(c) {
			return l.key(name)
		}
	}
	if name == "" {
		return l.key(name)
	}
	return l.field(name)
}

// String returns the place in the form of k8s.io/apimachinery's field.Path.
func (l *location) String() string {
	return string(l.append(nil))
}

func (l *location) append(b []byte) []byte {
	if l.parent != nil {
		b = l.parent.append(b)
	}
	name := l.name
	if l.parent != nil && len(name) > maxShown {
		name = shown(name).(string)
	}
	switch l.step {
	case stepRoot:
		return append(b, name...)
	case stepField:
		return append(append(b, '.'), name...)
	case stepKey:
		return append(append(append(b, '['), name...), ']')
	default:
		return append(strconv.AppendInt(append(b, '['), int64(l.index), 10), ']')
	}
}

// isWord reports whether c may be in the name of a parameter.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
