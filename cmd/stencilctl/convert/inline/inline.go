// Package inline replaces claims that templates copy by DataSources that stand for them, so that templates follow their images. It uses no client.
package inline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/template/virtualmachine"
)

// API of DataSources.
const (
	APIVersion = "cdi.kubevirt.io/v1beta1"
	Kind       = "DataSource"
)

// Claim is a claim that a template copies. Its DataSource has the same namespace and name.
type Claim struct{ Namespace, Name string }

// String returns NAMESPACE/NAME.
func (c Claim) String() string { return c.Namespace + "/" + c.Name }

// DataSource returns a DataSource that stands for the claim.
func (c Claim) DataSource() map[string]any {
	return map[string]any{
		"apiVersion": APIVersion, "kind": Kind,
		"metadata": map[string]any{"namespace": c.Namespace, "name": c.Name},
		"spec":     map[string]any{"source": map[string]any{"pvc": map[string]any{"namespace": c.Namespace, "name": c.Name}}},
	}
}

// Conflict returns why a DataSource with the name of the claim does not stand for it; empty if it does.
func (c Claim) Conflict(source map[string]any) string {
	from := virtualmachine.MapAt(source, "spec", "source")
	at := Claim{Namespace: virtualmachine.StringAt(virtualmachine.MapAt(from, "pvc"), "namespace"), Name: virtualmachine.StringAt(virtualmachine.MapAt(from, "pvc"), "name")}
	if at.Namespace == "" {
		at.Namespace = c.Namespace
	}
	if at == c {
		return ""
	}
	stands := "nothing"
	if at.Name != "" {
		stands = "PersistentVolumeClaim " + at.String()
	}
	for field, kind := range map[string]string{"snapshot": "VolumeSnapshot", "dataSource": "DataSource"} {
		if other := virtualmachine.MapAt(from, field); other != nil {
			stands = kind + " " + virtualmachine.StringAt(other, "name")
		}
	}
	return fmt.Sprintf("DataSource %s exists and stands for %s, not for PersistentVolumeClaim %s: rename one of them, or use the DataSource in the template yourself", c, stands, c)
}

// Result is what Convert has done with a template.
type Result struct {
	// Disks are the names of the dataVolumeTemplates that were converted.
	Disks []string
	// Claims are the claims that they copy, each once.
	Claims []Claim
	// Left are the dataVolumeTemplates that still copy a claim, and why.
	Left []string
}

// Convert replaces the claims in spec.source of the dataVolumeTemplates of a template by references to DataSources of the same name. It changes the
// template.
func Convert(template map[string]any) Result {
	var made Result
	for _, disk := range virtualmachine.MapsAt(virtualmachine.MapAt(template, "spec", "virtualMachine", "spec"), "dataVolumeTemplates") {
		spec, name := virtualmachine.MapAt(disk, "spec"), virtualmachine.StringAt(virtualmachine.MapAt(disk, "metadata"), "name")
		from := virtualmachine.MapAt(spec, "source", "pvc")
		if from == nil {
			continue
		}
		claim := Claim{Namespace: virtualmachine.StringAt(from, "namespace"), Name: virtualmachine.StringAt(from, "name")}
		switch {
		case strings.Contains(claim.String(), "${"):
			made.Left = append(made.Left, name+": the claim "+claim.String()+" depends on a parameter")
			continue
		case claim.Namespace == "" || claim.Name == "":
			made.Left = append(made.Left, name+": spec.source.pvc lacks the namespace or the name of the claim")
			continue
		}
		delete(spec, "source")
		spec["sourceRef"] = map[string]any{"kind": Kind, "namespace": claim.Namespace, "name": claim.Name}
		made.Disks = append(made.Disks, name)
		if !slices.Contains(made.Claims, claim) {
			made.Claims = append(made.Claims, claim)
		}
	}
	return made
}
