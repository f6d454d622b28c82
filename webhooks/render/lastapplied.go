package render

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/internal/mutation"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const (
	lastAppliedAnnotation = machine.AnnotationKubectl

	// maximumManifest is the maximum size of a manifest after decompression, in bytes. Objects are smaller.
	maximumManifest = 4 << 20
	// maximumNesting is the depth to which manifests in annotations of manifests are read.
	maximumNesting = 3
)

// discard removes annotations with these keys. It returns the pointers of those that it removed.
func discard(p *mutation.Patch, annotations map[string]any, keys ...string) (removed []mutation.Pointer) {
	for _, key := range keys {
		if _, found := annotations[key]; found {
			at := mutation.Pointer{"metadata", "annotations", key}
			p.Remove(at)
			removed = append(removed, at)
		}
	}
	return removed
}

// forget removes the annotations of the given parameters from the object, and from the manifests that clients store
// in annotations of their own. A manifest that cannot be decoded is removed as a whole, because it might contain
// them; so is an annotation that still has the key or the value of a parameter, in another spelling, encoding or place.
// forget returns the pointers of the annotations that it removed.
func forget(p *mutation.Patch, annotations map[string]any, parameters []string) (removed []mutation.Pointer) {
	var keys, values []string
	for _, name := range parameters {
		key := contract.AnnotationParameterPrefix + name
		keys, values = append(keys, key), append(values, machine.StringAt(annotations, key))
	}
	removed = discard(p, annotations, keys...)
	if len(keys) == 0 {
		return removed
	}
	m := manifests{keys: keys}
	changes := m.without(annotations, 0)
	found := newTraces(keys, append(values, m.values...))
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		change := slices.IndexFunc(changes, func(c rewritten) bool { return c.key == key })
		text := machine.StringAt(annotations, key)
		if change >= 0 {
			text = changes[change].text
		}
		switch {
		case text == "", template.IsContract(key) && key != lastAppliedAnnotation, !found.in(key, text):
		case change >= 0:
			changes[change].text = ""
		default:
			changes = append(changes, rewritten{key: key})
		}
	}
	for _, c := range slices.Clone(changes) {
		if c.key == machine.AnnotationKapp && annotations[machine.AnnotationKappMD5] != nil && !contains(changes, machine.AnnotationKappMD5) {
			changes = append(changes, rewritten{key: machine.AnnotationKappMD5})
		}
	}
	at := mutation.Pointer{"metadata", "annotations"}
	for _, c := range changes {
		if c.text == "" {
			removed = append(removed, discard(p, annotations, c.key)...)
			continue
		}
		p.Set(at.Child(c.key), c.text)
	}
	return removed
}

// rewritten is a new value of an annotation; the annotation is removed if it is empty.
type rewritten struct{ key, text string }

// manifests removes annotations with these keys from manifests, and collects their values.
type manifests struct{ keys, values []string }

// without returns the changes that remove the annotations from all manifests in annotations.
func (m *manifests) without(annotations map[string]any, nesting int) (changes []rewritten) {
	for _, manifest := range []struct {
		key  string
		read func(string) ([]byte, error)
		// write is the inverse of read.
		write func([]byte) (string, error)
		// dependent annotations are removed with any change.
		dependent []string
	}{
		{key: machine.AnnotationKubectl, read: plain, write: encodePlain},
		{key: machine.AnnotationKapp, read: plain, write: encodePlain,
			dependent: []string{machine.AnnotationKappMD5, machine.AnnotationKappDiff, machine.AnnotationKappFullDiff}},
		{key: machine.AnnotationWrangler, read: expand, write: compress},
	} {
		text := machine.StringAt(annotations, manifest.key)
		if text == "" {
			continue
		}
		without, changed := m.manifest(text, manifest.read, manifest.write, nesting)
		if !changed {
			continue
		}
		changes = append(changes, rewritten{manifest.key, without})
		for _, key := range manifest.dependent {
			if annotations[key] != nil {
				changes = append(changes, rewritten{key: key})
			}
		}
	}
	// These are removed without decoding: the clients that set them work without them.
	for _, key := range []string{machine.AnnotationBanzai, machine.AnnotationKappDiff, machine.AnnotationKappFullDiff} {
		if annotations[key] != nil && !contains(changes, key) {
			changes = append(changes, rewritten{key: key})
		}
	}
	return changes
}

func contains(changes []rewritten, key string) bool {
	for _, c := range changes {
		if c.key == key {
			return true
		}
	}
	return false
}

// manifest returns a manifest without the annotations, and whether it changed. The manifest is empty if it cannot be decoded.
func (m *manifests) manifest(text string, read func(string) ([]byte, error), write func([]byte) (string, error), nesting int) (without string, changed bool) {
	if nesting == maximumNesting {
		return "", true
	}
	raw, err := read(text)
	if err != nil {
		return "", true
	}
	manifest, err := machine.Decode(raw)
	if err != nil {
		return "", true
	}
	object, errs := machine.Read(manifest)
	if len(errs) > 0 {
		return "", true
	}
	for _, key := range m.keys {
		if value, found := object.Annotations[key]; found {
			if text, is := value.(string); is {
				m.values = append(m.values, text)
			}
			delete(object.Annotations, key)
			changed = true
		}
	}
	for _, c := range m.without(object.Annotations, nesting+1) {
		changed = true
		if c.text == "" {
			delete(object.Annotations, c.key)
		} else {
			object.Annotations[c.key] = c.text
		}
	}
	if !changed {
		return text, false
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out) // ends with a line feed, as kubectl's does
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(manifest); err != nil {
		return "", true
	}
	if without, err = write(out.Bytes()); err != nil {
		return "", true
	}
	return without, true
}

func plain(text string) ([]byte, error)      { return []byte(text), nil }
func encodePlain(raw []byte) (string, error) { return string(raw), nil }

// expand decodes a manifest of wrangler: plain JSON, or compressed.
func expand(text string) ([]byte, error) {
	if strings.HasPrefix(text, "{") {
		return []byte(text), nil
	}
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, fmt.Errorf("decoding a manifest: %w", err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("expanding a manifest: %w", err)
	}
	expanded, err := io.ReadAll(io.LimitReader(reader, maximumManifest+1))
	if err != nil {
		return nil, fmt.Errorf("expanding a manifest: %w", err)
	}
	if len(expanded) > maximumManifest {
		return nil, errors.New("a manifest is too large")
	}
	return expanded, nil
}

func compress(raw []byte) (string, error) {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := writer.Write(raw); err != nil {
		return "", fmt.Errorf("compressing a manifest: %w", err)
	}
	if err := writer.Close(); err != nil {
		return "", fmt.Errorf("compressing a manifest: %w", err)
	}
	return base64.RawStdEncoding.EncodeToString(out.Bytes()), nil
}
