package extensions

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	sigsjson "sigs.k8s.io/json"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

const (
	// compressedAbove is the size of the content in bytes above which it is compressed.
	compressedAbove = 4 << 10
	// MaxBytes is the maximum size of the annotation. All annotations of an object have 256 KiB.
	MaxBytes = 128 << 10
	// maxContent is the maximum size of decompressed content, above the size of an object in etcd.
	maxContent = 2 << 20
)

// envelope is the value of the annotation.
type envelope struct {
	// Digest of Fields in JSON with sorted keys.
	Digest string      `json:"digest"`
	Fields *Extensions `json:"fields,omitempty"`
	// GZIP is Fields in JSON, compressed.
	GZIP []byte `json:"gzip,omitempty"`
}

// Encode returns the value of the annotation.
func Encode(e Extensions) (string, error) {
	content, err := json.Marshal(e) // sorts keys
	if err != nil {
		return "", fmt.Errorf("encoding the extensions: %w", err)
	}
	encoded := envelope{Digest: digest(content), Fields: &e}
	if len(content) > compressedAbove {
		var compressed bytes.Buffer
		writer := gzip.NewWriter(&compressed)
		// Writing to memory cannot fail.
		_, _ = writer.Write(content)
		_ = writer.Close()
		encoded.Fields, encoded.GZIP = nil, compressed.Bytes()
	}
	raw, err := json.Marshal(encoded)
	if err != nil {
		return "", fmt.Errorf("encoding the extensions: %w", err)
	}
	if len(raw) > MaxBytes {
		return "", fmt.Errorf("they have %d bytes in the annotation, and the maximum is %d", len(raw), MaxBytes)
	}
	return string(raw), nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Decode returns the extensions that an annotation holds. Its errors have no values.
func Decode(annotation string) (Extensions, error) {
	if len(annotation) > MaxBytes {
		return Extensions{}, fmt.Errorf("it has more than %d bytes", MaxBytes)
	}
	var read envelope
	if err := decode([]byte(annotation), &read); err != nil {
		return Extensions{}, errors.New("it is no JSON of the expected form")
	}
	if len(read.GZIP) > 0 {
		content, err := decompress(read.GZIP)
		if err != nil {
			return Extensions{}, err
		}
		read.Fields = &Extensions{}
		if err := decode(content, read.Fields); err != nil {
			return Extensions{}, errors.New("its compressed content is no JSON of the expected form")
		}
	}
	if read.Fields == nil {
		return Extensions{}, errors.New("it has no fields")
	}
	content, err := json.Marshal(*read.Fields)
	if err != nil {
		return Extensions{}, fmt.Errorf("encoding its fields: %w", err)
	}
	if digest(content) != read.Digest {
		return Extensions{}, errors.New("its fields do not have its digest")
	}
	return *read.Fields, read.Fields.check()
}

func decompress(compressed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, errors.New("its content is not compressed by gzip")
	}
	content, err := io.ReadAll(io.LimitReader(reader, maxContent+1))
	switch {
	case err != nil:
		return nil, errors.New("its compressed content is damaged")
	case len(content) > maxContent:
		return nil, fmt.Errorf("its content has more than %d bytes", maxContent)
	}
	return content, nil
}

// check rejects fields of the published API, which an annotation must not change, and what the types do not have.
func (e Extensions) check() error {
	if err := checkFields(e.Template, PublishedTemplate(), &v1beta1.VirtualMachineTemplateSpec{}); err != nil {
		return fmt.Errorf("its fields of the template: %w", err)
	}
	for name, fields := range e.Parameters {
		if err := checkFields(fields, PublishedParameter(), &v1beta1.Parameter{}); err != nil {
			return fmt.Errorf("its fields of the parameter %.40q: %w", name, err)
		}
	}
	return nil
}

func checkFields(fields map[string]any, published []string, into any) error {
	for key := range fields {
		if slices.Contains(published, key) {
			return fmt.Errorf("%s is a field of the published API", key)
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	strict, err := sigsjson.UnmarshalStrict(raw, into)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	return err
}
