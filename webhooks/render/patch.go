package render

import (
	"encoding/json"
	"fmt"
	"strings"
)

// operation is one operation of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch collects operations. It uses "add" for replacing too: by RFC 6902, "add" replaces a member that exists, so
// that no operation depends on the previous state.
type patch struct{ operations []operation }

func (p *patch) set(pointer pointer, value any) {
	p.operations = append(p.operations, operation{Op: "add", Path: pointer.String(), Value: value})
}

func (p *patch) remove(pointer pointer) {
	p.operations = append(p.operations, operation{Op: "remove", Path: pointer.String()})
}

func (p *patch) marshal() ([]byte, error) {
	if len(p.operations) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(p.operations)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return raw, nil
}

// pointer is a JSON Pointer (RFC 6901), as its unescaped tokens.
type pointer []string

func (p pointer) child(token string) pointer {
	return append(p[:len(p):len(p)], token)
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func (p pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(pointerEscapes.Replace(token))
	}
	return b.String()
}
