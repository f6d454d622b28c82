package virtualmachine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	contract "github.com/vmstencil/stencil/api/template"
)

// Record is the value of the annotation `rendered`: what a VM was rendered from, and what later updates of it need from its
// creation.
type Record struct {
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	// Digest of the template's content.
	Digest string `json:"digest"`
	// Sensitive names the parameters with removed annotations.
	Sensitive []string `json:"sensitive,omitempty"`
	// Rules is whether the template had rules. Match conditions of webhooks search the annotation for this field in its
	// encoded form.
	Rules bool `json:"rules,omitempty"`
	// Mutable names the parameters that may change after the creation. An admission policy searches the annotation for this field in its encoded form.
	Mutable []string `json:"mutable,omitempty"`
	// Sent is the fingerprint of the spec that the user sent, if any.
	Sent string `json:"sent,omitempty"`
	// Lists holds the fingerprints of the lists that the user sent and that were merged by name, by their JSON Pointers.
	Lists map[string]string `json:"lists,omitempty"`
	// Base is what is needed to undo overrides. It is nil if the spec was sent complete: there are no overrides then.
	Base *Base `json:"base,omitempty"`
}

// Base is what the record holds of the rendered spec, which has no overrides.
type Base struct {
	// RunStrategy and Running of the template. KubeVirt changes them without asking Stencil.
	RunStrategy string `json:"runStrategy,omitempty"`
	Running     *bool  `json:"running,omitempty"`
	// Secret lists the places, in the syntax of overrides of approvals, that contain sensitive or generated values.
	Secret []string `json:"secret,omitempty"`
}

// String returns the text of the annotation.
func (r Record) String() string {
	raw, err := json.Marshal(r)
	if err != nil {
		panic("encoding strings and numbers as JSON: " + err.Error())
	}
	return string(raw)
}

// Record reads the annotation of a stored VM. It returns the zero value if there is none or it has another format.
func (m Object) Record() Record {
	var r Record
	if err := json.Unmarshal([]byte(StringAt(m.Annotations, contract.AnnotationRendered)), &r); err != nil {
		return Record{}
	}
	return r
}

// Labels returns the labels by which consoles and dashboards find VMs.
func (r Record) Labels() map[string]string {
	return map[string]string{
		contract.LabelTemplate:          labelValue(r.Name),
		contract.LabelTemplateNamespace: r.Namespace,
		contract.LabelTemplateRevision:  strconv.FormatInt(r.Generation, 10),
	}
}

// labelValue shortens a name that is too long for a label: names of objects may have 253 characters, values of labels 63.
// The end is replaced by a hash of the whole name, so that two long names differ.
func labelValue(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:5])
	return strings.TrimRight(name[:validation.LabelValueMaxLength-len(suffix)], "-.") + suffix
}
