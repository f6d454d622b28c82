package disks_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/disks"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var decoded map[string]any
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestTemplates(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		want       []disks.Template
	}{
		{name: "none", spec: `{}`},
		{name: "null", spec: `{"dataVolumeTemplates": null}`},
		{name: "each has its path", spec: `{"dataVolumeTemplates": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}`, want: []disks.Template{
			{Name: "a", Field: "spec.dataVolumeTemplates[0].metadata.name"}, {Name: "b", Field: "spec.dataVolumeTemplates[1].metadata.name"},
		}},
		{name: "one without a name is left out", spec: `{"dataVolumeTemplates": [{}, {"metadata": {"name": "b"}}]}`, want: []disks.Template{{Name: "b", Field: "spec.dataVolumeTemplates[1].metadata.name"}}},
		{name: "what cannot be read is left out", spec: `{"dataVolumeTemplates": ["a", {"metadata": "a"}, {"metadata": {"name": 1}}]}`},
		{name: "no list", spec: `{"dataVolumeTemplates": "a"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, disks.Templates(decode(t, tc.spec))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClaims(t *testing.T) {
	got := disks.Claims(decode(t, `{"volumes": [
		{"name": "root", "dataVolume": {"name": "web-root"}},
		{"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}},
		{"name": "again", "persistentVolumeClaim": {"claimName": "web-root"}},
		{"name": "init", "cloudInitNoCloud": {"userData": "a"}}, "broken", {"name": "empty", "dataVolume": {}}]}`))
	if diff := cmp.Diff(map[string]string{"web-root": "root", "web-data": "data"}, got); diff != "" {
		t.Errorf("volumes by claim (-want +got):\n%s", diff)
	}
}

func TestOwn(t *testing.T) {
	for _, tc := range []struct {
		name    string
		labels  map[string]string
		uid     string
		want    bool
		problem string
	}{
		{name: "created for the VM", labels: map[string]string{disks.CreatedBy: "u"}, uid: "u", want: true},
		{name: "no labels", uid: "u", problem: "it lacks the label kubevirt.io/created-by, which KubeVirt gives to disks that it creates"},
		{name: "an empty label", labels: map[string]string{disks.CreatedBy: ""}, uid: "u", problem: "it lacks the label kubevirt.io/created-by, which KubeVirt gives to disks that it creates"},
		{name: "created for another VM", labels: map[string]string{disks.CreatedBy: "v"}, uid: "u", problem: "its label kubevirt.io/created-by names another VirtualMachine"},
		{name: "nothing belongs to a VM without a UID", labels: map[string]string{disks.CreatedBy: ""}, problem: "it lacks the label kubevirt.io/created-by, which KubeVirt gives to disks that it creates"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := disks.Own(tc.labels, "u"); tc.uid == "u" && got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if tc.uid == "" && disks.Own(tc.labels, "") {
				t.Error("it is taken for its own")
			}
			if got := disks.Problem(tc.labels); !tc.want && got != tc.problem {
				t.Errorf("problem %q, want %q", got, tc.problem)
			}
		})
	}
}
