package render

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const (
	// shortValue is the length in bytes below which a value is compared with whole strings: shorter values are parts of other words.
	shortValue = 8
	// shortestValue is the length below which a value is found by the key of its parameter only: 1 or no occurs in every manifest.
	shortestValue = 3
	// shortestEncoded is the minimum length of text that is decoded from base64: shorter words often are base64 by accident.
	shortestEncoded = 16
	// maximumLayers is the depth to which texts in texts are decoded.
	maximumLayers = 6
)

// traces finds sensitive parameters in texts: the keys of their annotations in any case, and their values in any encoding that appliers use.
type traces struct {
	keys   []string // in lower case
	values []string // short ones, to be compared with whole strings
	parts  []string // encodings of long values
}

func newTraces(keys, values []string) traces {
	var t traces
	for _, key := range keys {
		t.keys = append(t.keys, strings.ToLower(key))
	}
	for _, value := range values {
		switch {
		case len(value) < shortestValue:
		case len(value) < shortValue:
			t.values = append(t.values, value)
		default:
			t.parts = append(t.parts, encodings(value)...)
		}
	}
	return t
}

// encodings returns texts of which one is part of every text that contains the value in a usual encoding.
func encodings(value string) []string {
	all := append(template.Encodings(value), value, url.QueryEscape(value), url.PathEscape(value), hex.EncodeToString([]byte(value)))
	// Within other bytes, base64 has three forms. The characters at both ends depend on these bytes.
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + value))
		from, to := (shift*8+5)/6, (shift+len(value))*8/6
		inner := encoded[from:to]
		all = append(all, inner, strings.NewReplacer("+", "-", "/", "_").Replace(inner))
	}
	// Quotes of the encoders are not part of every text.
	for i, text := range all {
		if len(text) > 1 && text[0] == text[len(text)-1] && (text[0] == '"' || text[0] == '\'') {
			all[i] = text[1 : len(text)-1]
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(text string) bool { return len(text) < shortestValue })
}

// copies reports whether an annotation is where a client stores what it applied, by its key.
func copies(key string) bool {
	if slices.Contains(machine.AppliedAnnotations(), key) {
		return true
	}
	key = strings.ToLower(key)
	return slices.ContainsFunc([]string{"applied", "original", "pristine", "manifest", "configuration"}, func(word string) bool { return strings.Contains(key, word) })
}

// in reports whether an annotation has a trace. Values are searched only where clients store what they applied.
func (t traces) in(key, text string) bool {
	s := search{traces: t, budget: maximumManifest}
	if !copies(key) {
		s.values, s.parts = nil, nil
	}
	return s.text(text, 0)
}

// search is one search, which decodes texts until its budget of bytes is exhausted.
type search struct {
	traces
	budget int
}

// text reports whether a text has a trace, or is too large or too deep to tell.
func (s *search) text(text string, depth int) bool {
	if s.budget -= len(text); s.budget < 0 || depth > maximumLayers {
		return true
	}
	folded := strings.ToLower(text)
	if slices.ContainsFunc(s.keys, func(key string) bool { return strings.Contains(folded, key) }) ||
		slices.ContainsFunc(s.parts, func(part string) bool { return strings.Contains(text, part) }) || slices.Contains(s.values, text) {
		return true
	}
	return s.document(text, depth) || s.packed(text, depth)
}

// document searches all keys and strings of JSON, also those of duplicate keys and of further documents.
func (s *search) document(text string, depth int) bool {
	if !strings.ContainsAny(text, `"`) {
		return false
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		switch token := token.(type) {
		case string:
			if token != text && s.text(token, depth+1) {
				return true
			}
		case json.Number:
			if slices.Contains(s.values, token.String()) {
				return true
			}
		}
	}
}

// packed searches what a text in base64 has.
func (s *search) packed(text string, depth int) bool {
	text = strings.TrimRight(strings.TrimSpace(text), "=")
	if len(text) < shortestEncoded {
		return false
	}
	raw, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/", "\n", "").Replace(text))
	if err != nil {
		return false
	}
	expanded, err := expandAny(raw, s.budget)
	switch {
	case errors.Is(err, errTooLarge):
		return true
	case err != nil:
		return utf8.Valid(raw) && s.text(string(raw), depth+1)
	default:
		return s.text(string(expanded), depth+1)
	}
}

var errTooLarge = errors.New("it is too large")

// expandAny expands data of gzip, zlib or the first file of a zip, up to a number of bytes.
func expandAny(raw []byte, most int) ([]byte, error) {
	var reader io.Reader
	var err error
	switch {
	case bytes.HasPrefix(raw, []byte{0x1f, 0x8b}):
		reader, err = gzip.NewReader(bytes.NewReader(raw))
	case bytes.HasPrefix(raw, []byte("PK")):
		var archive *zip.Reader
		if archive, err = zip.NewReader(bytes.NewReader(raw), int64(len(raw))); err == nil && len(archive.File) > 0 {
			reader, err = archive.File[0].Open()
		}
	default:
		reader, err = zlib.NewReader(bytes.NewReader(raw))
	}
	if err != nil {
		return nil, err
	}
	if reader == nil {
		return nil, io.ErrUnexpectedEOF
	}
	expanded, err := io.ReadAll(io.LimitReader(reader, int64(most)+1))
	if len(expanded) > most {
		return nil, errTooLarge
	}
	if err != nil && len(expanded) == 0 {
		return nil, err
	}
	return expanded, nil
}
