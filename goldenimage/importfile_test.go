package goldenimage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
)

const (
	newer   = "sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
	fileURL = "https://images.example/fedora.qcow2"
)

// fileState of a file that has a DataSource.
func fileState(change func(*goldenimage.State)) goldenimage.State {
	return state(func(s *goldenimage.State) {
		s.Image.Spec.Source = v1alpha1.GoldenImageSource{HTTP: &v1alpha1.GoldenImageHTTP{URL: fileURL}}
		s.Sources["fedora"] = &goldenimage.DataSource{
			Labels: map[string]string{v1alpha1.LabelGoldenImage: "fedora"}, Annotations: map[string]string{v1alpha1.AnnotationGoldenImage: "fedora"},
			Owners: []metav1.OwnerReference{{UID: "of-fedora"}}, Source: map[string]any{"pvc": map[string]any{"namespace": "golden", "name": "fedora"}},
		}
		s.Check.Found[0].Tag = ""
		if change != nil {
			change(s)
		}
	})
}

// imported adds the volume of an import with the template that the state yields.
func imported(s *goldenimage.State, digest string, done bool) *goldenimage.FileImport {
	of := *s
	of.Check = &goldenimage.Check{Found: []goldenimage.Found{{Digest: digest}}}
	of.Volumes = nil
	template := ""
	for _, action := range goldenimage.Decide(of).Actions {
		if action.Resource == goldenimage.DataVolumes && action.Verb == goldenimage.Create {
			template, _ = action.Object["metadata"].(map[string]any)["annotations"].(map[string]any)[goldenimage.AnnotationTemplate].(string)
		}
	}
	one := &goldenimage.FileImport{Digest: digest, Template: template, Checksum: digest}
	name := "fedora-" + digest[len("sha256:"):][:12]
	labels := map[string]string{v1alpha1.LabelGoldenImage: "fedora"}
	if done {
		one.Done = &metav1.Time{Time: s.Now.Add(-time.Hour)}
		s.Volumes = append(s.Volumes, goldenimage.Volume{Resource: goldenimage.Claims, Name: name, Labels: labels})
	}
	s.Volumes = append(s.Volumes, goldenimage.Volume{Resource: goldenimage.DataVolumes, Name: name, Labels: labels, Import: one, Progress: "42.0%"})
	return one
}

func TestImportsOfFiles(t *testing.T) {
	const (
		first     = "fedora-0123456789ab"
		last      = "fedora-ffffffffffff"
		importing = "False Importing: " + digest + " is being imported for DataSource fedora"
		moved     = "patch datasources fedora, apply datasources fedora"
	)
	for name, tc := range map[string]struct {
		state            func(*goldenimage.State)
		writes, upToDate string
		history          int
	}{
		"nothing was imported": {nil, "create datavolumes " + first, importing, 0},
		"the import goes on":   {func(s *goldenimage.State) { imported(s, digest, false) }, "", importing, 0},
		"it has succeeded":     {func(s *goldenimage.State) { imported(s, digest, true) }, moved, importing, 1},
		"it has succeeded, and the manager had died before it stored the history of two": {func(s *goldenimage.State) {
			imported(s, newer, true).Done.Time = s.Now.Add(-2 * time.Hour)
			imported(s, digest, true)
		}, moved, importing, 2},
		"CDI has lost the checksum": {func(s *goldenimage.State) { imported(s, digest, true).Checksum = "" }, "",
			"False ImportFailed: CDI verifies no checksum, because it has not stored that of DataVolume " + first + ": update CDI to 1.65 or later, then delete the DataVolume", 0},
		"a newer one replaces one that has not succeeded": {func(s *goldenimage.State) { imported(s, newer, false) }, "delete datavolumes " + last + ", create datavolumes " + first, importing, 0},
		"another URL": {func(s *goldenimage.State) {
			imported(s, digest, false)
			s.Image.Spec.Source.HTTP.URL += "2"
		}, "delete datavolumes " + first, importing, 0},
		"a disk that was cloned, with the labels": {func(s *goldenimage.State) {
			imported(s, newer, true)
			for i := range s.Volumes {
				s.Volumes[i].Name = "disk"
			}
		}, "create datavolumes " + first, importing, 0},
		"suspended": {func(s *goldenimage.State) { s.Image.Spec.Suspended, s.Check = true, nil }, "", "Unknown Suspended: spec.suspended stops checks", 0},
		"pinned to one that the server does not have": {func(s *goldenimage.State) { s.Image.Spec.Digest = newer }, "",
			"False DigestUnknown: spec.digest: no image has the digest " + newer + ": take one of status.history", 0},
		"pinned to the newest": {func(s *goldenimage.State) { s.Image.Spec.Digest = digest }, "create datavolumes " + first, importing, 0},
		"of a registry before": {func(s *goldenimage.State) {
			s.Crons["fedora"] = &goldenimage.Cron{Labels: map[string]string{v1alpha1.LabelGoldenImage: "fedora"}}
		}, "delete dataimportcrons fedora", importing, 0},
	} {
		t.Run(name, func(t *testing.T) {
			plan := goldenimage.Decide(fileState(tc.state))
			if got := written(plan); got != tc.writes {
				t.Errorf("wrote %q, want %q", got, tc.writes)
			}
			if got := condition(plan, v1alpha1.ConditionUpToDate); got != tc.upToDate {
				t.Errorf("UpToDate %q, want %q", got, tc.upToDate)
			}
			if got := plan.Status.History; len(got) != tc.history || len(got) > 0 && got[0].Digest != digest {
				t.Errorf("history %+v", got)
			}
		})
	}
}

// TestWhatADataVolumeImports has the source of each kind of file.
func TestWhatADataVolumeImports(t *testing.T) {
	version := "version:" + strings.TrimPrefix(digest, "sha256:")
	for name, tc := range map[string]struct {
		source v1alpha1.GoldenImageSource
		digest string
		want   map[string]any
	}{
		"a file with a checksum": {v1alpha1.GoldenImageSource{HTTP: &v1alpha1.GoldenImageHTTP{URL: fileURL, SecretRef: "a", CertConfigMap: "b"}}, digest,
			map[string]any{"http": map[string]any{"url": fileURL, "secretRef": "a", "certConfigMap": "b", "checksum": digest}}},
		"a file without": {v1alpha1.GoldenImageSource{HTTP: &v1alpha1.GoldenImageHTTP{URL: fileURL}}, version, map[string]any{"http": map[string]any{"url": fileURL}}},
		"an object":      {v1alpha1.GoldenImageSource{S3: &v1alpha1.GoldenImageS3{URL: fileURL, SecretRef: "a"}}, version, map[string]any{"s3": map[string]any{"url": fileURL, "secretRef": "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := goldenimage.Decide(fileState(func(s *goldenimage.State) { s.Image.Spec.Source, s.Check.Found[0].Digest = tc.source, tc.digest }))
			if len(plan.Actions) != 1 {
				t.Fatal(written(plan))
			}
			made := plan.Actions[0].Object
			if diff := cmp.Diff(tc.want, made["spec"].(map[string]any)["source"]); diff != "" {
				t.Errorf("source (-want +got):\n%s", diff)
			}
			annotations := made["metadata"].(map[string]any)["annotations"].(map[string]any)
			if annotations[v1alpha1.AnnotationImageDigest] != tc.digest || annotations["cdi.kubevirt.io/storage.bind.immediate.requested"] != "true" {
				t.Errorf("annotations %v", annotations)
			}
		})
	}
}

// TestASnapshotIsReplaced moves a DataSource from a snapshot, which an image of a registry may be, to a claim: it must not have both.
func TestASnapshotIsReplaced(t *testing.T) {
	plan := goldenimage.Decide(fileState(func(s *goldenimage.State) {
		imported(s, digest, true)
		s.Sources["fedora"].Source = map[string]any{"snapshot": map[string]any{"namespace": "golden", "name": "old"}}
	}))
	if got, want := written(plan), "patch datasources fedora, apply datasources fedora"; got != want {
		t.Fatalf("wrote %q, want %q", got, want)
	}
	source := plan.Actions[0].Object["spec"].(map[string]any)["source"].(map[string]any)
	if snapshot, is := source["snapshot"]; !is || snapshot != nil || source["pvc"] == nil {
		t.Errorf("patched source %v", source)
	}
}
