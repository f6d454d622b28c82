package conversion

import "github.com/vmstencil/stencil/template/plain"

// escape escapes all strings and keys of a value so that they render to themselves.
func escape(value any) any {
	switch value := value.(type) {
	case string:
		return escapeText(value)
	case literal:
		return string(value)
	case []any:
		for i := range value {
			value[i] = escape(value[i])
		}
		return value
	case map[string]any:
		escaped := make(map[string]any, len(value))
		for key, each := range value {
			escaped[escapeText(key)] = escape(each)
		}
		return escaped
	default:
		return value
	}
}

// escapeText writes a text so that it renders to itself.
func escapeText(text string) string { return plain.Text(text, plain.Dollar) }
