// Package mutation makes the answers of mutating webhooks: JSON Patches (RFC 6902).
package mutation

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/vmstencil/stencil/defaulting"
)

// Patch is a list of operations. It uses "add" for replacing too: by RFC 6902, "add" replaces a member that exists, so that no
// operation depends on the previous state.
type Patch struct{ Operations []defaulting.PatchOperation }

// Set adds or replaces the value at a pointer.
func (p *Patch) Set(at Pointer, value any) {
	p.Operations = append(p.Operations, defaulting.PatchOperation{Op: "add", Path: at.String(), Value: value})
}

// Remove removes the value at a pointer, which must exist.
func (p *Patch) Remove(at Pointer) {
	p.Operations = append(p.Operations, defaulting.PatchOperation{Op: "remove", Path: at.String()})
}

// Put sets a member of the object at a pointer, in the patch and in the object.
func (p *Patch) Put(object map[string]any, at Pointer, key string, value any) {
	object[key] = value
	p.Set(at.Child(key), value)
}

// Drop removes a member of the object at a pointer, in the patch and in the object, if it exists.
func (p *Patch) Drop(object map[string]any, at Pointer, key string) {
	if _, found := object[key]; found {
		delete(object, key)
		p.Remove(at.Child(key))
	}
}

// Marshal returns the patch as JSON, nil if it is empty. It fails for values that JSON does not have.
func (p *Patch) Marshal() ([]byte, error) {
	if len(p.Operations) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(p.Operations)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return raw, nil
}

// Pointer is a JSON Pointer (RFC 6901), as its unescaped tokens.
type Pointer []string

// Child returns the pointer of a member.
func (p Pointer) Child(token string) Pointer { return append(p[:len(p):len(p)], token) }

// Item returns the pointer of an item of a list.
func (p Pointer) Item(index int) Pointer { return p.Child(strconv.Itoa(index)) }

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// String returns the pointer as RFC 6901 writes it.
func (p Pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(escapes.Replace(token))
	}
	return b.String()
}
