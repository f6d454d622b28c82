package template

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// openText compares a text that contains parameters.
func (m *matcher) openText(segments []segment, s *schema, v any, at int32, kept bool) {
	if m.ignores(at) {
		return
	}
	text, is := v.(string)
	// Where a number or a bool is expected, the text was joined without quotes.
	joined := s.joins()
	switch v := v.(type) {
	case nil:
		is = !kept && !joined
	case string:
		is = !joined
	case bool:
		text, is = strconv.FormatBool(v), s.shape == shapeBool
	case int64, float64, json.Number:
		if s.shape == shapeIntOrString || s.shape == shapeQuantity || joined && s.shape != shapeBool {
			text = numberText(v)
			is = !joined || s.integer(text)
		}
	}
	if !is {
		m.differ(at, m.spellText(segments), m.describeFor(segments, v))
		return
	}
	level := uint8(levelExact)
	if s.shape == shapeQuantity || s.shape == shapeTime {
		level = levelSpelt
	}
	m.steps += len(text)
	m.add(constraint{kind: constrainText, level: level, segments: segments, schema: s, value: v, text: text, at: at}, segments, noParameter)
}

// decideText decides a text with at most one unbound parameter. It returns false if a search is necessary.
func (m *matcher) decideText(c *constraint) (decided bool) {
	unknown := m.unknown(c.segments[c.next:])
	if unknown == noParameter {
		if m.reads(c.segments[c.next:], c.text[c.from:]) {
			return true
		}
		if c.level == levelSpelt && c.schema.equivalent(m.spelled(c.segments), c.text) {
			return true
		}
		m.differText(c)
		return true
	}
	if !m.solvable(c.segments[c.next:], unknown) {
		return false
	}
	value, fits := m.solve(c.segments[c.next:], c.text[c.from:], unknown)
	if c.level == levelSpelt && (!fits || !m.admits(unknown, value)) {
		if spelt, found := m.respell(c, unknown); found {
			value, fits = spelt, true
		}
	}
	if !fits {
		m.differText(c)
		return true
	}
	m.bind(unknown, value)
	return true
}

// unknown returns the first unbound parameter in segments.
func (m *matcher) unknown(segments []segment) int {
	m.steps += len(segments)
	for i := range segments {
		if p := segments[i].parameter; p != noParameter && !m.bound[p] {
			return p
		}
	}
	return noParameter
}

// textOf returns the text of a segment, if it is bound.
func (m *matcher) textOf(s segment) (string, bool) {
	if s.parameter == noParameter {
		return s.text, true
	}
	if s.encoder == encodeNone || !m.bound[s.parameter] {
		return m.values[s.parameter], m.bound[s.parameter]
	}
	return m.encoded(s), true
}

// encoded returns the text of a segment with a bound parameter. Each is encoded once: a hostile template refers to a long
// value often.
func (m *matcher) encoded(s segment) string {
	if text, found := m.encodings[s]; found {
		return text
	}
	text := s.encoder.encode(m.values[s.parameter])
	m.steps += len(text)
	if m.encodings == nil {
		m.encodings = map[segment]string{}
	}
	m.encodings[s] = text
	return text
}

// forget removes what was derived from the value of a parameter.
func (m *matcher) forget(parameter int) {
	delete(m.trees, parameter)
	if len(m.encodings) == 0 {
		return
	}
	for e := encodeNone + 1; e < encoders; e++ {
		delete(m.encodings, segment{parameter: parameter, encoder: e})
	}
}

// reads reports whether segments, all of them bound, yield text.
func (m *matcher) reads(segments []segment, text string) bool {
	rest, found := m.cut(text, segments, noParameter, "")
	return found && rest == ""
}

// cut removes the text of segments from the beginning of text; value is the value of the unknown parameter.
func (m *matcher) cut(text string, segments []segment, unknown int, value string) (rest string, found bool) {
	m.steps += len(segments)
	for i := range segments {
		var part string
		if unknown == noParameter || segments[i].parameter != unknown {
			part, _ = m.textOf(segments[i])
		} else {
			part = segments[i].encoder.encode(value)
		}
		if text, found = strings.CutPrefix(text, part); !found {
			return "", false
		}
		m.steps += len(part)
	}
	return text, true
}

// solvable reports whether solve finds the value of the only unbound parameter in segments. It does unless the parameter
// occurs with several encoders, and the end of its first occurrence is not determined by the text.
func (m *matcher) solvable(segments []segment, unknown int) bool {
	m.steps += len(segments)
	first, seen := encodeNone, false
	for i := range segments {
		switch s := &segments[i]; {
		case s.parameter != unknown:
		case !seen && s.encoder.certain():
			return true
		case !seen:
			first, seen = s.encoder, true
		case s.encoder != first:
			return false
		}
	}
	return true
}

// solve returns the value of the only unbound parameter in segments with which they yield text. The end of the value follows
// from its encoder or from the length of text, so there is at most one such value.
func (m *matcher) solve(segments []segment, text string, unknown int) (string, bool) {
	m.steps += len(segments)
	before, known, times := 0, 0, 0
	encoder := encodeNone
	for i := range segments {
		part, is := m.textOf(segments[i])
		if !is && times == 0 {
			before, encoder = known, segments[i].encoder
		}
		if !is {
			times++
		}
		known += len(part)
	}
	size := len(text) - known
	switch {
	case size < 0:
		return "", false
	case encoder.certain():
		m.steps += len(text) - before
		if size = encoder.nextEnd(text[before:], 0); size < 0 {
			return "", false
		}
	case size%times != 0:
		return "", false
	default:
		size /= times
	}
	m.steps += size
	value, fits := encoder.decode(text[before : before+size])
	if !fits {
		return "", false
	}
	rest, found := m.cut(text, segments, unknown, value)
	return value, found && rest == ""
}

// respell returns a value with which segments yield another spelling of c.text, if that is a quantity. It prefers values that
// the parameter permits.
func (m *matcher) respell(c *constraint, unknown int) (string, bool) {
	if c.schema.shape != shapeQuantity {
		return "", false
	}
	if p := &m.compiled.parameters[unknown]; len(c.segments) == 1 && c.segments[0].encoder == encodeNone && len(p.Enum) > 0 {
		for _, value := range p.Enum {
			m.steps += len(value)
			if c.schema.equivalent(value, c.text) && m.admits(unknown, value) {
				return value, true
			}
		}
		return "", false
	}
	first, fits := "", false
	for _, spelling := range spellings(c.text) {
		value, found := m.solve(c.segments, spelling, unknown)
		if !found {
			continue
		}
		if m.admits(unknown, value) {
			return value, true
		}
		if !fits {
			first, fits = value, true
		}
	}
	return first, fits
}

// spelled returns the text of segments, with unbound parameters in the form of the template. A text that is longer than can
// be shown or compared is truncated.
func (m *matcher) spelled(segments []segment) string {
	const most = 2 * maxShown
	var b strings.Builder
	for i := range segments {
		if b.Len() > most {
			break
		}
		text, is := m.textOf(segments[i])
		if !is {
			text = m.compiled.placeholder(segments[i])
		}
		b.WriteString(text[:min(len(text), most)])
	}
	return b.String()
}

// mayRead reports whether segments could yield text for any values of their unbound parameters.
func (m *matcher) mayRead(segments []segment, text string) bool {
	m.steps += len(segments) + len(text)
	for first := true; ; first = false {
		run, rest, fits := m.run(segments, len(text))
		last := len(rest) == 0
		at := 0
		switch {
		case !fits || first && last && run != text:
			return false
		case first:
		case last:
			at = max(len(text)-len(run), 0)
		default:
			at = max(strings.Index(text, run), 0)
		}
		if text, fits = strings.CutPrefix(text[at:], run); !fits || last {
			return fits
		}
		segments = rest[1:]
	}
}

// run returns the text of the first segments, up to the first unbound one, and rest, which begins with that. It does not fit
// if it is longer than most.
func (m *matcher) run(segments []segment, most int) (run string, rest []segment, fits bool) {
	var parts []string
	for i := range segments {
		known, is := m.textOf(segments[i])
		if !is {
			return strings.Join(parts, ""), segments[i:], true
		}
		if most -= len(known); most < 0 {
			return "", nil, false
		}
		parts = append(parts, known)
	}
	return strings.Join(parts, ""), nil, true
}

// options are the texts that the next unbound parameter of a text may have, the shortest first, but empty ones last. They
// end where the text after the parameter begins.
type options struct {
	encoder encoder
	rest    string // of the text, from where the parameter begins
	known   string // the text that follows the parameter
	open    bool   // another unbound parameter follows
	last    bool   // nothing follows
	end     int    // where the last option ended
	empty   bool   // the empty one has been returned
}

// advance consumes the bound segments that are next, and returns the unbound parameter that follows, with its options.
func (m *matcher) advance(c *constraint) (parameter int, o options, fits bool) {
	for ; c.next < len(c.segments); c.next++ {
		m.steps++
		known, is := m.textOf(c.segments[c.next])
		if !is {
			break
		}
		if !strings.HasPrefix(c.text[c.from:], known) {
			return 0, options{}, false
		}
		m.steps += len(known)
		c.from += len(known)
	}
	if c.next == len(c.segments) {
		return noParameter, options{}, c.from == len(c.text)
	}
	o.encoder = c.segments[c.next].encoder
	o.rest = c.text[c.from:]
	o.last = c.next+1 == len(c.segments)
	if !o.last {
		var is bool
		o.known, is = m.textOf(c.segments[c.next+1])
		o.open = !is || o.known == ""
	}
	return c.segments[c.next].parameter, o, true
}

// following returns the text of the next option, and the number of bytes it compared.
func (o *options) following() (text string, looked int, found bool) {
	if next, ok := o.nextEnd(); ok {
		looked, o.end = next-o.end+len(o.known), next
		return o.rest[:next], looked, true
	}
	looked, o.end = len(o.rest)-o.end+len(o.known), len(o.rest)
	if o.empty || o.encoder.encode("") != "" {
		return "", looked, false
	}
	o.empty = true
	return "", looked, o.last && o.rest == "" || o.open || !o.last && strings.HasPrefix(o.rest, o.known)
}

func (o *options) nextEnd() (int, bool) {
	if o.end == len(o.rest) {
		return 0, false
	}
	if o.encoder != encodeNone {
		return o.nextEncodedEnd()
	}
	if o.last {
		return len(o.rest), true
	}
	_, size := utf8.DecodeRuneInString(o.rest[o.end:])
	next := o.end + size
	if o.open {
		return next, true
	}
	found := strings.Index(o.rest[next:], o.known)
	return next + found, found >= 0
}

func (o *options) nextEncodedEnd() (int, bool) {
	for end := o.end; ; {
		if end = o.encoder.nextEnd(o.rest, end); end < 0 {
			return 0, false
		}
		if o.open || o.last && end == len(o.rest) || !o.last && strings.HasPrefix(o.rest[end:], o.known) {
			return end, true
		}
	}
}
