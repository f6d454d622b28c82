package selfprotection

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultManager is the owner of restored fields if the managed fields of the ConfigMap do not name its writer.
const defaultManager = "helm"

// writer returns the field manager that last wrote the data of a ConfigMap, and the time of the write.
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

// lastChange returns the field manager that last changed an object; empty if there is none. The times have a resolution of one second:
// within the same second, a change by another manager counts as later than one by the release's own.
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
