package revisions

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/revision"
)

const (
	// labelBackup marks backups.
	labelBackup = "stencil.kubevirt.io/revision-backup"
	// annotationBackup holds on a backup the metadata of the original, and on a replaced copy the name of the backup.
	annotationBackup = "stencil.kubevirt.io/revision-backup"

	backupInfix  = "-bak-"
	trialInfix   = "-try-"
	maximumName  = 253
	digestInName = 10
)

// original is the content of annotationBackup on a backup.
type original struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid"`
	SHA256      string            `json:"sha256"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Orphan is true if nothing referred to the original.
	Orphan bool `json:"orphan,omitempty"`
	// Data and Labels of what replaces it, so that no later release decides otherwise.
	Converted json.RawMessage   `json:"converted"`
	Relabels  map[string]string `json:"convertedLabels"`
}

func isBackup(r *appsv1.ControllerRevision) bool { return r.Labels[labelBackup] != "" }

// derivedName returns the name of a backup or a trial of data with a digest.
func derivedName(name, infix, digest string) string {
	ending := infix + digest[:digestInName]
	if len(name)+len(ending) > maximumName {
		name = name[:maximumName-len(ending)]
	}
	return name + ending
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// backupOf returns the backup of a stored copy: its bytes under another name, without the labels of KubeVirt, owned by the same object. It also
// returns what readBackup reads of it.
func backupOf(r *appsv1.ControllerRevision, converted *revision.Converted, orphan bool) (*appsv1.ControllerRevision, *original, error) {
	sum := digest(r.Data.Raw)
	o := &original{
		Name: r.Name, UID: string(r.UID), SHA256: sum, Labels: r.Labels, Annotations: r.Annotations, Orphan: orphan,
		Converted: converted.Data, Relabels: converted.Labels,
	}
	described, err := json.Marshal(o)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the metadata of ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
	}
	return derived(r, derivedName(r.Name, backupInfix, sum), map[string]string{labelBackup: "true"}, map[string]string{annotationBackup: string(described)}, r.Data.Raw), o, nil
}

// derived returns a ControllerRevision to be created, in the namespace of another one, with its owners and its number.
func derived(from *appsv1.ControllerRevision, name string, labels, annotations map[string]string, data []byte) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: from.Namespace, Name: name, OwnerReferences: from.OwnerReferences, Labels: labels, Annotations: annotations},
		Data:       runtime.RawExtension{Raw: data}, Revision: from.Revision,
	}
}

// readBackup returns what a backup states about the original. It fails if the bytes are not those that were stored.
func readBackup(backup *appsv1.ControllerRevision) (*original, error) {
	var o original
	if err := json.Unmarshal([]byte(backup.Annotations[annotationBackup]), &o); err != nil {
		return nil, fmt.Errorf("the annotation of backup %s/%s: %w", backup.Namespace, backup.Name, err)
	}
	if o.SHA256 != digest(backup.Data.Raw) {
		return nil, fmt.Errorf("the bytes of backup %s/%s are not those that were stored", backup.Namespace, backup.Name)
	}
	if o.Name == "" || len(o.Converted) == 0 {
		return nil, errors.New("the annotation of backup " + backup.Namespace + "/" + backup.Name + " is incomplete")
	}
	return &o, nil
}

// replacement returns the converted copy that replaces the original.
func replacement(backup *appsv1.ControllerRevision, o *original) *appsv1.ControllerRevision {
	labels, annotations := merged(o.Labels, o.Relabels), merged(o.Annotations, map[string]string{annotationBackup: backup.Name})
	return derived(backup, o.Name, labels, annotations, o.Converted)
}

// restored returns the original as it was.
func restored(backup *appsv1.ControllerRevision, o *original) *appsv1.ControllerRevision {
	return derived(backup, o.Name, o.Labels, o.Annotations, backup.Data.Raw)
}

func merged(all ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, one := range all {
		maps.Copy(result, one)
	}
	return result
}
