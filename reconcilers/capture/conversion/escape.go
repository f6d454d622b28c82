package conversion

import "strings"

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

// escapeText doubles the $ of every ${, whether or not a name follows. Otherwise an existing $${ would lose one.
func escapeText(text string) string { return strings.ReplaceAll(text, "${", "$${") }
