package template

import (
	"encoding/json"
	"fmt"
	"strings"
)

// differs records that a place differs, unless the caller ignores it. It returns whether the difference is to be reported.
func (m *matcher) differs(at int32) bool {
	if m.over() || m.ignores(at) {
		return false
	}
	m.failed = m.attempt
	return !m.attempt
}

func (m *matcher) differ(at int32, want, got string) {
	if m.differs(at) {
		m.report(at, want, got)
	}
}

func (m *matcher) report(at int32, want, got string) {
	if m.secretly(at) {
		want, got = redacted, redacted
	}
	m.differences = append(m.differences, Difference{Path: m.path(at), Want: want, Got: got})
}

func (m *matcher) differText(c *constraint) {
	if m.differs(c.at) {
		m.report(c.at, m.spellText(c.segments), m.describeFor(c.segments, c.value))
	}
}

func (m *matcher) differWhole(c *constraint) {
	if !m.differs(c.at) {
		return
	}
	parameter := c.node.open.parameter
	p := &m.compiled.parameters[parameter]
	switch {
	case p.Sensitive:
		m.report(c.at, redacted, redacted)
	case m.bound[parameter]:
		m.report(c.at, shown(m.values[parameter]).(string), describe(c.value))
	default:
		m.report(c.at, "${{"+p.Name+"}}", describe(c.value))
	}
}

// spellText returns a text of the template as a difference shows it.
func (m *matcher) spellText(segments []segment) string {
	if m.compiled.sensitive(segments) {
		return redacted
	}
	return quoted(shown(m.spelled(segments)).(string))
}

// describeFor returns the VirtualMachine's value in the place of segments, as a difference shows it.
func (m *matcher) describeFor(segments []segment, v any) string {
	if m.compiled.sensitive(segments) {
		return redacted
	}
	return describe(v)
}

// describe returns a value of a VirtualMachine as a difference shows it.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		return quoted(shown(v).(string))
	case bool:
		if v {
			return "true"
		}
		return "false"
	case int64, float64, json.Number:
		return shown(numberText(v)).(string)
	case []any:
		return kindList.String()
	default:
		return kindObject.String()
	}
}

// describe returns a value of a template as a difference shows it.
func (n *node) describe() string {
	switch n.kind {
	case kindObject, kindList:
		return n.kind.String()
	case kindString:
		return quoted(shown(n.text).(string))
	default:
		return shown(n.text).(string)
	}
}

// validateValues reports the values that their parameters reject.
func (m *matcher) validateValues() {
	for i := range m.constraints {
		c := &m.constraints[i]
		for _, s := range c.segments {
			m.shows(s.parameter, c.at)
		}
		if c.node != nil && c.node.open != nil {
			m.shows(c.node.open.parameter, c.at)
		}
	}
	for i := range m.values {
		if m.over() || !m.bound[i] || m.origin[i] < 0 {
			continue
		}
		p := &m.compiled.parameters[i]
		objection := m.objection(i, m.values[i])
		if objection == "" {
			continue
		}
		got := redacted
		if !p.Sensitive {
			got = quoted(shown(m.values[i]).(string))
		}
		m.report(m.origin[i], "${"+p.Name+"}, which "+objection, got)
	}
}

func (m *matcher) shows(parameter int, at int32) {
	if parameter != noParameter && m.origin[parameter] < 0 {
		m.origin[parameter] = at
	}
}

// objection returns the reason why a parameter rejects a value, or "".
func (m *matcher) objection(parameter int, value string) string {
	p := &m.compiled.parameters[parameter]
	m.steps++
	if value == "" {
		if p.optional() && p.Value == "" {
			return ""
		}
		if !p.optional() {
			return "must not be empty"
		}
	}
	m.steps += len(value)
	if found, rejected := p.control(value); rejected {
		return fmt.Sprintf("does not take %U (character %d)", found.character, found.position)
	}
	if p.generator != nil && !m.asGiven && !m.given[parameter] && !p.generator.makes(value) && !m.withheld(p) {
		if p.Sensitive {
			return "is generated in another form unless it is given"
		}
		return "is generated from " + shown(p.From).(string) + " unless it is given"
	}
	if p.Type == "" && p.pattern == nil && len(p.Enum) == 0 {
		return ""
	}
	m.steps += (1 + p.size) * min(len(value), MaxMatchedBytes)
	if cause := p.check(value, ""); cause != nil {
		return strings.TrimPrefix(cause.Detail, "a value with a pattern ")
	}
	return ""
}

// admits reports whether a parameter permits a value.
func (m *matcher) admits(parameter int, value string) bool {
	return m.objection(parameter, value) == ""
}

// makes reports whether g may make a value.
func (g generator) makes(value string) bool {
	if len(value) != g.size() {
		return false
	}
	for _, p := range g {
		if p.length == 0 {
			if !strings.HasPrefix(value, p.text) {
				return false
			}
			value = value[len(p.text):]
			continue
		}
		for _, c := range []byte(value[:p.length]) {
			if strings.IndexByte(p.text, c) < 0 {
				return false
			}
		}
		value = value[p.length:]
	}
	return true
}
