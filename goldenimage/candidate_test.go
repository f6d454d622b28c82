package goldenimage_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
)

// TestAnImageIsTestedBeforeAChannelTakesIt decides with each result of the test of a newer image.
func TestAnImageIsTestedBeforeAChannelTakesIt(t *testing.T) {
	test := goldenimage.Test{Template: "smoke", Digest: digest}
	for name, tc := range map[string]struct {
		stood   string
		results map[goldenimage.Test]goldenimage.TestResult
		promote v1alpha1.GoldenImagePromotion
		want    v1alpha1.GoldenImageChannelStatus
		tests   int
		becomes string
	}{
		"it was not tested": {
			older, nil, v1alpha1.GoldenImagePromotion{}, v1alpha1.GoldenImageChannelStatus{Digest: older, Next: digest, Tested: older}, 1, "True Latest",
		},
		"it was accepted": {
			older, map[goldenimage.Test]goldenimage.TestResult{test: {Accepted: true}}, v1alpha1.GoldenImagePromotion{},
			v1alpha1.GoldenImageChannelStatus{Digest: digest, Tested: digest}, 0, "True Latest",
		},
		"it was denied": {
			older, map[goldenimage.Test]goldenimage.TestResult{test: {Reason: "no"}}, v1alpha1.GoldenImagePromotion{},
			v1alpha1.GoldenImageChannelStatus{Digest: older, Next: digest, Tested: older, Problem: "the test of " + digest + " failed: no"}, 0,
			"False ChannelTestFailed: channel stable: the test of " + digest + " failed: no",
		},
		"the first image was denied": {
			"", map[goldenimage.Test]goldenimage.TestResult{test: {Reason: "no"}}, v1alpha1.GoldenImagePromotion{},
			v1alpha1.GoldenImageChannelStatus{Next: digest, Problem: "the test of " + digest + " failed: no"}, 0, "False ChannelTestFailed",
		},
		"a user has to promote it first": {
			older, map[goldenimage.Test]goldenimage.TestResult{test: {Accepted: true}}, v1alpha1.GoldenImagePromotion{Manual: true},
			v1alpha1.GoldenImageChannelStatus{Digest: older, Next: digest, Tested: older}, 0, "True Latest",
		},
		"it has to be ready for a while first": {
			older, map[goldenimage.Test]goldenimage.TestResult{test: {Accepted: true}}, v1alpha1.GoldenImagePromotion{After: &metav1.Duration{Duration: 1e15}},
			v1alpha1.GoldenImageChannelStatus{Digest: older, Next: digest, Tested: older}, 0, "True Latest",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(func(s *goldenimage.State) {
				tc.promote.Test = &v1alpha1.GoldenImageTest{TemplateRef: v1alpha1.GoldenImageTemplateReference{Name: "smoke"}}
				s.Image.Spec.Channels = []v1alpha1.GoldenImageChannel{{Name: "stable", Promote: &tc.promote}}
				at := func(hours int) metav1.Time { return metav1.NewTime(s.Now.AddDate(0, 0, -hours)) }
				s.Image.Status.History = []v1alpha1.ImportedImage{{Digest: digest, Volume: "fedora-0123456789ab", ImportedAt: at(1)}, {Digest: older, Volume: "fedora-fedcba987654", ImportedAt: at(2)}}
				s.Image.Status.Channels = []v1alpha1.GoldenImageChannelStatus{{Name: "stable", DataSource: "fedora-stable", Digest: tc.stood, Tested: tc.stood}}
				s.Sources["fedora"] = &goldenimage.DataSource{
					Ready: true, Annotations: map[string]string{v1alpha1.AnnotationGoldenImage: "fedora"},
					Source: map[string]any{"pvc": map[string]any{"name": "fedora-0123456789ab"}},
				}
				s.Volumes = []goldenimage.Volume{{Resource: goldenimage.Claims, Name: "fedora-0123456789ab"}, {Resource: goldenimage.Claims, Name: "fedora-fedcba987654"}}
				s.Tests = tc.results
			})
			plan := goldenimage.Decide(s)
			got := plan.Status.Channels[0]
			got.NextTime = nil
			tc.want.Name, tc.want.DataSource = "stable", "fedora-stable"
			if got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
			if len(plan.Tests) != tc.tests || tc.tests == 1 && plan.Tests[0] != test {
				t.Errorf("tests %v", plan.Tests)
			}
			if got := condition(plan, v1alpha1.ConditionUpToDate); len(got) < len(tc.becomes) || got[:len(tc.becomes)] != tc.becomes {
				t.Errorf("UpToDate is %s, want %s", got, tc.becomes)
			}
		})
	}
}

func TestDisksOfATestComeFromTheImage(t *testing.T) {
	const (
		other = `{"metadata":{"name":"data"},"spec":{"sourceRef":{"kind":"DataSource","name":"data"}}}`
		disks = `"template":{"spec":{"volumes":[{"dataVolume":{"name":"box"},"name":"root"}]}}`
	)
	for name, tc := range map[string]struct {
		ref, want string
		snapshot  bool
	}{
		"its DataSource":                 {`{"kind":"DataSource","name":"fedora"}`, "pvc", false},
		"the one of a channel":           {`{"kind":"DataSource","name":"fedora-stable","namespace":"golden"}`, "snapshot", true},
		"the same name in another place": {`{"kind":"DataSource","name":"fedora","namespace":"elsewhere"}`, "", false},
		"another DataSource":             {`{"kind":"DataSource","name":"centos"}`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var vm map[string]any
			text := `{"spec":{"instancetype":{"inferFromVolume":"root","inferFromVolumeFailurePolicy":"Ignore"},"preference":{"inferFromVolume":"root"},"dataVolumeTemplates":[{"metadata":{"name":"box"},"spec":{"sourceRef":` + tc.ref + `}},` + other + `],` + disks + `}}`
			if err := json.Unmarshal([]byte(text), &vm); err != nil {
				t.Fatal(err)
			}
			image := state(nil).Image
			image.Spec.Channels = []v1alpha1.GoldenImageChannel{{Name: "stable"}}
			image.Spec.Defaults = v1alpha1.GoldenImageDefaults{Instancetype: "small", InstancetypeKind: "VirtualMachineInstancetype"}
			is := goldenimage.From(image, vm, v1alpha1.ImportedImage{Volume: "fedora-0123456789ab", Snapshot: tc.snapshot})
			got, _ := json.Marshal(vm)
			want := `{"spec":{"dataVolumeTemplates":[{"metadata":{"name":"box"},"spec":{"source":{"` + tc.want + `":{"name":"fedora-0123456789ab","namespace":"golden"}}}},` + other +
				`],"instancetype":{"kind":"VirtualMachineInstancetype","name":"small"},"preference":{"inferFromVolume":"root"},` + disks + `}}`
			var unchanged map[string]any
			_ = json.Unmarshal([]byte(text), &unchanged)
			before, _ := json.Marshal(unchanged)
			if tc.want == "" {
				want = string(before)
			}
			if is != (tc.want != "") || string(got) != want {
				t.Errorf("got %v\n%s\nwant\n%s", is, got, want)
			}
		})
	}
}
