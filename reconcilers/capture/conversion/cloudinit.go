package conversion

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// header matches the first line by which cloud-init recognizes cloud-config.
var header = regexp.MustCompile(`^\s*(?i:#cloud-config)[ \t]*(\r?\n|$)`)

// privateKey matches the beginning of a private key in PEM.
var privateKey = regexp.MustCompile(`-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----`)

// passwordCommand matches a command that sets a password.
var passwordCommand = regexp.MustCompile(`(^|[^A-Za-z0-9_-])(chpasswd|passwd|mkpasswd|(usermod|useradd|adduser)\s.*(-p|--password))($|[^A-Za-z0-9_-])`)

const (
	annotationIgnition = "kubevirt.io/ignitiondata"

	// maximumText is the maximum length of a searched text in bytes, far more than KubeVirt accepts.
	maximumText = 256 << 10
)

// cloudInit searches the content of the VM's cloud-init volumes, and inserts parameters.
func (c *conversion) cloudInit(vm map[string]any) {
	for i, volume := range objects(vm["volumes"]) {
		for _, source := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
			from, found := volume[source].(map[string]any)
			if !found {
				continue
			}
			path := fmt.Sprintf("spec.template.spec.volumes[%d].%s", i, source)
			c.part(from, "userData", path)
			c.part(from, "networkData", path)
		}
	}
}

// part searches user data or network data, whether or not it is encoded in base64.
func (c *conversion) part(from map[string]any, key, path string) {
	if text, _ := from[key].(string); text != "" {
		if written, changed := c.document(text, key, path+"."+key); changed {
			from[key] = written
		}
	}
	encoded, _ := from[key+"Base64"].(string)
	if encoded == "" {
		return
	}
	path += "." + key + "Base64"
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !utf8.Valid(text) {
		c.result.Unsearched = append(c.result.Unsearched, path)
		return
	}
	if written, changed := c.document(string(text), key, path); changed {
		// A parameter cannot be part of base64.
		delete(from, key+"Base64")
		from[key] = written
	}
}

// document searches one text. The result is in the template's language.
func (c *conversion) document(text, key, path string) (literal, bool) {
	first := ""
	if key == "userData" {
		first = header.FindString(text)
		if first == "" {
			c.script(text, path)
			return "", false
		}
	}
	var root yaml.Node
	if len(text) > maximumText || yaml.Unmarshal([]byte(text[len(first):]), &root) != nil {
		c.result.Unsearched = append(c.result.Unsearched, path)
		return "", false
	}
	if len(root.Content) == 0 {
		return "", false
	}
	s := &search{conversion: c, path: path, replace: c.options.Spec.Secrets == v1beta1.CaptureSecretsParameterize && key == "userData", mark: mark(text)}
	s.mapping(root.Content[0])
	if key == "userData" && c.parameterized(v1beta1.CaptureSSHKey) && !c.declared(string(v1beta1.CaptureSSHKey)) {
		s.sshKey(root.Content[0])
	}
	if len(s.references) == 0 {
		return "", false
	}
	var written bytes.Buffer
	encoder := yaml.NewEncoder(&written)
	encoder.SetIndent(2)
	// A decoded document can always be encoded.
	if err := encoder.Encode(&root); err != nil {
		c.result.Unsearched = append(c.result.Unsearched, path)
		return "", false
	}
	if first != "" {
		first = "#cloud-config\n"
	}
	escaped := escapeText(first + written.String())
	for i, reference := range s.references {
		escaped = strings.ReplaceAll(escaped, s.placeholder(i), string(reference))
	}
	return literal(escaped), true
}

// script searches a text that is not cloud-config by patterns.
func (c *conversion) script(text, path string) {
	found := false
	if privateKey.MatchString(text) {
		found = true
		c.result.Secrets = append(c.result.Secrets, Secret{Path: path + " (a private key)"})
	}
	if passwordCommand.MatchString(text) {
		found = true
		c.result.Secrets = append(c.result.Secrets, Secret{Path: path + " (a command that sets a password)"})
	}
	if !found {
		c.result.Unsearched = append(c.result.Unsearched, path)
	}
}

// mark returns a word that the text does not contain.
func mark(text string) string {
	word := "STENCIL"
	for strings.Contains(text, word) {
		word += "X"
	}
	return word
}

// ignition reports passwords and private keys in the annotation with the configuration of Ignition.
func (c *conversion) ignition(annotations map[string]any, path string) {
	text, _ := annotations[annotationIgnition].(string)
	if strings.Contains(strings.ToLower(text), "passwordhash") || privateKey.MatchString(text) {
		c.result.Secrets = append(c.result.Secrets, Secret{Path: path + "[" + annotationIgnition + "]"})
	}
}
