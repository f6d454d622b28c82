package openshift

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Annotations of Templates that hold paths.
const (
	// AnnotationEditable lists the fields that are editable in a console, one per line.
	AnnotationEditable = "template.kubevirt.io/editable"
	// AnnotationValidations holds rules as JSON that contains paths.
	AnnotationValidations = "validations"

	annotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	jsonPath              = "jsonpath::"
	vmRoot                = "spec.virtualMachine"
	templateRoot          = ".spec.template"
)

// annotations returns the annotations of the Template, with paths rooted at the new location of
// its VirtualMachine.
func (c *conversion) annotations(annotations map[string]string) map[string]string {
	delete(annotations, annotationLastApplied)
	if text, found := annotations[AnnotationEditable]; found {
		annotations[AnnotationEditable] = c.editable(text, "metadata.annotations["+AnnotationEditable+"]")
	}
	if text, found := annotations[AnnotationValidations]; found {
		annotations[AnnotationValidations] = c.validations(text, "metadata.annotations["+AnnotationValidations+"]")
	}
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// objectPath matches a path that begins with one of the Template's objects.
var objectPath = regexp.MustCompile(`^(/?\$?\.?)objects\[(\d+)\](.*)$`)

// editable re-roots the lines of the annotation.
func (c *conversion) editable(text, at string) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		found := objectPath.FindStringSubmatch(line)
		switch {
		case found == nil:
			lines = append(lines, line)
		case found[2] != strconv.Itoa(c.index):
			c.lose(at, "%s is dropped: that is not the VirtualMachine", line)
		default:
			lines = append(lines, found[1]+vmRoot+found[3])
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// validations re-roots the paths in the annotation at the VirtualMachine's spec.template, the
// root of paths in rules.
func (c *conversion) validations(text, at string) string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var rules any
	if err := decoder.Decode(&rules); err != nil {
		c.note(at, "is copied unchanged, but is not valid JSON: %v", err)
		return text
	}
	changed := false
	rules = c.rooted(rules, at, &changed)
	if !changed {
		return text
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(rules); err != nil {
		// It was decoded above, so it can be encoded.
		panic("encoding decoded JSON: " + err.Error())
	}
	return out.String()
}

func (c *conversion) rooted(value any, at string, changed *bool) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = c.rooted(value[i], fmt.Sprintf("%s[%d]", at, i), changed)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			value[key] = c.rooted(value[key], at+"."+key, changed)
		}
	case string:
		path, found := strings.CutPrefix(value, jsonPath)
		parts := objectPath.FindStringSubmatch(path)
		if !found || parts == nil {
			return value
		}
		rest, below := strings.CutPrefix(parts[3], templateRoot)
		if parts[2] != strconv.Itoa(c.index) || !below {
			c.lose(at, "%s finds nothing any more: rules look below spec.template of the VirtualMachine", value)
			return value
		}
		*changed = true
		return jsonPath + rest
	}
	return value
}
