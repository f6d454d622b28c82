package template

import (
	"strconv"
	"strings"
	"sync/atomic"
	"weak"
)

// outline is a template's VirtualMachine as a tree, which Match walks. It is decoded from Render's program on first use, and
// is cached by a weak pointer: a manager holds many templates, and compares VirtualMachines with few of them at a time.
type outline struct {
	kept atomic.Pointer[weak.Pointer[node]]
}

func (o *outline) of(p *program) *node {
	if kept := o.kept.Load(); kept != nil {
		if root := kept.Value(); root != nil {
			return root
		}
	}
	root := new(node)
	*root = (&reader{program: p, end: uint32(len(p.ops))}).value()
	kept := weak.Make(root)
	o.kept.Store(&kept)
	return root
}

// reader reads a program as the JSON that it writes. The program is valid, because build made it.
type reader struct {
	program *program
	text    string // the rest of the text of the last operation
	at, end uint32 // the next operation, and the end
}

// more loads the next text if the next operation is text.
func (r *reader) more() bool {
	for r.text == "" && r.at < r.end {
		o := &r.program.ops[r.at]
		switch o.code {
		case opText:
			r.text = r.program.text[o.a:o.b]
		case opSeparator, opSkip, opMark, opCheck, opJoin:
			// The parameters determine the effect of these in Render.
		default:
			return false
		}
		r.at++
	}
	return r.text != ""
}

// accept consumes c if it is next.
func (r *reader) accept(c byte) bool {
	if r.more() && r.text[0] == c {
		r.text = r.text[1:]
		return true
	}
	return false
}

func (r *reader) value() node {
	if !r.more() {
		o := &r.program.ops[r.at]
		if o.code == opObject {
			r.at = o.b
			return r.openObject(&r.program.objects[o.a])
		}
		r.at++
		return node{kind: kindString, open: &open{parameter: int(o.parameter)}}
	}
	switch r.text[0] {
	case '{':
		return r.object()
	case '[':
		return r.list()
	case '"':
		text, segments := r.string()
		if segments != nil {
			return node{kind: kindString, open: &open{parameter: noParameter, segments: segments}}
		}
		return node{kind: kindString, text: text}
	default:
		return r.scalar()
	}
}

func (r *reader) scalar() node {
	size := strings.IndexAny(r.text, ",]}")
	if size < 0 {
		size = len(r.text)
	}
	n := node{kind: kindNumber, text: r.text[:size]}
	r.text = r.text[size:]
	switch n.text {
	case "null":
		n.kind = kindNull
	case "true", "false":
		n.kind = kindBool
	}
	return n
}

func (r *reader) object() node {
	n := node{kind: kindObject}
	r.accept('{')
	for !r.accept('}') {
		if r.accept(',') {
			continue
		}
		key, _ := r.string()
		r.accept(':')
		n.members = append(n.members, member{key: key, value: r.value()})
	}
	return n
}

func (r *reader) list() node {
	n := node{kind: kindList}
	r.accept('[')
	for !r.accept(']') {
		if !r.accept(',') {
			n.items = append(n.items, r.value())
		}
	}
	return n
}

func (r *reader) openObject(o *openObject) node {
	n := node{kind: kindObject}
	for i := range o.members {
		m := &o.members[i]
		value := reader{program: r.program, at: m.from, end: m.to}
		read := member{segments: m.key, value: value.value()}
		if len(m.key) == 1 && m.key[0].parameter == noParameter {
			read.key, read.segments = m.key[0].text, nil
		}
		n.members = append(n.members, read)
	}
	return n
}

// string reads a string, and returns its segments if it contains a parameter.
func (r *reader) string() (text string, segments []segment) {
	r.accept('"')
	for {
		if !r.more() {
			if text != "" {
				segments = append(segments, segment{text: text, parameter: noParameter})
				text = ""
			}
			o := &r.program.ops[r.at]
			segments = append(segments, segment{parameter: int(o.parameter), encoder: encoder(o.a)})
			r.at++
			continue
		}
		size := 0
		for size < len(r.text) && r.text[size] != '"' {
			if r.text[size] == '\\' {
				size++
			}
			size++
		}
		text += unescaped(r.text[:size])
		r.text = r.text[size:]
		if r.accept('"') {
			break
		}
	}
	if segments != nil && text != "" {
		segments = append(segments, segment{text: text, parameter: noParameter})
	}
	return text, segments
}

// unescaped reverts appendEscaped.
func unescaped(text string) string {
	next := strings.IndexByte(text, '\\')
	if next < 0 {
		return text
	}
	var b strings.Builder
	for ; next >= 0; next = strings.IndexByte(text, '\\') {
		b.WriteString(text[:next])
		size := len(`\n`)
		switch c := text[next+1]; c {
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			size = len(`\u0000`)
			code, _ := strconv.ParseUint(text[next+2:next+size], 16, 8) // appendEscaped writes no others
			b.WriteByte(byte(code))
		default:
			b.WriteByte(c)
		}
		text = text[next+size:]
	}
	b.WriteString(text)
	return b.String()
}
