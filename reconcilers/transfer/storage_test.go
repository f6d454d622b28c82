package transfer

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// TestVolumesHaveRoomForTheirFilesystem tests sizes with CDI's default share. A filesystem of ext4 with 128Mi has less than 120Mi for a file.
func TestVolumesHaveRoomForTheirFilesystem(t *testing.T) {
	for _, test := range []struct{ disk, copies, want string }{
		{"119Mi", "0", "183Mi"},
		{"1Mi", "0", "65Mi"},
		{"10Gi", "0", "10894Mi"},
		// No larger than copies, in whole MiB: CDI would not create them.
		{"119Mi", "138940Ki", "144Mi"},
		{"119Mi", "128Mi", "136Mi"},
		// The disk decides where copies are to be larger, or request too little.
		{"10Gi", "30Gi", "10894Mi"},
		{"119Mi", "64Mi", "127Mi"},
	} {
		size, copies := resource.MustParse(test.disk), resource.MustParse(test.copies)
		r := &runner{cluster: newImportWorld(t).client}
		got, err := r.storageOf(t.Context(), v1beta1.ImportStorage{StorageClassName: "fast", VolumeMode: new(corev1.PersistentVolumeFilesystem)}, size.Value(), copies.Value())
		if err != nil {
			t.Fatal(err)
		}
		if want := resource.MustParse(test.want); got.size != want.Value() {
			t.Errorf("a disk of %s whose copies request %s: %d MiB, want %s", test.disk, test.copies, got.size>>20, test.want)
		}
	}
}

func TestSizesOfCopies(t *testing.T) {
	const template = `{"spec": {"virtualMachine": {"spec": {"dataVolumeTemplates": [
		{"spec": {"source": {"pvc": {"name": "root"}}, "storage": {"resources": {"requests": {"storage": "10Gi"}}}}},
		{"spec": {"source": {"pvc": {"name": "data"}}, "storage": {"resources": {"requests": {"storage": "${SIZE}"}}}}},
		{"spec": {"source": {"pvc": {"name": "bytes"}}, "storage": {"resources": {"requests": {"storage": 4096}}}}},
		{"spec": {"source": {"pvc": {"name": "same"}}, "storage": {}}}]}}}}`
	got, err := copySizes([]byte(template))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"bytes":4096,"root":10737418240}`
	if text, err := json.Marshal(got); err != nil || string(text) != want {
		t.Errorf("got %s, want %s: %v", text, want, err)
	}
}
