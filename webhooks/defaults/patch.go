package defaults

import (
	"strconv"
	"strings"

	"github.com/vmstencil/stencil/defaulting"
)

// patch collects the operations of a JSON Patch (RFC 6902) and applies them to a decoded object at the same time.
type patch struct{ operations []defaulting.PatchOperation }

// put sets a member of the object at the pointer.
func (p *patch) put(object map[string]any, at pointer, key string, value any) {
	object[key] = value
	// "add" replaces a member that exists.
	p.operations = append(p.operations, defaulting.PatchOperation{Op: "add", Path: at.child(key).String(), Value: value})
}

// drop removes a member of the object at the pointer, if it exists.
func (p *patch) drop(object map[string]any, at pointer, key string) {
	if _, found := object[key]; !found {
		return
	}
	delete(object, key)
	p.operations = append(p.operations, defaulting.PatchOperation{Op: "remove", Path: at.child(key).String()})
}

// pointer is a JSON Pointer (RFC 6901), as its unescaped tokens.
type pointer []string

func (p pointer) child(token string) pointer {
	return append(p[:len(p):len(p)], token)
}

func (p pointer) item(index int) pointer { return p.child(strconv.Itoa(index)) }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func (p pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(pointerEscapes.Replace(token))
	}
	return b.String()
}
