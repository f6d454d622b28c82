package template

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// encoder is an encoder of values, as in ${NAME|ENCODER}.
type encoder uint8

const (
	encodeNone   encoder = iota // ${NAME}: as it is
	encodeBase64                // standard base64 (RFC 4648, section 4), with padding
	encodeJSON                  // a JSON string (RFC 8259), with its quotes
	encodeShell                 // a word of the POSIX shell, in single quotes
	encodeYAML                  // a double-quoted scalar of YAML 1.1 and 1.2, in one line

	encoders = iota // how many there are
)

// encoderNames are the names of encoders in a template, in the order in which causes list them.
var encoderNames = [encoders]string{"", "base64", "json", "sh", "yaml"}

// encoderNamed returns the encoder with this name.
func encoderNamed(name string) (encoder, bool) {
	i := slices.Index(encoderNames[:], name)
	return encoder(max(i, 0)), i > 0
}

// suffix returns the part of a placeholder behind the name.
func (e encoder) suffix() string {
	if e == encodeNone {
		return ""
	}
	return "|" + encoderNames[e]
}

const (
	quote        = "'"
	escapedQuote = `'\''` // ends the quotes, adds a quote, and opens them again
)

// encode returns value as e writes it. The result is never shorter than value.
func (e encoder) encode(value string) string {
	switch e {
	case encodeBase64:
		return base64.StdEncoding.EncodeToString([]byte(value))
	case encodeShell:
		return quote + strings.ReplaceAll(value, quote, escapedQuote) + quote
	case encodeJSON, encodeYAML:
		return string(appendQuoted(make([]byte, 0, len(value)+len(`""`)), value, isUnusual))
	default:
		return value
	}
}

// decode returns the value that e encodes as text. There is one at most; equivalent text in another form is not decoded.
func (e encoder) decode(text string) (value string, found bool) {
	switch e {
	case encodeBase64:
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil || !utf8.Valid(decoded) {
			return "", false
		}
		value = string(decoded)
	case encodeShell:
		value, found = strings.CutPrefix(text, quote)
		value, closed := strings.CutSuffix(value, quote)
		value = strings.ReplaceAll(value, escapedQuote, quote)
		return value, found && closed && e.encode(value) == text
	case encodeJSON, encodeYAML:
		// The encoder writes only those escapes of YAML that JSON has, too.
		if json.Unmarshal([]byte(text), &value) != nil {
			return "", false
		}
	default:
		return text, true
	}
	return value, e.encode(value) == text
}

// nextEnd returns the position where an encoded value at the beginning of text may end: the first end behind from, which is
// 0 or an end. It returns -1 if there is none.
func (e encoder) nextEnd(text string, from int) int {
	switch e {
	case encodeBase64:
		const group = 4
		if from+group > len(text) || strings.HasSuffix(text[:from], "=") {
			return -1
		}
		if _, err := base64.StdEncoding.DecodeString(text[from : from+group]); err != nil {
			return -1
		}
		return from + group
	case encodeShell:
		// A quote at the end may be escaped, and an escaped quote may be the end.
		opening := quote
		if from > 0 {
			opening = escapedQuote[len(quote):]
		}
		if !strings.HasPrefix(text[from:], opening) {
			return -1
		}
		from += len(opening)
		end := strings.Index(text[from:], quote)
		if end < 0 {
			return -1
		}
		return from + end + len(quote)
	case encodeJSON, encodeYAML:
		if from > 0 || text == "" || text[0] != '"' {
			return -1
		}
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return -1
	default:
		return -1
	}
}

// certain reports whether the end of an encoded value at the beginning of text is determined without the text that follows.
func (e encoder) certain() bool { return e == encodeJSON || e == encodeYAML }

// isUnusual reports whether a character is escaped between double quotes: the characters that a YAML parser rejects, or
// reads as the end of a line or as a byte order mark, and the no-break space, which resembles another character.
func isUnusual(r rune) bool {
	return isControl(r) || r == '\u00a0' || r == '\ufeff' || r == '\ufffe' || r == '\uffff'
}

// Encodings returns the results of all encoders for a value, to find the value wherever a template may have inserted it.
func Encodings(value string) []string {
	all := make([]string, 0, encoders-1)
	for e := encodeNone + 1; e < encoders; e++ {
		if encoded := e.encode(value); !slices.Contains(all, encoded) {
			all = append(all, encoded)
		}
	}
	return all
}
