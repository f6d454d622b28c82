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

// lastChange returns the field manager that changed an object last; empty when none is known. The times have seconds: within one, a change by
// somebody else counts as later than what the release's own field manager wrote.
func lastChange(entries []metav1.ManagedFieldsEntry, release string) string {
	manager, latest := "", time.Time{}
	for _, entry := range entries {
		if entry.Subresource != "" || entry.Time == nil {
			continue
		}
		if entry.Time.After(latest) || entry.Time.Time.Equal(latest) && manager == release {
			manager, latest = entry.Manager, entry.Time.Time
		}
	}
	return manager
}
