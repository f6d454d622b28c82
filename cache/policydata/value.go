package policydata

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/rego"
)

// MaximumBytes is the length of the text of a key, and of its value as JSON.
const MaximumBytes = 64 << 10

// text is a key of a ConfigMap. Most are never read, so it is decoded when it is.
type text struct {
	size int
	text string // empty if it is too long
	once sync.Once

	value *rego.Value
	err   error
}

func newText(written string) *text {
	t := &text{size: len(written)}
	if t.size <= MaximumBytes {
		t.text = written
	}
	return t
}

// read returns the value. The error has no subject: "has 70000 bytes …".
func (t *text) read() (*rego.Value, error) {
	t.once.Do(func() {
		if t.err = checkSize(t.size); t.err == nil {
			t.value, t.err = Decode(t.text)
		}
	})
	return t.value, t.err
}

func checkSize(bytes int) error {
	if bytes > MaximumBytes {
		return fmt.Errorf("has %d bytes; at most %d are allowed", bytes, MaximumBytes)
	}
	return nil
}

// Decode reads the text of a key: an object or a list in YAML or JSON, or any other text as a string. The error has no subject: "is no valid YAML …".
func Decode(written string) (*rego.Value, error) {
	if err := checkSize(len(written)); err != nil {
		return nil, err
	}
	if strings.Contains("\n"+strings.TrimPrefix(strings.TrimSpace(written), "---"), "\n---\n") {
		return nil, errors.New("has several YAML documents; one is allowed")
	}
	raw, err := yaml.YAMLToJSONStrict([]byte(written))
	if err != nil {
		return nil, fmt.Errorf("is no valid YAML: %s", strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
	}
	if len(raw) > MaximumBytes {
		return nil, fmt.Errorf("has %d bytes as JSON; at most %d are allowed", len(raw), MaximumBytes)
	}
	if raw[0] == '{' || raw[0] == '[' {
		return rego.DecodeValue(raw)
	}
	return rego.NewValue(written)
}
