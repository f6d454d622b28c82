package conversion_test

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/vmstencil/stencil/ovf/conversion"
)

// node is an XML element of the test's own reader, which has nothing in common with the reader of package ovf.
type node struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []node     `xml:",any"`
}

// attribute returns the value of an attribute that has no namespace, or one that ends with the version of the format.
func (n *node) attribute(local string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == local && (a.Name.Space == "" || strings.Contains(a.Name.Space, "ovf/envelope") || strings.Contains(a.Name.Space, "/envelope")) {
			return a.Value
		}
	}
	return ""
}

// kind is the name of an element, or of what xsi:type makes of it in OVF 0.9.
func (n *node) kind() string {
	if n.XMLName.Local != "Section" && n.XMLName.Local != "Content" {
		return n.XMLName.Local
	}
	for _, a := range n.Attrs {
		if a.Name.Local == "type" && strings.HasSuffix(a.Name.Space, "XMLSchema-instance") {
			return strings.TrimSuffix(a.Value[strings.Index(a.Value, ":")+1:], "_Type")
		}
	}
	return ""
}

// all returns the elements of a kind below a node, in document order.
func (n *node) all(kind string) (found []*node) {
	for i := range n.Children {
		if n.Children[i].kind() == kind {
			found = append(found, &n.Children[i])
		}
		found = append(found, n.Children[i].all(kind)...)
	}
	return found
}

// field returns the text of a child; the first of the names that it has.
func (n *node) field(locals ...string) string {
	for _, local := range locals {
		for i := range n.Children {
			if text := strings.TrimSpace(n.Children[i].Text); n.Children[i].XMLName.Local == local && text != "" {
				return text
			}
		}
	}
	return ""
}

// effective returns the items that a deployment option selects (DSP0243): those that name it, and those that name none and that no item with the
// same instance ID replaces. Bounds are no devices.
func effective(system *node, configuration string) (items []*node) {
	var all []*node
	for _, kind := range []string{"Item", "StorageItem", "EthernetPortItem"} {
		for _, section := range system.all("VirtualHardwareSection")[:1] {
			all = append(all, section.all(kind)...)
		}
	}
	named := func(item *node) bool {
		return slices.Contains(strings.Fields(item.attribute("configuration")), configuration)
	}
	for _, item := range all {
		bound := item.attribute("bound")
		replaced := !named(item) && slices.ContainsFunc(all, func(other *node) bool {
			return named(other) && other.field("InstanceID", "InstanceId") == item.field("InstanceID", "InstanceId")
		})
		if bound == "min" || bound == "max" || replaced || item.attribute("configuration") != "" && !named(item) {
			continue
		}
		items = append(items, item)
	}
	return items
}

// compareCounts counts the items of each virtual system with the test's own reader. Each disk, CD and adapter must be a device of the VirtualMachine
// or have a note; each other device must have a note, apart from controllers, which have none of their own in KubeVirt.
func compareCounts(t *testing.T, raw []byte, plan *conversion.Plan) {
	t.Helper()
	var root node
	if err := xml.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	systems := root.all("VirtualSystem")
	if len(systems) != len(plan.Systems) {
		t.Fatalf("%d virtual systems became %d templates", len(systems), len(plan.Systems))
	}
	for i, element := range systems {
		system := &plan.Systems[i]
		got := describeSystem(t, system)
		counts := map[string]int{}
		for _, item := range effective(element, system.Configuration) {
			name := item.field("ElementName", "Caption", "InstanceID", "InstanceId")
			switch kind := item.field("ResourceType"); kind {
			case "3", "4", "5", "6", "20":
			case "0":
				if !got.TPM || item.field("Type") != "tpm" {
					counts["type 0"]++
				}
			case "10":
				counts["adapters"]++
			case "15", "16":
				counts["CDs"]++
			case "17", "19", "31", "32":
				counts["disks"]++
			default:
				tpm := got.TPM && item.field("ResourceSubType") == "vmware.vtpm"
				if !tpm && !slices.ContainsFunc(system.Notes, func(n conversion.Note) bool { return strings.HasSuffix(n.Source, " "+name) }) {
					t.Errorf("systems[%d]: the device %q of type %s has no note", i, name, kind)
				}
			}
		}
		for kind, found := range map[string]int{
			"adapters": len(got.NICs),
			"CDs":      len(got.CDs) + count(system.Notes, "the drive is empty"),
			"disks":    len(got.Disks) + count(system.Notes, "refers to no disk"),
		} {
			if counts[kind] != found {
				t.Errorf("systems[%d]: the descriptor has %d %s; %d became devices or have a note", i, counts[kind], kind, found)
			}
		}
		if len(systems) == 1 && counts["type 0"] != count(plan.Notes, "resource type 0") {
			t.Errorf("%d devices have the type 0; %d have a note", counts["type 0"], count(plan.Notes, "resource type 0"))
		}
	}
}

func count(notes []conversion.Note, text string) (n int) {
	for _, note := range notes {
		if strings.Contains(note.Result, text) {
			n++
		}
	}
	return n
}

var (
	declaration = regexp.MustCompile(`^<\?xml[^>]*\?>`)
	qualified   = regexp.MustCompile(`^\w+:`)
)

// variants returns other serializations of a descriptor, which mean the same.
func variants(t *testing.T, raw []byte) map[string][]byte {
	t.Helper()
	text := string(raw)
	if strings.Contains(text, "\r") {
		t.Fatal("the descriptor has carriage returns")
	}
	crlf := strings.ReplaceAll(text, "\n", "\r\n")
	units := utf16.Encode([]rune("\ufeff" + declaration.ReplaceAllString(text, `<?xml version="1.0" encoding="UTF-16LE"?>`)))
	wide, err := binary.Append(nil, binary.LittleEndian, units)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"a descriptor with a byte order mark":         append([]byte("\ufeff"), raw...),
		"a descriptor with CRLF":                      []byte(crlf),
		"a descriptor in UTF-16LE":                    wide,
		"a descriptor with other prefixes":            rewrite(t, raw, rename),
		"a descriptor with attributes in other order": rewrite(t, raw, func(e *xml.StartElement) { slices.Reverse(e.Attr) }),
	}
}

// rename gives each namespace another prefix, the default one excepted.
func rename(e *xml.StartElement) {
	if e.Name.Space != "" {
		e.Name.Space = "n-" + e.Name.Space
	}
	for i := range e.Attr {
		a := &e.Attr[i]
		switch {
		case a.Name.Space == "xmlns":
			a.Name.Local = "n-" + a.Name.Local
		case a.Name.Space != "" && a.Name.Space != "xml":
			if a.Name.Space == "xsi" && qualified.MatchString(a.Value) {
				a.Value = "n-" + a.Value
			}
			a.Name.Space = "n-" + a.Name.Space
		}
	}
}

// rewrite serializes a document anew, with each start tag changed.
func rewrite(t *testing.T, raw []byte, change func(*xml.StartElement)) []byte {
	t.Helper()
	var b bytes.Buffer
	var open []string
	decoder := xml.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			return b.Bytes()
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			change(&token)
			open = append(open, prefixed(token.Name))
			b.WriteString("<" + prefixed(token.Name))
			for _, a := range token.Attr {
				b.WriteString(" " + prefixed(a.Name) + `="`)
				escapeText(t, &b, []byte(a.Value))
				b.WriteString(`"`)
			}
			b.WriteString(">")
		case xml.EndElement:
			b.WriteString("</" + open[len(open)-1] + ">")
			open = open[:len(open)-1]
		case xml.CharData:
			escapeText(t, &b, token)
		case xml.ProcInst:
			b.WriteString("<?" + token.Target + " " + string(token.Inst) + "?>")
		}
	}
}

func escapeText(t *testing.T, b *bytes.Buffer, text []byte) {
	t.Helper()
	if err := xml.EscapeText(b, text); err != nil {
		t.Fatal(err)
	}
}

func prefixed(name xml.Name) string {
	if name.Space == "" {
		return name.Local
	}
	return name.Space + ":" + name.Local
}
