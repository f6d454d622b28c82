package goldenimage_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
)

const older = "sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

// verifying is the state of an image with spec.verify, whose DataSource stands for an older one.
func verifying(change func(*goldenimage.State)) goldenimage.State {
	return state(func(s *goldenimage.State) {
		s.Image.Spec.Verify = &v1alpha1.GoldenImageVerification{PublicKeys: []string{"key"}}
		s.Image.Status.History = []v1alpha1.ImportedImage{{Digest: older, Volume: "fedora-fedcba987654", ImportedAt: metav1.NewTime(s.Now)}}
		s.Image.Status.CheckedSource = goldenimage.SourceID(s.Image)
		s.Sources["fedora"] = &goldenimage.DataSource{
			Ready: true, Annotations: map[string]string{v1alpha1.AnnotationGoldenImage: "fedora"},
			Source: map[string]any{"pvc": map[string]any{"name": "fedora-fedcba987654"}},
		}
		s.Volumes = []goldenimage.Volume{{Resource: goldenimage.Claims, Name: "fedora-fedcba987654"}}
		change(s)
	})
}

func TestVerification(t *testing.T) {
	unsigned := fmt.Errorf("fedora:41: %w", goldenimage.ErrNotSigned)
	for name, tc := range map[string]struct {
		change                     func(*goldenimage.State)
		desired, verified, becomes string
	}{
		"both are signed": {
			func(s *goldenimage.State) { s.Check.Verified = []string{digest, older} }, digest,
			"True Signed: DataSource fedora stands for " + older + ", which is signed", "False Importing",
		},
		"the newest is signed, the older is not": {
			func(s *goldenimage.State) { s.Check.Verified = []string{digest} }, digest,
			"False NotVerified: DataSource fedora stands for " + older + ", whose signature was not verified", "False Importing",
		},
		"the newest is not signed": {
			func(s *goldenimage.State) { s.Check = &goldenimage.Check{Err: unsigned, Verified: []string{older}} }, "",
			"False NotSigned: fedora:41: no signature of spec.verify.publicKeys", "False NotSigned: fedora:41: no signature",
		},
		"no check since": {
			func(s *goldenimage.State) {
				s.Check = nil
				s.Image.Status.CheckError, s.Image.Status.VerifiedDigests = "fedora:41: it", []string{older}
				s.Image.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionVerified, Status: "False", Reason: goldenimage.ReasonNotSigned}}
			}, "", "False NotSigned: fedora:41: it", "False NotSigned",
		},
		"a digest is pinned that is not signed": {
			func(s *goldenimage.State) {
				s.Image.Spec.Digest = older
				s.Image.Status.CheckedSource = goldenimage.SourceID(s.Image)
				s.Check = &goldenimage.Check{Err: unsigned, Verified: []string{digest}}
			}, "", "False NotSigned: fedora:41: no signature of spec.verify.publicKeys; DataSource fedora stands for " + older + ", whose", "False NotSigned",
		},
		"other keys were verified before": {
			func(s *goldenimage.State) {
				s.Image.Status.VerifiedDigests = []string{older, digest}
				s.Image.Spec.Verify.PublicKeys = []string{"other"}
				s.Check = &goldenimage.Check{Err: unsigned}
			}, "", "False NotSigned: fedora:41: no signature of spec.verify.publicKeys; DataSource fedora stands for " + older + ", whose", "False NotSigned",
		},
		"no keys any more": {
			func(s *goldenimage.State) {
				s.Image.Status.VerifiedDigests = []string{older}
				s.Image.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionVerified, Status: "True", Reason: goldenimage.ReasonSigned}}
				s.Image.Spec.Verify = nil
			}, digest, "", "False Importing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := goldenimage.Decide(verifying(tc.change))
			if imports := strings.Contains(written(plan), "create dataimportcrons"); imports != (tc.desired != "") {
				t.Errorf("wrote %s", written(plan))
			}
			if got := condition(plan, v1alpha1.ConditionVerified); !strings.HasPrefix(got, tc.verified) || got != "" && tc.verified == "" {
				t.Errorf("Verified is %s, want %s", got, tc.verified)
			}
			if got := condition(plan, v1alpha1.ConditionUpToDate); !strings.HasPrefix(got, tc.becomes) {
				t.Errorf("UpToDate is %s, want %s", got, tc.becomes)
			}
		})
	}
}

// TestChannelsStandForVerifiedImages moves a channel in each way to an image that is not signed.
func TestChannelsStandForVerifiedImages(t *testing.T) {
	for name, tc := range map[string]struct {
		channel v1alpha1.GoldenImageChannel
		problem string
	}{
		"that follows":           {v1alpha1.GoldenImageChannel{Name: "c"}, ""},
		"that is pinned":         {v1alpha1.GoldenImageChannel{Name: "c", Digest: older}, "the signature of " + older + " was not verified, which spec.verify requires"},
		"that waits for a user":  {v1alpha1.GoldenImageChannel{Name: "c", Promote: &v1alpha1.GoldenImagePromotion{Manual: true}}, ""},
		"that waits for a while": {v1alpha1.GoldenImageChannel{Name: "c", Promote: &v1alpha1.GoldenImagePromotion{After: &metav1.Duration{Duration: 1}}}, ""},
	} {
		for signed, want := range map[bool]string{true: older, false: ""} {
			t.Run(fmt.Sprintf("%s, signed %v", name, signed), func(t *testing.T) {
				plan := goldenimage.Decide(verifying(func(s *goldenimage.State) {
					s.Image.Spec.Channels = []v1alpha1.GoldenImageChannel{tc.channel}
					if signed {
						s.Check.Verified = []string{older}
					}
				}))
				got := plan.Status.Channels[0]
				if got.Digest != want || !signed && got.Problem != tc.problem {
					t.Errorf("stands for %q, problem %q", got.Digest, got.Problem)
				}
			})
		}
	}
}

func TestASignatureIsVerifiedOnce(t *testing.T) {
	s := verifying(func(s *goldenimage.State) { s.Check.Verified = []string{digest, older} })
	found := s.Check.Found
	if got := goldenimage.Unverified(s.Image, found); len(got) != 2 {
		t.Errorf("before: %v", got)
	}
	s.Image.Status = goldenimage.Decide(s).Status
	if got := goldenimage.Unverified(s.Image, found); len(got) != 0 {
		t.Errorf("after: %v", got)
	}
	s.Image.Spec.Verify.PublicKeys = []string{"other"}
	if got := goldenimage.Unverified(s.Image, found); len(got) != 2 {
		t.Errorf("with another key: %v", got)
	}
}

func TestAnIndexIsSignedForItsImages(t *testing.T) {
	image := verifying(func(*goldenimage.State) {}).Image
	image.Status.History[0].Indexes = []string{"sha256:b", "sha256:a"}
	image.Spec.Digest = "sha256:a"
	found := []goldenimage.Found{{Digest: digest, Index: "sha256:c"}, {Digest: "sha256:d"}}
	if got, want := fmt.Sprint(goldenimage.Unverified(image, found)), fmt.Sprintf("[[%s sha256:c] [sha256:d] [%s sha256:b sha256:a]]", digest, older); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for pinned, want := range map[string]string{"sha256:a": older, older: older, "sha256:c": digest, "sha256:e": "sha256:e"} {
		if got := goldenimage.Named(image, found, pinned); len(got) != 1 || got[0] != want {
			t.Errorf("%s names %s, want %s", pinned, got, want)
		}
	}
}
