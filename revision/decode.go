package revision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

// Stored is the decoded data of a ControllerRevision.
type Stored struct {
	Version Version
	// SpecRevision is true for the oldest format. Kind, Metadata and Identity are empty then.
	SpecRevision bool
	// Family is UnknownFamily if the content of a SpecRevision is both a valid instance type and a valid preference.
	Family Family
	Identity
	// metadata and spec are the JSON as stored; the spec of a SpecRevision is decoded from base64.
	metadata, spec json.RawMessage
	// sizing is what the frozen types say about the size.
	sizing sizing
}

// Identity identifies the instance type or preference that a copy was made of.
type Identity struct {
	Kind string
	Name string
	// Namespace is empty for cluster-scoped kinds.
	Namespace  string
	UID        string
	Generation int64
}

// object is the whole-object format; SpecRevisions have neither kind nor metadata.
type object struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
}

// metadata has the fields of the metadata of stored objects.
type metadata struct {
	Name                       string            `json:"name"`
	GenerateName               string            `json:"generateName"`
	Namespace                  string            `json:"namespace"`
	SelfLink                   string            `json:"selfLink"`
	UID                        string            `json:"uid"`
	ResourceVersion            string            `json:"resourceVersion"`
	Generation                 int64             `json:"generation"`
	CreationTimestamp          *string           `json:"creationTimestamp"`
	DeletionTimestamp          *string           `json:"deletionTimestamp"`
	DeletionGracePeriodSeconds *int64            `json:"deletionGracePeriodSeconds"`
	Labels                     map[string]string `json:"labels"`
	Annotations                map[string]string `json:"annotations"`
	OwnerReferences            []json.RawMessage `json:"ownerReferences"`
	Finalizers                 []string          `json:"finalizers"`
	ManagedFields              []json.RawMessage `json:"managedFields"`
}

// Concerns reports whether the data of a ControllerRevision is, by its apiVersion or its labels, a copy of an instance type or
// preference. Other controllers and KubeVirt itself use ControllerRevisions as well.
func Concerns(labels map[string]string, data []byte) bool {
	if labels[LabelKind] != "" {
		return true
	}
	if !bytes.Contains(data, []byte(Group+"/")) {
		return false
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
	}
	return json.Unmarshal(data, &head) == nil && strings.HasPrefix(head.APIVersion, Group+"/")
}

// Decode decodes the data of a ControllerRevision strictly: unknown, duplicate and mistyped fields are errors. family is that of the
// field that refers to it, UnknownFamily if there is none; it distinguishes SpecRevisions.
func Decode(data []byte, family Family) (*Stored, error) {
	var o object
	if err := strict(data, &o); err != nil {
		return nil, err
	}
	group, version, _ := strings.Cut(o.APIVersion, "/")
	if group != Group || !slices.Contains(versions, Version(version)) {
		return nil, fmt.Errorf("apiVersion %q is not known", o.APIVersion)
	}
	s := &Stored{Version: Version(version)}
	if o.Kind == "" && o.Metadata == nil {
		return s, s.decodeSpecRevision(o, family)
	}
	s.Family = kinds[o.Kind]
	if s.Family == UnknownFamily {
		return nil, fmt.Errorf("kind %q is not known", o.Kind)
	}
	if family != UnknownFamily && family != s.Family {
		return nil, fmt.Errorf("kind %s is referred to as a %s", o.Kind, family)
	}
	var m metadata
	if err := strict(o.Metadata, &m); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	if m.Name == "" {
		return nil, errors.New("metadata has no name")
	}
	s.Identity = Identity{Kind: o.Kind, Name: m.Name, Namespace: m.Namespace, UID: m.UID, Generation: m.Generation}
	s.metadata, s.spec = o.Metadata, o.Spec
	var err error
	if s.sizing, err = decodeSpec(s.Version, s.Family, o.Spec); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return s, nil
}

func (s *Stored) decodeSpecRevision(o object, family Family) error {
	if s.Version != V1alpha1 {
		return fmt.Errorf("a SpecRevision has the version %s", s.Version)
	}
	var spec []byte
	if err := json.Unmarshal(o.Spec, &spec); err != nil || spec == nil {
		return errors.New("there is no kind, and spec is not base64")
	}
	s.SpecRevision, s.spec = true, spec
	if family != UnknownFamily {
		s.Family = family
		var err error
		if s.sizing, err = decodeSpec(s.Version, family, spec); err != nil {
			return fmt.Errorf("spec: %w", err)
		}
		return nil
	}
	asInstancetype, err1 := decodeSpec(s.Version, Instancetype, spec)
	asPreference, err2 := decodeSpec(s.Version, Preference, spec)
	switch {
	case err1 == nil && err2 != nil:
		s.Family, s.sizing = Instancetype, asInstancetype
	case err1 != nil && err2 == nil:
		s.Family, s.sizing = Preference, asPreference
	case err1 != nil:
		return fmt.Errorf("spec is no instance type: %w", err1)
	}
	return nil
}

// decodeSpec decodes a spec with the frozen types of its version.
func decodeSpec(version Version, family Family, spec []byte) (sizing, error) {
	if len(spec) == 0 || bytes.Equal(spec, []byte("null")) {
		return sizing{}, errors.New("is missing")
	}
	var into interface{ sizing() (sizing, error) }
	switch {
	case family == Instancetype && version == V1beta1:
		into = &instancetypeV1beta1{}
	case family == Instancetype:
		into = &instancetypeV1alpha{}
	case version == V1beta1:
		into = &preferenceV1beta1{}
	case version == V1alpha2:
		into = &preferenceV1alpha2{}
	default:
		into = &preferenceV1alpha1{}
	}
	if err := strict(spec, into); err != nil {
		return sizing{}, err
	}
	return into.sizing()
}

// strict decodes case-sensitively and fails on unknown and duplicate fields.
func strict(data []byte, into any) error {
	strictErrs, err := kjson.UnmarshalStrict(data, into)
	return errors.Join(append(strictErrs, err)...)
}
