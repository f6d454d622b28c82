package template

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// segment is a piece of a text with references: literal text, or a parameter.
type segment struct {
	text      string
	parameter int // index of the parameter; noParameter for literal text
	encoder   encoder
}

const noParameter = -1

// references resolves the references of one template. It holds the parameters, and records which of them are used.
type references struct {
	index    map[string]int
	names    []string
	keep     bool // undefined references are retained
	used     []bool
	problems *problems
	warnings *warnings
	kept     map[string]bool // undefined references that a warning was considered for
	joined   bool            // ${{NAME}} in a text is a reference, see withBraces
}

// maxConsidered is the maximum number of different undefined references that are compared with the names of the parameters
// to find misspellings.
const maxConsidered = 256

// whole returns NAME when text is ${{NAME}} and nothing else.
func whole(text string) (name string, ok bool) {
	name, ok = strings.CutPrefix(text, "${{")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, "}}")
	return name, ok && wordLength(name) == len(name) && name != ""
}

// wordLength returns the length of the longest parameter name that text starts with.
func wordLength(text string) int {
	n := 0
	for n < len(text) && isWord(text[n]) {
		n++
	}
	return n
}

// placeholder is a placeholder at the beginning of a text: ${NAME}, or ${NAME|ENCODER}.
type placeholder struct {
	written string
	name    string
	encoder encoder
	encoded bool // a bar follows the name
	unknown bool // the text behind the bar is not the name of an encoder
}

// reference returns the placeholder that text starts with.
func reference(text string) (p placeholder, ok bool) {
	if !strings.HasPrefix(text, "${") {
		return placeholder{}, false
	}
	n := wordLength(text[len("${"):])
	name, rest := text[len("${"):len("${")+n], text[len("${")+n:]
	switch {
	case n == 0:
		return placeholder{}, false
	case strings.HasPrefix(rest, "}"):
		return placeholder{written: text[:len("${}")+n], name: name}, true
	case !strings.HasPrefix(strings.TrimLeft(rest, " "), "|"):
		return placeholder{}, false
	}
	end := strings.IndexAny(rest, "}\n")
	if end < 0 || rest[end] == '\n' {
		return placeholder{}, false
	}
	p = placeholder{written: text[:len("${}")+n+end], name: name, encoded: true}
	p.encoder, ok = encoderNamed(strings.TrimPrefix(rest[:end], "|"))
	p.unknown = !ok
	return p, true
}

// joinedReference returns the placeholder ${{NAME}} that text starts with.
func joinedReference(text string) (p placeholder, ok bool) {
	written, _, found := strings.Cut(text, "}}")
	written += "}}"
	name, isWhole := whole(written)
	return placeholder{written: written, name: name}, found && isWhole
}

// lookup returns the index of the parameter called name, to which written refers. If there is none, it reports that, unless
// undefined references are retained.
func (r *references) lookup(name, written string, at *location) (int, bool) {
	if i, found := r.index[name]; found {
		r.used[i] = true
		return i, true
	}
	if !r.keep {
		if !r.problems.full() {
			r.problems.add(undefined(name, written, at, Nearest(name, r.names)))
		} else {
			r.problems.more++
		}
		return 0, false
	}
	if !r.kept[name] && len(r.kept) < maxConsidered {
		if r.kept == nil {
			r.kept = map[string]bool{}
		}
		r.kept[name] = true
		if near := Nearest(name, r.names); near != "" {
			r.warnings.add("%s: %s stays as it is, because no parameter is called %s; did you mean %s?", at, written, name, near)
		}
	}
	return 0, false
}

func undefined(name, written string, at *location, near string) *field.Error {
	detail := fmt.Sprintf("no parameter is called %s", name)
	if near != "" {
		detail += fmt.Sprintf("; did you mean %s?", near)
	} else {
		detail += "; declare it, or write $${ for a literal ${"
	}
	return &field.Error{Type: field.ErrorTypeInvalid, Field: at.String(), BadValue: shown(written), Detail: detail}
}

// parse reads the references ${NAME} in text. It returns the segments if there are any, and otherwise the text without
// escapes.
func (r *references) parse(text string, at *location) (plain string, segments []segment) {
	next := strings.IndexByte(text, '$')
	if next < 0 {
		return text, nil
	}
	var literal []byte
	var missing map[string]bool
	whole := text
	for next >= 0 {
		literal = append(literal, text[:next]...)
		text = text[next:]
		taken := 1
		p, found := reference(text)
		if !found && r.joined {
			p, found = joinedReference(text)
		}
		if found && r.means(p) {
			taken = len(p.written)
			i, defined := r.index[p.name]
			switch {
			case p.unknown:
				r.unknownEncoder(p, position(whole, text), at)
			case defined:
				r.used[i] = true
				if len(literal) > 0 {
					segments = append(segments, segment{text: string(literal), parameter: noParameter})
					literal = literal[:0]
				}
				segments = append(segments, segment{parameter: i, encoder: p.encoder})
			default:
				if !missing[p.name] {
					if missing == nil {
						missing = map[string]bool{}
					}
					missing[p.name] = true
					r.lookup(p.name, p.written, at)
				}
				literal = append(literal, p.written...)
			}
		} else {
			if strings.HasPrefix(text, "$${") {
				taken = len("$${")
				literal = append(literal, "${"...)
			} else {
				r.innerWhole(whole, text, at)
				literal = append(literal, '$')
			}
		}
		text = text[taken:]
		next = strings.IndexByte(text, '$')
	}
	literal = append(literal, text...)
	if segments == nil {
		return string(literal), nil
	}
	if len(literal) > 0 {
		segments = append(segments, segment{text: string(literal), parameter: noParameter})
	}
	// A copy has no spare capacity.
	return "", slices.Clone(segments)
}

// means reports whether a placeholder is a reference. Text with a bar that names neither a parameter nor an encoder is text.
func (r *references) means(p placeholder) bool {
	_, defined := r.index[p.name]
	return !p.unknown || defined
}

// position returns the position of rest, which is the end of text.
func position(text, rest string) string {
	before := text[:len(text)-len(rest)]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return fmt.Sprintf("line %d, column %d", strings.Count(before, "\n")+1, utf8.RuneCountInString(line)+1)
}

func (r *references) unknownEncoder(p placeholder, position string, at *location) {
	r.used[r.index[p.name]] = true
	r.problems.invalid(at.String(), shown(p.written), "%s: no such encoder; write ${%s} or ${%s|ENCODER}, where ENCODER is %s",
		position, p.name, p.name, oneOf(encoderNames[1:]))
}

func oneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// innerWhole reports ${{NAME}} within a text, where it is no reference, and ${{NAME|ENCODER}}, which never is one.
func (r *references) innerWhole(whole, text string, at *location) {
	rest, found := strings.CutPrefix(text, "${{")
	if !found {
		return
	}
	n := wordLength(rest)
	i, defined := r.index[rest[:n]]
	if defined && strings.HasPrefix(rest[n:], "}}") {
		r.warnings.add("%s: ${{%s}} stays as it is, because it is not the whole value; ${%s} inserts the value into a text", at, rest[:n], rest[:n])
		return
	}
	p, found := reference("${" + rest)
	if !found || !p.encoded || !r.means(p) || !defined && r.keep {
		return
	}
	if defined {
		r.used[i] = true
	}
	r.problems.invalid(at.String(), shown("${{"+p.written[len("${"):]+"}"), "%s: ${{%s}} inserts a whole value as JSON and takes no encoder; write ${%s|ENCODER} to insert text, where ENCODER is %s",
		position(whole, text), p.name, p.name, oneOf(encoderNames[1:]))
}

// text resolves a text that always stays text, such as the message: ${{NAME}} as the whole text is equivalent to ${NAME}.
func (r *references) text(text string, at *location) []segment {
	if name, found := whole(text); found {
		if i, defined := r.lookup(name, text, at); defined {
			return []segment{{parameter: i}}
		}
		return []segment{{text: text, parameter: noParameter}}
	}
	plain, segments := r.parse(text, at)
	if segments == nil && plain != "" {
		return []segment{{text: plain, parameter: noParameter}}
	}
	return segments
}

// value resolves a string value, and reports whether all its references are defined or retained. If not, the value is
// undetermined.
func (r *references) value(n *node, at *location) (sound bool) {
	before := r.problems.count()
	if name, found := whole(n.text); found {
		if i, defined := r.lookup(name, n.text, at); defined {
			n.open = &open{parameter: i}
		}
		return r.problems.count() == before
	}
	plain, segments := r.parse(n.text, at)
	if segments != nil {
		n.open = &open{segments: segments, parameter: noParameter, joined: r.joined && joinedInBraces.MatchString(n.text)}
	} else {
		n.text = plain
	}
	return r.problems.count() == before
}

// key resolves the key of a member.
func (r *references) key(m *member, at *location) {
	if strings.IndexByte(m.key, '$') < 0 {
		return
	}
	if name, found := whole(m.key); found {
		if _, defined := r.lookup(name, m.key, at); defined {
			r.problems.invalid(at.String(), shown(m.key), "a key is always text: write ${%s}", name)
		}
		return
	}
	plain, segments := r.parse(m.key, at)
	if segments != nil {
		m.segments = segments
		return
	}
	m.key = plain
}

// Nearest returns the candidate that a name is most likely a misspelling of, or "".
func Nearest(name string, candidates []string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, candidate := range candidates {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
		if d := distance(name, candidate, least); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance returns the number of letters to insert, remove, replace or swap with their neighbour to turn a into b, or limit
// if it is not below limit or the texts are too long to be names.
func distance(a, b string, limit int) int {
	const longest = 64
	if len(a) > longest || len(b) > longest || len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	// Rows of the dynamic programming table: for two letters ago, one letter ago, and this one.
	var before, last, row [longest + 1]int
	for j := range len(b) + 1 {
		row[j] = j
	}
	for i := range len(a) {
		before, last = last, row
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
			least = min(least, row[j+1])
		}
		if least >= limit {
			return limit // it never decreases again
		}
	}
	return min(row[len(b)], limit)
}
