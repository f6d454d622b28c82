package selfprotection

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultManager is whom restored fields belong to when the ConfigMap does not tell who wrote it.
const defaultManager = "helm"

// writer tells which field manager last wrote the data of a ConfigMap, and when.
func writer(entries []metav1.ManagedFieldsEntry) (manager string, written time.Time) {
	manager = defaultManager
	for _, entry := range entries {
		if entry.Subresource != "" || entry.Time == nil || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		if _, found := fields["f:data"]; found && !entry.Time.Time.Before(written) {
			manager, written = entry.Manager, entry.Time.Time
		}
	}
	return manager, written
}

// lastChange tells which field manager changed an object last; empty when nobody is known.
func lastChange(entries []metav1.ManagedFieldsEntry) string {
	manager, latest := "", time.Time{}
	for _, entry := range entries {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(latest) {
			manager, latest = entry.Manager, entry.Time.Time
		}
	}
	return manager
}
