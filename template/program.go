package template

// program is a VirtualMachine, or the list of the other objects, in the form that Render runs: one text with all pieces of JSON
// without parameters, and the operations that copy these pieces and fill the parts between them. It is small, because a manager
// stores one for each template of the cluster.
type program struct {
	text    string
	ops     []op
	slots   []slot
	objects []openObject
}

// op is one operation. The meaning of a and b depends on its code.
type op struct {
	code      code
	parameter uint16
	a, b      uint32
}

type code uint8

const (
	// opText appends program.text[a:b].
	opText code = iota

	// opValue appends the parameter encoded by encoder a, escaped for the inside of a string.
	opValue

	// opSeparator appends a comma, unless a bracket has just been opened.
	opSeparator

	// opSkip jumps to operation a if the parameter is empty.
	opSkip

	// opJSON appends the parameter as JSON, checked against slot a.
	opJSON

	// opMark stores the length of the buffer.
	opMark

	// opCheck checks what was appended since opMark, which is the inside of a string, against slot a.
	opCheck

	// opJoin removes the quotes from the text since opMark, which has been closed, and checks it against slot a: a number or a bool.
	opJoin

	// opObject appends the members of objects[a], which have parameters in their keys. Their values are the operations up to
	// b, where it continues.
	opObject
)

// slot is a place with a value that is checked in Render.
type slot struct {
	schema *schema
	path   string
	depth  int // the number of lists and objects around it
}

// openObject is an object with keys that depend on parameters.
type openObject struct {
	path    string
	schema  *schema // of a struct: the field of a key is determined in Render
	members []openMember
}

type openMember struct {
	key       []segment
	from, to  uint32 // the operations of its value
	omittable uint16 // 1 + the parameter that omits this member if empty, or 0
	late      bool   // the value is checked after rendering
}

// build translates a checked value, which has depth lists and objects around it.
func build(n *node, depth int, parameters []parameter) program {
	b := builder{parameters: parameters}
	b.value(n, depth)
	b.program.text = string(b.text)
	b.program.ops = append([]op(nil), b.program.ops...)
	return b.program
}

type builder struct {
	program    program
	text       []byte
	parameters []parameter
	target     bool // something jumps to the next operation
}

func (b *builder) emit(o op) {
	b.program.ops = append(b.program.ops, o)
	b.target = false
}

// json appends a piece of JSON to the text. It extends the previous operation if that copies the preceding piece.
func (b *builder) json(write func([]byte) []byte) {
	from := len(b.text)
	b.text = write(b.text)
	to := len(b.text)
	if to == from {
		return
	}
	if last := len(b.program.ops) - 1; last >= 0 && !b.target && b.program.ops[last].code == opText && int(b.program.ops[last].b) == from {
		b.program.ops[last].b = uint32(to)
		return
	}
	b.emit(op{code: opText, a: uint32(from), b: uint32(to)})
}

func (b *builder) literal(json string) {
	b.json(func(text []byte) []byte { return append(text, json...) })
}

// value emits n, which has depth lists and objects around it.
func (b *builder) value(n *node, depth int) {
	switch {
	case n.open != nil && n.open.parameter != noParameter:
		b.emit(op{code: opJSON, parameter: uint16(n.open.parameter), a: b.slot(n.open, depth)})
	case n.open != nil && n.kind == kindString:
		b.string(n.open, depth)
	case n.kind == kindList:
		b.list(n, depth)
	case n.kind == kindObject && n.open != nil:
		b.openObject(n, depth)
	case n.kind == kindObject:
		b.object(n, depth)
	default:
		b.json(n.appendCanonical)
	}
}

func (b *builder) slot(o *open, depth int) uint32 {
	b.program.slots = append(b.program.slots, slot{schema: o.schema, path: o.path, depth: depth})
	return uint32(len(b.program.slots) - 1)
}

func (b *builder) string(o *open, depth int) {
	b.literal(`"`)
	if o.schema != nil {
		b.emit(op{code: opMark})
	}
	for _, s := range o.segments {
		if s.parameter == noParameter {
			b.json(func(text []byte) []byte { return appendEscaped(text, s.text) })
		} else {
			b.emit(op{code: opValue, parameter: uint16(s.parameter), a: uint32(s.encoder)})
		}
	}
	switch {
	case o.joins():
		// The quotes let Match read it as a text with placeholders.
		b.literal(`"`)
		b.emit(op{code: opJoin, a: b.slot(o, depth)})
		return
	case o.schema != nil:
		b.emit(op{code: opCheck, a: b.slot(o, depth)})
	}
	b.literal(`"`)
}

// omittable returns the parameter that removes n with its key or from its list if it is empty.
func (b *builder) omittable(n *node) (parameter int, ok bool) {
	if n.open == nil || n.open.parameter == noParameter {
		return 0, false
	}
	return n.open.parameter, b.parameters[n.open.parameter].optional()
}

func (b *builder) list(n *node, depth int) {
	s := sequence{builder: b}
	b.literal("[")
	for i := range n.items {
		s.element(&n.items[i], func() { b.value(&n.items[i], depth+1) })
	}
	b.literal("]")
}

func (b *builder) object(n *node, depth int) {
	s := sequence{builder: b}
	b.literal("{")
	for _, i := range byKey(n.members) {
		m := &n.members[i]
		s.element(&m.value, func() {
			b.json(func(text []byte) []byte { return append(appendString(text, m.key), ':') })
			b.value(&m.value, depth+1)
		})
	}
	b.literal("}")
}

// sequence writes commas between elements, some of which may be omitted.
type sequence struct {
	builder *builder
	some    bool // an element that is always present came before
	perhaps bool // an element that may be omitted came before
}

func (s *sequence) element(n *node, emit func()) {
	parameter, omittable := s.builder.omittable(n)
	skip := len(s.builder.program.ops)
	if omittable {
		s.builder.emit(op{code: opSkip, parameter: uint16(parameter)})
	}
	switch {
	case s.some:
		s.builder.literal(",")
	case s.perhaps:
		s.builder.emit(op{code: opSeparator})
	}
	emit()
	if omittable {
		s.perhaps = true
		s.builder.program.ops[skip].a = uint32(len(s.builder.program.ops))
		s.builder.target = true
	} else {
		s.some = true
	}
}

func (b *builder) openObject(n *node, depth int) {
	object := openObject{path: n.open.path, schema: n.open.schema}
	at := len(b.program.ops)
	b.emit(op{code: opObject})
	for i := range n.members {
		m := &n.members[i]
		key := m.segments
		if key == nil {
			key = []segment{{text: m.key, parameter: noParameter}}
		}
		from := len(b.program.ops)
		b.target = true
		b.value(&m.value, depth+1)
		open := openMember{key: key, from: uint32(from), to: uint32(len(b.program.ops)), late: m.segments != nil && object.schema != nil}
		if parameter, omittable := b.omittable(&m.value); omittable {
			open.omittable = uint16(parameter) + 1
		}
		object.members = append(object.members, open)
	}
	b.program.ops[at].a = uint32(len(b.program.objects))
	b.program.ops[at].b = uint32(len(b.program.ops))
	b.program.objects = append(b.program.objects, object)
	b.target = true
}
