package revision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Converted is a copy in the target version.
type Converted struct {
	// Data is the data of the ControllerRevision.
	Data []byte
	// Labels are its five labels.
	Labels map[string]string
}

// Convert returns the copy in the target version: apiVersion, kind and metadata are rewritten, the spec is retained as it is. identity is
// that of a SpecRevision, and is ignored otherwise. The result is proved: see Prove.
func (s *Stored) Convert(identity Identity) (*Converted, error) {
	described := s.metadata
	if s.SpecRevision {
		if kinds[identity.Kind] == UnknownFamily || kinds[identity.Kind] != s.Family {
			return nil, fmt.Errorf("its content is a %s, and kind %q is not", s.Family, identity.Kind)
		}
		if identity.Name == "" || identity.UID == "" || identity.Generation == 0 {
			return nil, errors.New("name, uid and generation are required")
		}
		var err error
		if described, err = identity.metadata(); err != nil {
			return nil, err
		}
	} else {
		identity = s.Identity
	}
	data, err := encode(identity.Kind, described, s.spec)
	if err != nil {
		return nil, err
	}
	converted := &Converted{Data: data, Labels: identity.Labels()}
	if err := s.Prove(converted.Data); err != nil {
		return nil, fmt.Errorf("the conversion changes it: %w", err)
	}
	return converted, nil
}

// encode writes an object without adding a field to metadata or spec. encoding/json compacts both.
func encode(kind string, described, spec json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object{APIVersion: Group + "/" + string(Target), Kind: kind, Metadata: described, Spec: spec}); err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func (i Identity) metadata() (json.RawMessage, error) {
	return json.Marshal(struct {
		Name       string `json:"name"`
		Namespace  string `json:"namespace,omitempty"`
		UID        string `json:"uid"`
		Generation int64  `json:"generation"`
	}{i.Name, i.Namespace, i.UID, i.Generation})
}

// Labels returns the five labels of a copy in the target version.
func (i Identity) Labels() map[string]string {
	return map[string]string{
		LabelGeneration: strconv.FormatInt(i.Generation, 10),
		LabelKind:       i.Kind,
		LabelName:       i.Name,
		LabelUID:        i.UID,
		LabelVersion:    string(Target),
	}
}
