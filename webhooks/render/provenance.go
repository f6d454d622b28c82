package render

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

// provenance is the value of the annotation `rendered`: what a VM was rendered
// from, and what a later update of it has to know about its creation.
type provenance struct {
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	// Digest is that of the template's content.
	Digest string `json:"digest"`
	// Sensitive names the parameters whose annotations were removed.
	Sensitive []string `json:"sensitive,omitempty"`
	// Sent is the fingerprint of the spec that the person sent, if any.
	Sent string `json:"sent,omitempty"`
	// Lists holds the fingerprints of the lists that the person sent and that
	// were merged by name, by their JSON Pointers.
	Lists map[string]string `json:"lists,omitempty"`
}

func (p provenance) String() string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic("encoding strings and numbers as JSON: " + err.Error())
	}
	return string(raw)
}

// provenanceOf reads the annotation of a stored VM. It returns the zero value
// when there is none or it is not ours.
func provenanceOf(stored submitted) provenance {
	var p provenance
	if err := json.Unmarshal([]byte(stringAt(stored.annotations, contract.AnnotationRendered)), &p); err != nil {
		return provenance{}
	}
	return p
}

// labels are what consoles and dashboards look VMs up by.
func (p provenance) labels() map[string]string {
	return map[string]string{
		contract.LabelTemplate:          labelValue(p.Name),
		contract.LabelTemplateNamespace: p.Namespace,
		contract.LabelTemplateRevision:  strconv.FormatInt(p.Generation, 10),
	}
}

// labelValue shortens a name that a label cannot hold: names of objects may have
// 253 characters, values of labels 63. The end is replaced by a hash of the whole
// name, so that two long names stay apart.
func labelValue(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:5])
	return strings.TrimRight(name[:validation.LabelValueMaxLength-len(suffix)], "-.") + suffix
}

// isContract says whether an annotation belongs to the contract between a VM and
// its template, so that a template cannot bring it along.
func isContract(annotation string) bool {
	return annotation == contract.AnnotationTemplateRef || annotation == contract.AnnotationRendered ||
		annotation == lastAppliedAnnotation || strings.HasPrefix(annotation, contract.AnnotationParameterPrefix)
}
