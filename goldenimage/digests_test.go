package goldenimage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
)

// sha returns a digest of 64 equal digits.
func sha(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

// TestDigests pins an image, and its channel, by the digests of indexes and of single images. The first architecture was renewed twice and the
// second once: the first two indexes, a and b, name the same image for it.
func TestDigests(t *testing.T) {
	const arm, amd = "arm64", "amd64"
	imported := func(architecture, digit string, day int, indexes ...string) v1alpha1.ImportedImage {
		return v1alpha1.ImportedImage{
			Architecture: architecture, Digest: sha(digit), Indexes: indexes, Volume: "fedora-" + architecture + "-" + strings.Repeat(digit, 12),
			ImportedAt: metav1.NewTime(time.Date(2026, 4, day, 0, 0, 0, 0, time.UTC)),
		}
	}
	history := []v1alpha1.ImportedImage{
		imported(amd, "3", 3, sha("c")), imported(arm, "6", 3, sha("c")), imported(amd, "2", 2, sha("b")),
		imported(amd, "1", 1, sha("a")), imported(arm, "5", 1, sha("b"), sha("a")),
	}
	// both is the state of an image whose two architectures stand for those of index c.
	both := func(pinned string, change func(*goldenimage.State)) goldenimage.State {
		return state(func(s *goldenimage.State) {
			s.Image.Spec.Architectures, s.Image.Spec.Digest = []string{amd, arm}, pinned
			s.Image.Status.History = slices.Clone(history)
			s.Check.Found = []goldenimage.Found{{Digest: sha("3"), Index: sha("c")}, {Digest: sha("6"), Index: sha("c")}}
			for architecture, digit := range map[string]string{amd: "3", arm: "6"} {
				name := "fedora-" + architecture
				volume := name + "-" + strings.Repeat(digit, 12)
				owner := metav1.OwnerReference{UID: s.Image.UID}
				s.Sources[name] = &goldenimage.DataSource{
					Ready: true, Source: map[string]any{"pvc": map[string]any{"namespace": "golden", "name": volume}}, Owners: []metav1.OwnerReference{owner},
					Labels:      map[string]string{v1alpha1.LabelGoldenImage: "fedora", goldenimage.LabelDataImportCron: name},
					Annotations: map[string]string{v1alpha1.AnnotationGoldenImage: "fedora"},
				}
				s.Crons[name] = &goldenimage.Cron{
					Labels: map[string]string{v1alpha1.LabelGoldenImage: "fedora"}, Digest: sha(digit), Volume: volume, Imported: volume,
					Annotations: map[string]string{"cdi.kubevirt.io/storage.import.sourceDesiredDigest": sha(digit)},
				}
			}
			for _, image := range history {
				s.Volumes = append(s.Volumes, goldenimage.Volume{Resource: goldenimage.Claims, Name: image.Volume})
			}
			if change != nil {
				change(s)
			}
		})
	}
	// desired are the digests that a plan has CDI import: those of the templates, which a State without the annotation of its template replaces.
	desired := func(s goldenimage.State) string {
		s.Crons = nil
		var digests []string
		for _, action := range goldenimage.Decide(s).Actions {
			if action.Resource == goldenimage.DataImportCrons {
				annotations := action.Object["metadata"].(map[string]any)["annotations"].(map[string]any)
				digests = append(digests, fmt.Sprint(annotations["cdi.kubevirt.io/storage.import.sourceDesiredDigest"])[7:8])
			}
		}
		return strings.Join(digests, " ")
	}
	for text, tc := range map[string]struct{ pinned, desired, condition string }{
		"no digest":                            {"", "3 6", "True Latest: "},
		"the newest index":                     {sha("c"), "3 6", "True Pinned: "},
		"an index of the history":              {sha("b"), "2 5", "False Importing: "},
		"an index that renewed one of the two": {sha("a"), "1 5", "False Importing: "},
		"the digest of one architecture":       {sha("2"), "2", "False Importing: "},
		"the current digest of one":            {sha("3"), "3", "False DigestUnknown: spec.digest: no image for arm64 has the digest " + sha("3") + ", nor its index: take"},
		"an unknown digest":                    {sha("9"), "", "False DigestUnknown: spec.digest: no image for amd64 has the digest " + sha("9")},
	} {
		t.Run(text, func(t *testing.T) {
			if got := desired(both(tc.pinned, nil)); got != tc.desired {
				t.Errorf("CDI is to import %q, want %q", got, tc.desired)
			}
			if got := condition(goldenimage.Decide(both(tc.pinned, nil)), v1alpha1.ConditionUpToDate); !strings.HasPrefix(got, tc.condition) {
				t.Errorf("the condition is %s, want %s", got, tc.condition)
			}
		})
	}
	t.Run("an index that is not imported yet, but is the newest", func(t *testing.T) {
		s := both(sha("d"), func(s *goldenimage.State) {
			s.Check.Found = []goldenimage.Found{{Digest: sha("4"), Index: sha("d")}, {Digest: sha("6"), Index: sha("d")}}
		})
		if got := desired(s); got != "4 6" {
			t.Errorf("CDI is to import %q", got)
		}
		s = both(sha("d"), func(t *goldenimage.State) { t.Check = s.Check })
		for _, image := range goldenimage.Decide(s).Status.History {
			if image.Digest == sha("6") && !slices.Equal(image.Indexes, []string{sha("d"), sha("c")}) {
				t.Errorf("the index is not added to the image that it has kept: %v", image.Indexes)
			}
		}
	})
	t.Run("the index of one architecture", func(t *testing.T) {
		s := both(sha("b"), func(s *goldenimage.State) {
			s.Image.Spec.Architectures = []string{arm}
			s.Check.Found = s.Check.Found[1:]
		})
		if got := desired(s); got != "5" {
			t.Errorf("CDI is to import %q", got)
		}
	})
	for text, tc := range map[string]struct {
		channel  v1alpha1.GoldenImageChannel
		promoted string
		want     string
	}{
		"a channel by index":         {v1alpha1.GoldenImageChannel{Digest: sha("b")}, "", "2, 5"},
		"a channel by digest":        {v1alpha1.GoldenImageChannel{Digest: sha("2")}, "", "2, 6: " + sha("2") + " has no image for arm64 whose volume exists: pin one of status.history"},
		"a channel that is promoted": {v1alpha1.GoldenImageChannel{Promote: &v1alpha1.GoldenImagePromotion{Manual: true}}, sha("a"), "1, 5"},
	} {
		t.Run(text, func(t *testing.T) {
			tc.channel.Name = "stable"
			plan := goldenimage.Decide(both("", func(s *goldenimage.State) {
				s.Image.Spec.Channels = []v1alpha1.GoldenImageChannel{tc.channel}
				for _, image := range history[:2] {
					s.Image.Status.Channels = append(s.Image.Status.Channels, v1alpha1.GoldenImageChannelStatus{Name: "stable", Architecture: image.Architecture, Digest: image.Digest})
				}
				s.Image.Annotations = map[string]string{v1alpha1.AnnotationPromotePrefix + "stable": tc.promoted}
			}))
			var got []string
			for _, c := range plan.Status.Channels {
				one := c.Digest[7:8]
				if c.Problem != "" {
					one += ": " + c.Problem
				}
				got = append(got, one)
			}
			if got := strings.Join(got, ", "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestOnlyWhatTheSourceHas pins images of sources of which CDI would import what they have now, whatever the digest.
func TestOnlyWhatTheSourceHas(t *testing.T) {
	const current, older, unknown = "uid:11111111-2222-4333-8444-555555555555", "uid:22222222-2222-4333-8444-555555555555", "uid:33333333-2222-4333-8444-555555555555"
	for text, tc := range map[string]struct{ pinned, desired, reference, condition string }{
		"the current one":          {"", current, "registry.example/os@" + current, "False Importing: "},
		"the current one, pinned":  {current, current, "registry.example/os@" + current, "False Importing: "},
		"one of the history":       {older, older, "registry.example/os@" + older, "False Importing: "},
		"one that is not imported": {unknown, "", "", "False DigestUnknown: spec.digest: no image has the digest " + unknown},
	} {
		t.Run(text, func(t *testing.T) {
			plan := goldenimage.Decide(state(func(s *goldenimage.State) {
				s.Image.Spec.Source = v1alpha1.GoldenImageSource{PVC: &v1alpha1.GoldenImageClaim{Name: "uploaded"}}
				s.Image.Spec.Digest = tc.pinned
				s.Check.Found = []goldenimage.Found{{Digest: current, Reference: "registry.example/os@" + current}}
				s.Image.Status.History = []v1alpha1.ImportedImage{{Digest: older, Volume: "fedora-22222222-222", Reference: "registry.example/os@" + older}}
				s.Volumes = []goldenimage.Volume{{Resource: goldenimage.Claims, Name: "fedora-22222222-222"}}
			}))
			desired, reference := "", ""
			for _, action := range plan.Actions {
				if action.Resource != goldenimage.DataImportCrons {
					continue
				}
				annotations := action.Object["metadata"].(map[string]any)["annotations"].(map[string]any)
				desired, _ = annotations["cdi.kubevirt.io/storage.import.sourceDesiredDigest"].(string)
				reference, _ = annotations["cdi.kubevirt.io/storage.import.imageStreamDockerRef"].(string)
				source := action.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["source"]
				if got := fmt.Sprint(source); got != "map[pvc:map[name:uploaded namespace:golden]]" {
					t.Errorf("the source is %s", got)
				}
			}
			if desired != tc.desired || reference != tc.reference {
				t.Errorf("CDI is to import %q (%s), want %q (%s)", desired, reference, tc.desired, tc.reference)
			}
			if got := condition(plan, v1alpha1.ConditionUpToDate); !strings.HasPrefix(got, tc.condition) {
				t.Errorf("the condition is %s, want %s", got, tc.condition)
			}
		})
	}
}

// TestTheHistoryIsStoredFirst checks that the manager may die at any time: the next import is not begun before the status has the last one.
func TestTheHistoryIsStoredFirst(t *testing.T) {
	const newer = "sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	const volume = "fedora-0123456789ab"
	s := state(func(s *goldenimage.State) {
		s.Check.Found[0].Digest = newer
		s.Sources["fedora"] = &goldenimage.DataSource{
			Ready: true, Source: map[string]any{"pvc": map[string]any{"namespace": "golden", "name": volume}}, Owners: []metav1.OwnerReference{{UID: s.Image.UID}},
			Labels:      map[string]string{v1alpha1.LabelGoldenImage: "fedora", goldenimage.LabelDataImportCron: "fedora"},
			Annotations: map[string]string{v1alpha1.AnnotationGoldenImage: "fedora"},
		}
		s.Crons["fedora"] = &goldenimage.Cron{Labels: map[string]string{v1alpha1.LabelGoldenImage: "fedora"}, Digest: digest, Volume: volume, Imported: volume}
		s.Volumes = []goldenimage.Volume{{Resource: goldenimage.Claims, Name: volume}}
	})
	plan := goldenimage.Decide(s)
	if got := written(plan); strings.Contains(got, "dataimportcrons") || !plan.Again.Equal(s.Now) || len(plan.Status.History) != 1 {
		t.Errorf("got %q, again at %v, history %+v", got, plan.Again, plan.Status.History)
	}
	s.Image.Status = plan.Status
	if got := written(goldenimage.Decide(s)); !strings.Contains(got, "dataimportcrons fedora") {
		t.Errorf("the newer image is not imported: %q", got)
	}
}
