package revision_test

import (
	"encoding/json"
	"testing"

	"github.com/vmstencil/stencil/revision"
)

// FuzzDecide checks that what is converted is current afterwards, and that its spec has the same bytes.
func FuzzDecide(f *testing.F) {
	for _, spec := range []string{sixSpec, fullSpec, betaSpec, coresSpec, coresVolumesSpec, `{}`} {
		f.Add(specRevision(spec), true)
		for _, version := range []string{"v1alpha1", "v1alpha2", "v1beta1"} {
			f.Add(whole(version, clusterType, spec), false)
			f.Add(whole(version, clusterPreference, spec), true)
		}
	}
	f.Fuzz(func(t *testing.T, data string, preference bool) {
		kind := clusterType
		if preference {
			kind = clusterPreference
		}
		one := revision.Revision{Name: "web-six-" + uid + "-2", Data: []byte(data)}
		references := []revision.Reference{reference(kind)}
		d := revision.NewDecider().Decide(one, references)
		if (d.Converted == nil) != (d.Action == revision.Skip || d.Action == revision.Retain) {
			t.Fatalf("%s with conversion %v", d.Action, d.Converted)
		}
		if d.Converted == nil {
			return
		}
		if !json.Valid(d.Converted.Data) {
			t.Fatalf("no JSON: %q", d.Converted.Data)
		}
		if again := revision.NewDecider().Decide(revision.Revision{Name: one.Name, Labels: d.Converted.Labels, Data: d.Converted.Data}, references); again.Class != revision.Current {
			t.Fatalf("%s after the conversion (%s): %q", again.Class, again.Message, d.Converted.Data)
		}
	})
}
