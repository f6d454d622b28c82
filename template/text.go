package template

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// appendString appends text as a JSON string.
func appendString(b []byte, text string) []byte {
	b = append(b, '"')
	b = appendEscaped(b, text)
	return append(b, '"')
}

// appendEscaped appends text in the form between the quotes of a JSON string. Only what must be escaped is; a byte that is
// not UTF-8 becomes U+FFFD.
func appendEscaped(b []byte, text string) []byte {
	plain := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, text[plain:i]...), "\ufffd"...)
				plain = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, text[plain:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
		}
		i++
		plain = i
	}
	return append(b, text[plain:]...)
}

// appendQuoted appends text between double quotes, with the escapes that JSON and YAML have in common. In addition to the
// characters that JSON requires to be escaped, it escapes those of the basic plane that also accepts.
func appendQuoted(b []byte, text string, also func(rune) bool) []byte {
	b = append(b, '"')
	for _, r := range text {
		switch {
		case r >= ' ' && also(r):
			b = append(b, '\\', 'u', hexDigits[r>>12&0xF], hexDigits[r>>8&0xF], hexDigits[r>>4&0xF], hexDigits[r&0xF])
		case r < utf8.RuneSelf:
			b = appendEscaped(b, string(r))
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// escapedSize returns the number of bytes that appendEscaped appends.
func escapedSize(text string) int {
	size := len(text)
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, width := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && width == 1 {
				size += len("\ufffd") - 1
			}
			i += width
			continue
		}
		switch {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			size++
		case c < ' ':
			size += len(`\u0000`) - 1
		}
		i++
	}
	return size
}

// isInteger reports whether text is an integer as JSON writes it.
func isInteger(text string) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	if text == "" || text[0] == '0' && len(text) > 1 {
		return false
	}
	for i := 0; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}
