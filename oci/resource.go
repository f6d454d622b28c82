package oci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// groups are the API groups of the kinds.
var groups = map[Kind]string{VirtualMachine: "kubevirt.io", VirtualMachineTemplate: "template.kubevirt.io"}

// Resource is the object in an artifact: its config.
type Resource struct {
	Kind Kind
	// Object is decoded JSON. Its name is a DNS subdomain.
	Object map[string]any
}

// DecodeResource reads a config.
func DecodeResource(kind Kind, config []byte) (*Resource, error) {
	if len(config) > MaxConfigBytes {
		return nil, errorf("the config has more than %d bytes", MaxConfigBytes)
	}
	r := &Resource{Kind: kind}
	decoder := json.NewDecoder(bytes.NewReader(config))
	decoder.UseNumber()
	if err := decoder.Decode(&r.Object); err != nil {
		return nil, errorf("the config is no %s in JSON: %v", kind, err)
	}
	group, _, _ := strings.Cut(text(r.Object["apiVersion"]), "/")
	if group != groups[kind] || text(r.Object["kind"]) != string(kind) {
		return nil, errorf("the config is a %.80q of %.80q; want a %s of %s", r.Object["kind"], r.Object["apiVersion"], kind, groups[kind])
	}
	if problems := validation.IsDNS1123Subdomain(r.Name()); len(problems) > 0 {
		return nil, errorf("the config has the name %.80q; want a DNS subdomain", r.Name())
	}
	return r, nil
}

// Name is the name of the object.
func (r *Resource) Name() string { return text(at(r.Object, "metadata")["name"]) }

// Encode returns the config of an artifact: without what the cluster adds to an object, and with what KubeVirt's import expects.
func (r *Resource) Encode() ([]byte, error) {
	metadata := map[string]any{}
	for _, key := range []string{"name", "namespace", "labels", "annotations"} {
		if value, found := at(r.Object, "metadata")[key]; found {
			metadata[key] = value
		}
	}
	if annotations := at(metadata, "annotations"); annotations != nil {
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	}
	if spec := at(r.vm(), "spec"); spec != nil && spec["dataVolumeTemplates"] == nil {
		// The import iterates over them.
		spec["dataVolumeTemplates"] = []any{}
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": r.Object["apiVersion"], "kind": r.Kind, "metadata": metadata, "spec": r.Object["spec"]})
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", r.Kind, r.Name(), err)
	}
	if len(raw) > MaxConfigBytes {
		return nil, errorf("%s %s has more than %d bytes", r.Kind, r.Name(), MaxConfigBytes)
	}
	return raw, nil
}

// vm is the VirtualMachine, which in a template may have placeholders.
func (r *Resource) vm() map[string]any {
	if r.Kind == VirtualMachineTemplate {
		return at(r.Object, "spec", "virtualMachine")
	}
	return r.Object
}

// Claim is a PersistentVolumeClaim that the object refers to.
type Claim struct{ Namespace, Name string }

// Disk is the name of the claim's disk in an artifact.
func (c Claim) Disk() string { return strings.ReplaceAll(c.Name, ".", "-") }

// Claims returns the claims whose disks belong to the object: those that volumes use, and from which disks are copied. Claims that a parameter selects are
// not among them. Two claims whose disks have the same name in an artifact are an error.
func (r *Resource) Claims() ([]Claim, error) {
	var all []Claim
	spec := at(r.vm(), "spec")
	for _, made := range list(spec["dataVolumeTemplates"]) {
		pvc := at(made, "spec", "source", "pvc")
		all = append(all, Claim{text(pvc["namespace"]), text(pvc["name"])})
	}
	for _, volume := range list(at(spec, "template", "spec")["volumes"]) {
		all = append(all, Claim{Name: text(at(volume, "persistentVolumeClaim")["claimName"])})
	}
	var unique []Claim
	for _, claim := range all {
		if claim.Name == "" || strings.Contains(claim.Name, "${") {
			continue
		}
		i := slices.IndexFunc(unique, func(other Claim) bool { return other.Disk() == claim.Disk() })
		switch {
		case i < 0:
			unique = append(unique, claim)
		case unique[i].Name != claim.Name || unique[i].Namespace != claim.Namespace && unique[i].Namespace != "" && claim.Namespace != "":
			return nil, errorf("the claims %q and %q are the same disk %q in an artifact: rename one", unique[i].path(), claim.path(), claim.Disk())
		}
	}
	return unique, nil
}

func (c Claim) path() string { return strings.TrimPrefix(c.Namespace+"/"+c.Name, "/") }

// DefaultArchitecture of KubeVirt's exports.
const DefaultArchitecture = "amd64"

// Architecture of the VirtualMachine; the default of its parameter, if it has one. It is amd64 if none is given.
func (r *Resource) Architecture() string {
	architecture := text(at(r.vm(), "spec", "template", "spec")["architecture"])
	if key, is := strings.CutPrefix(architecture, "${"); is {
		architecture = ""
		for _, parameter := range list(at(r.Object, "spec")["parameters"]) {
			if text(at(parameter)["name"])+"}" == key {
				architecture = text(at(parameter)["value"])
			}
		}
	}
	if architecture == "" {
		return DefaultArchitecture
	}
	return architecture
}

// at returns the object at a path, and nil if there is none.
func at(value any, path ...string) map[string]any {
	object, _ := value.(map[string]any)
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

func list(value any) []any {
	all, _ := value.([]any)
	return all
}

func text(value any) string {
	s, _ := value.(string)
	return s
}
