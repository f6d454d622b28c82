package input

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vmstencil/stencil/rego"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// guestSecrets are fields with the configuration of a guest, including passwords and
// keys. They are masked at any path.
var guestSecrets = []string{"userData", "userDataBase64", "networkData", "networkDataBase64"}

// secretData are the fields with the content of a Secret, which templates and captures
// have among their objects.
var secretData = []string{"data", "stringData"}

// secretAnnotations are annotations that hold the same, or a copy of the whole object.
var secretAnnotations = append(machine.AppliedAnnotations(), "kubevirt.io/ignitiondata")

// Mask returns the document as it may be logged, and the paths in `input` at which it
// differs. These are replaced by "***":
//
//   - cloud-init user data and network data, Ignition configurations, and the content of
//     Secrets, as a whole,
//   - every text, number or key that contains the value of a sensitive parameter,
//   - defaults and listed values of sensitive parameters in a template,
//   - the manifests that kubectl and other clients leave in annotations.
//
// The document is not changed.
func (c *Case) Mask(d rego.Document) (rego.Document, []string) {
	m := masker{secrets: c.secrets()}
	if c.Request.Kind == rego.KindVirtualMachineTemplate {
		m.secrets = append(m.secrets, declaredSecrets(d.Object)...)
		m.secrets = append(m.secrets, declaredSecrets(d.OldObject)...)
	}
	d.Object = m.object("object", d.Object)
	d.OldObject = m.object("oldObject", d.OldObject)
	d.Objects = slices.Clone(d.Objects)
	for i, object := range d.Objects {
		d.Objects[i] = m.object("objects["+strconv.Itoa(i)+"]", object)
	}
	slices.Sort(m.paths)
	return d, m.paths
}

// declaredSecrets returns the defaults and listed values of the sensitive parameters of
// a VirtualMachineTemplate.
func declaredSecrets(template map[string]any) []string {
	spec, _ := template["spec"].(map[string]any)
	parameters, _ := spec["parameters"].([]any)
	var secrets []string
	for _, item := range parameters {
		parameter, _ := item.(map[string]any)
		if sensitive, _ := parameter["sensitive"].(bool); !sensitive {
			continue
		}
		enum, _ := parameter["enum"].([]any)
		for _, value := range append(slices.Clone(enum), parameter["value"]) {
			if text, _ := value.(string); text != "" {
				secrets = append(secrets, text)
			}
		}
	}
	return secrets
}

// withoutSecretData returns an object as policies may see it: a Secret without the values
// of its data. Other objects are returned as they are.
func withoutSecretData(object map[string]any) map[string]any {
	if object["apiVersion"] != "v1" || object["kind"] != "Secret" {
		return object
	}
	shown := maps.Clone(object)
	for _, key := range secretData {
		if shown[key] == nil {
			continue
		}
		masked := map[string]any{}
		for name := range machine.MapAt(object, key) {
			masked[name] = Masked
		}
		shown[key] = masked
	}
	return shown
}

// withoutValues reports whether the values of a Secret are masked already, so that its keys
// remain.
func withoutValues(data any) bool {
	values, is := data.(map[string]any)
	for _, value := range values {
		is = is && value == Masked
	}
	return is
}

// masker copies JSON values without secrets.
type masker struct {
	secrets []string
	paths   []string
}

func (m *masker) object(path string, in map[string]any) map[string]any {
	if in == nil {
		return nil
	}
	out := make(map[string]any, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		value := in[key]
		at := path + "." + key
		if strings.ContainsAny(key, "./") {
			at = path + "[" + key + "]"
		}
		switch {
		case in["kind"] == "Secret" && slices.Contains(secretData, key) && value != nil && !withoutValues(value):
			out[key] = m.mask(at)
		case m.secret(key):
			key = Masked + strconv.Itoa(len(m.paths))
			at = path + "." + key
			out[key] = m.mask(at)
		case slices.Contains(guestSecrets, key) && value != nil, slices.Contains(secretAnnotations, key):
			out[key] = m.mask(at)
		default:
			out[key] = m.value(at, value)
		}
	}
	return out
}

func (m *masker) value(path string, in any) any {
	switch value := in.(type) {
	case map[string]any:
		return m.object(path, value)
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = m.value(path+"["+strconv.Itoa(i)+"]", item)
		}
		return out
	case string:
		if m.secret(value) {
			return m.mask(path)
		}
	case nil, bool:
	case json.Number:
		if slices.Contains(m.secrets, value.String()) {
			return m.mask(path)
		}
	default:
		if slices.Contains(m.secrets, fmt.Sprint(value)) {
			return m.mask(path)
		}
	}
	return in
}

func (m *masker) secret(text string) bool {
	return slices.ContainsFunc(m.secrets, func(secret string) bool { return strings.Contains(text, secret) })
}

func (m *masker) mask(path string) string {
	m.paths = append(m.paths, path)
	return Masked
}
