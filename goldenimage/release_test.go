package goldenimage_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
)

// TestReleaseDeletesOwnVolumesOnly deletes an image whose name a DataImportCron of a user has too: CDI's label on volumes is the same, and disks
// that were cloned from an image have its labels.
func TestReleaseDeletesOwnVolumesOnly(t *testing.T) {
	s := state(func(s *goldenimage.State) {
		s.Check = nil
		s.Image.DeletionTimestamp = &metav1.Time{Time: s.Now}
		s.Image.Spec.Retention = v1alpha1.RetentionDelete
		s.Image.Status.History = []v1alpha1.ImportedImage{{Digest: digest, Volume: "fedora-in-history"}}
		s.Crons["fedora"] = &goldenimage.Cron{}
		label := map[string]string{goldenimage.LabelDataImportCron: "fedora"}
		s.Volumes = []goldenimage.Volume{
			{Resource: goldenimage.Claims, Name: "fedora-in-history", Labels: label},
			{Resource: goldenimage.Claims, Name: "fedora-0123456789ab", Labels: map[string]string{v1alpha1.LabelGoldenImage: "fedora"}},
			{Resource: goldenimage.Claims, Name: "fedora-01234567-89a", Labels: map[string]string{v1alpha1.LabelGoldenImage: "fedora"}},
			{Resource: goldenimage.Claims, Name: "fedora-dead-beef-ca", Labels: map[string]string{v1alpha1.LabelGoldenImage: "fedora"}},
			{Resource: goldenimage.Claims, Name: "fedora-cloned-disk", Labels: map[string]string{v1alpha1.LabelGoldenImage: "fedora"}},
			{Resource: goldenimage.Claims, Name: "fedora-clonedisk123", Labels: map[string]string{v1alpha1.LabelGoldenImage: "fedora", goldenimage.LabelDataImportCron: "fedora"}},
			{Resource: goldenimage.Claims, Name: "fedora-of-the-user", Labels: label},
		}
	})
	plan := goldenimage.Decide(s)
	if got, want := written(plan), "delete persistentvolumeclaims fedora-in-history, delete persistentvolumeclaims fedora-0123456789ab, delete persistentvolumeclaims fedora-01234567-89a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestASuspendedImageIsNotChecked(t *testing.T) {
	s := state(func(s *goldenimage.State) {
		s.Check = nil
		s.Image.Spec.Suspended = true
		past := metav1.NewTime(s.Now.AddDate(0, 0, -1))
		s.Image.Status.NextCheckTime = &past
	})
	plan := goldenimage.Decide(s)
	if !plan.Again.IsZero() || plan.Status.NextCheckTime != nil {
		t.Errorf("the next check is at %v, the next decision at %v", plan.Status.NextCheckTime, plan.Again)
	}
	if at, is := goldenimage.NextCheck(s.Image); is {
		t.Errorf("it is to be checked at %s", at)
	}
}
