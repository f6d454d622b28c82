package apiserver

import (
	"encoding/json"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
)

// encoded is a body that is JSON already.
type encoded []byte

// maximumList bounds a list, in bytes: template owners and cluster admins decide how large its items are.
const maximumList = 64 << 20

// maximumEncoded bounds the descriptions of templates that are retained, in bytes.
const maximumEncoded = 16 << 20

// descriptions retains descriptions of templates as JSON, without their metadata: most requests receive the same as those before. All are dropped when
// they exceed their limit. The zero value is empty.
type descriptions struct {
	mutex   sync.Mutex
	entries map[descriptionKey][]byte
	size    int
}

// descriptionKey is the version of a template, and approval.NarrowingKey.
type descriptionKey struct {
	template           types.UID
	version, approvals string
}

func (d *descriptions) get(key descriptionKey) []byte {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.entries[key]
}

func (d *descriptions) put(key descriptionKey, description []byte) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.size += len(description); d.entries == nil || d.size > maximumEncoded {
		d.entries, d.size = map[descriptionKey][]byte{}, len(description)
	}
	d.entries[key] = description
}

// encode returns the list of templates as JSON.
func (h *handler) encode(a *availability) (encoded, error) {
	approvals := approval.NarrowingKey(a.approvals, a.user)
	// The whole is large, so it is allocated once.
	parts := make([][]byte, 0, 2*len(a.templates))
	head := fmt.Sprintf(`{"kind":"AvailableTemplateList","apiVersion":%q,"items":[`, h.version)
	if a.next != "" {
		head = fmt.Sprintf(`{"kind":"AvailableTemplateList","apiVersion":%q,"metadata":{"continue":%q},"items":[`, h.version, a.next)
	}
	size := len(head) + len("]}")
	for _, t := range a.templates {
		metadata, err := json.Marshal(a.metadata(t))
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("encoding the metadata of template %s: %w", availableName(t), err))
		}
		description, err := h.description(a, t, approvals)
		if err != nil {
			return nil, err
		}
		parts = append(parts, metadata, description)
		if size += len(`{"metadata":,`) + len(metadata) + len(description); size > maximumList {
			return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
				"the list would be larger than %d MiB: select some of its templates, by a label selector or by name", maximumList>>20))
		}
	}
	out := append(make([]byte, 0, size), head...)
	for i := 0; i < len(parts); i += 2 {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"metadata":`...)
		out = append(append(out, parts[i]...), ',')
		out = append(out, parts[i+1][1:]...)
	}
	return append(out, "]}"...), nil
}

// description returns a template as JSON, without its metadata.
func (h *handler) description(a *availability, t *templatecache.Template, approvals string) ([]byte, error) {
	key := descriptionKey{t.UID, t.ResourceVersion, approvals}
	if found := h.descriptions.get(key); found != nil {
		return found, nil
	}
	one := a.describe(t)
	if err := addSchema(&one); err != nil {
		return nil, err
	}
	one.Name, one.Namespace, one.Labels = "", "", nil
	description, err := json.Marshal(one)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("encoding template %s: %w", availableName(t), err))
	}
	h.descriptions.put(key, description)
	return description, nil
}
