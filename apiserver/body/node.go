package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kind is the kind of a node.
type kind int

const (
	null kind = iota
	scalar
	text
	object
	list
)

var kindNames = map[kind]string{null: "null", scalar: "a number or true or false", text: "a string", object: "an object", list: "a list"}

// node is a value and its position.
type node struct {
	kind    kind
	text    string
	members []member
	// names of the members.
	names map[string]bool
	// line and column count from 1.
	line, column int
}

// member is a member of an object.
type member struct {
	name         string
	line, column int
	value        node
}

// maximumDepth is how deep objects and lists may be nested; a ProcessOptions is two
// objects deep.
const maximumDepth = 32

// Malformed is an error in a body, with its position.
type Malformed struct {
	Line, Column int
	Problem      string
}

// Error implements error.
func (m *Malformed) Error() string {
	return fmt.Sprintf("the body is malformed at line %d, column %d: %s", m.Line, m.Column, m.Problem)
}

func malformed(line, column int, format string, arguments ...any) error {
	return &Malformed{Line: line, Column: column, Problem: fmt.Sprintf(format, arguments...)}
}

// Check returns an error if a body is not one JSON or YAML object, with every member once and not nested too deep. Errors are of type *Malformed.
func Check(raw []byte) error {
	root, err := parse(raw)
	if err == nil && root.kind != object {
		err = malformed(max(root.line, 1), max(root.column, 1), "it must be an object, not %s", kindNames[root.kind])
	}
	return err
}

// parse reads JSON or YAML. YAML contains JSON except for some escapes, so that a body that begins like JSON is read as JSON first.
func parse(raw []byte) (node, error) {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 {
		return node{kind: object, line: 1, column: 1}, nil
	}
	if trimmed[0] != '{' {
		return parseYAML(raw)
	}
	found, err := parseJSON(raw)
	if err == nil {
		return found, nil
	}
	if flow, yamlErr := parseYAML(raw); yamlErr == nil {
		return flow, nil
	}
	return node{}, err
}

// jsonReader reads one JSON value with the positions of its parts.
type jsonReader struct {
	decoder *json.Decoder
	raw     []byte
	// line of the offset counted, and begins at the offset begin: positions are requested in their order.
	line, begin, counted int
}

func parseJSON(raw []byte) (node, error) {
	reader := &jsonReader{decoder: json.NewDecoder(bytes.NewReader(raw)), raw: raw}
	reader.decoder.UseNumber()
	found, err := reader.value(0)
	if err != nil {
		return node{}, err
	}
	if _, err := reader.decoder.Token(); !errors.Is(err, io.EOF) {
		line, column := reader.next()
		return node{}, malformed(line, column, "something follows the object")
	}
	return found, nil
}

// place returns the line and column of an offset.
func (r *jsonReader) place(offset int64) (line, column int) {
	end := min(int(offset), len(r.raw))
	if end < r.counted {
		r.line, r.begin, r.counted = 0, 0, 0
	}
	for ; r.counted < end; r.counted++ {
		if r.raw[r.counted] == '\n' {
			r.line, r.begin = r.line+1, r.counted+1
		}
	}
	return 1 + r.line, 1 + end - r.begin
}

// next returns the position of the next token.
func (r *jsonReader) next() (line, column int) {
	offset := r.decoder.InputOffset()
	for int(offset) < len(r.raw) && strings.IndexByte(" \t\r\n,:", r.raw[offset]) >= 0 {
		offset++
	}
	return r.place(offset)
}

func (r *jsonReader) fail(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line, column := r.place(max(syntax.Offset-1, 0))
		return malformed(line, column, "%s", syntaxProblem(syntax))
	}
	line, column := r.place(int64(len(r.raw)))
	return malformed(line, column, "it ends too early")
}

// syntaxProblem returns the decoder's message, which quotes one character at most.
func syntaxProblem(err *json.SyntaxError) string { return err.Error() }

func (r *jsonReader) value(depth int) (node, error) {
	line, column := r.next()
	token, err := r.decoder.Token()
	if err != nil {
		return node{}, r.fail(err)
	}
	found := node{line: line, column: column}
	switch value := token.(type) {
	case nil:
		return found, nil
	case bool:
		found.kind, found.text = scalar, strconv.FormatBool(value)
		return found, nil
	case json.Number:
		found.kind, found.text = scalar, value.String()
		return found, nil
	case string:
		found.kind, found.text = text, value
		return found, nil
	}
	if depth == maximumDepth {
		return node{}, malformed(line, column, "it is nested too deep")
	}
	if token == json.Delim('[') {
		found.kind = list
		for r.decoder.More() {
			if _, err := r.value(depth + 1); err != nil {
				return node{}, err
			}
		}
	} else {
		found.kind = object
		for r.decoder.More() {
			one, err := r.member(depth)
			if err != nil {
				return node{}, err
			}
			if err := found.add(one); err != nil {
				return node{}, err
			}
		}
	}
	if _, err := r.decoder.Token(); err != nil {
		return node{}, r.fail(err)
	}
	return found, nil
}

func (r *jsonReader) member(depth int) (member, error) {
	line, column := r.next()
	token, err := r.decoder.Token()
	if err != nil {
		return member{}, r.fail(err)
	}
	name, _ := token.(string)
	value, err := r.value(depth + 1)
	return member{name: name, line: line, column: column, value: value}, err
}

// add adds a member to an object, which must not have one of that name.
func (n *node) add(one member) error {
	if n.names[one.name] {
		return malformed(one.line, one.column, "%s is there twice", shown(one.name))
	}
	if n.names == nil {
		n.names = map[string]bool{}
	}
	n.names[one.name] = true
	n.members = append(n.members, one)
	return nil
}

// yamlLine matches the line in an error of the YAML library, which has no column.
var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

func parseYAML(raw []byte) (node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return node{kind: object, line: 1, column: 1}, nil
	} else if err != nil {
		return node{}, yamlProblem(raw, err)
	}
	var more yaml.Node
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return node{}, yamlProblem(raw, err)
		}
		return node{}, malformed(max(more.Line, 1), max(more.Column, 1), "something follows the object")
	}
	return fromYAML(document.Content[0], 0)
}

// yamlProblem returns the library's error. The column is where the text of the line begins.
func yamlProblem(raw []byte, err error) error {
	line, problem := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if found := yamlLine.FindStringSubmatch(err.Error()); found != nil {
		line, _ = strconv.Atoi(found[1])
		problem = strings.TrimPrefix(err.Error(), found[0])
	}
	if strings.HasPrefix(problem, "unknown anchor") {
		// The library shows the name, which may be a password that begins with an asterisk.
		problem = "anchors and aliases are not taken here"
	}
	column := 1
	if lines := bytes.Split(raw, []byte("\n")); line >= 1 && line <= len(lines) {
		column += len(lines[line-1]) - len(bytes.TrimLeft(lines[line-1], " \t"))
	}
	return malformed(line, column, "%s", problem)
}

func fromYAML(in *yaml.Node, depth int) (node, error) {
	found := node{line: in.Line, column: in.Column}
	if depth > maximumDepth {
		return node{}, malformed(in.Line, in.Column, "it is nested too deep")
	}
	switch in.Kind {
	case yaml.ScalarNode:
		found.text = in.Value
		switch in.ShortTag() {
		case "!!null":
			found.kind, found.text = null, ""
		case "!!str":
			found.kind = text
		case "!!binary", "!!merge":
			return node{}, malformed(in.Line, in.Column, "this is not taken here")
		default:
			// The text is preserved where YAML has a number or a date.
			found.kind = scalar
		}
	case yaml.SequenceNode:
		found.kind = list
		for _, item := range in.Content {
			if _, err := fromYAML(item, depth+1); err != nil {
				return node{}, err
			}
		}
	case yaml.MappingNode:
		found.kind = object
		for i := 0; i+1 < len(in.Content); i += 2 {
			key := in.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				return node{}, malformed(key.Line, key.Column, "a name has to stand here")
			}
			value, err := fromYAML(in.Content[i+1], depth+1)
			if err != nil {
				return node{}, err
			}
			if err := found.add(member{name: key.Value, line: key.Line, column: key.Column, value: value}); err != nil {
				return node{}, err
			}
		}
	default:
		return node{}, malformed(in.Line, in.Column, "anchors and aliases are not taken here")
	}
	return found, nil
}
