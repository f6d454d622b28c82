package ovf_test

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/vmstencil/stencil/ovf"
)

// TestEncodings reads one descriptor in the encodings that exporters write.
func TestEncodings(t *testing.T) {
	for name, tc := range map[string]struct {
		declared string
		encoding encoding.Encoding
	}{
		"UTF-8":                               {"UTF-8", encoding.Nop},
		"nothing declared":                    {"", encoding.Nop},
		"UTF-8 with a byte order mark":        {"UTF-8", unicode.UTF8BOM},
		"ISO-8859-1":                          {"ISO-8859-1", charmap.ISO8859_1},
		"Windows":                             {"windows-1252", charmap.Windows1252},
		"UTF-16, little endian":               {"UTF-16", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)},
		"UTF-16, big endian":                  {"UTF-16", unicode.UTF16(unicode.BigEndian, unicode.UseBOM)},
		"UTF-16 that is declared by its mark": {"", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)},
	} {
		t.Run(name, func(t *testing.T) {
			text := head + "<VirtualSystem ovf:id=\"vm\"><Name>Bürö</Name></VirtualSystem></Envelope>"
			if at := strings.Index(text, "?>"); at >= 0 {
				text = text[at+2:]
			}
			if tc.declared != "" {
				text = `<?xml version="1.0" encoding="` + tc.declared + `"?>` + text
			}
			raw, err := tc.encoding.NewEncoder().Bytes([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			e, err := ovf.Decode(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			if got := e.Systems[0].Name; got != "Bürö" {
				t.Errorf("the name is %q", got)
			}
		})
	}
	if _, err := ovf.Decode(strings.NewReader("\xff\xfe<")); err == nil {
		t.Error("half a character is accepted")
	}
}
