package approval_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/approval"
)

func TestPinnedSources(t *testing.T) {
	const sha = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	const fedora = "{templates: [{namespace: golden, name: fedora, sources: [{uid: u1}, {digest: '" + sha + "'}]}]}"
	claim := approval.DiskSource{Field: "spec.x", UID: "u1", Description: "PersistentVolumeClaim golden/fedora with UID u1"}
	image := approval.DiskSource{Field: "spec.y", Digest: sha, Description: "the image has digest " + sha}
	other := approval.DiskSource{Field: "spec.z", UID: "u2", Description: "PersistentVolumeClaim golden/other with UID u2"}
	file := approval.DiskSource{Field: "spec.w", Description: "what it holds can be replaced at any time"}
	const objection = "the content of the disk is none that is approved with template golden/fedora: "
	for _, tc := range []struct {
		name      string
		approvals []string
		digest    string
		sources   []approval.DiskSource
		pins      bool
		want      []string
	}{
		{name: "an approval that pins nothing", approvals: []string{""}, sources: []approval.DiskSource{other}},
		{name: "no disk", approvals: []string{fedora}, sources: []approval.DiskSource{}, pins: true},
		{name: "what is listed", approvals: []string{fedora}, sources: []approval.DiskSource{claim, image}, pins: true},
		{name: "another object", approvals: []string{fedora}, sources: []approval.DiskSource{claim, other}, pins: true,
			want: []string{`spec.z: ` + objection + `PersistentVolumeClaim golden/other with UID u2 (approval "a0")`}},
		{name: "what has no identity", approvals: []string{fedora}, sources: []approval.DiskSource{file}, pins: true,
			want: []string{`spec.w: ` + objection + `what it holds can be replaced at any time (approval "a0")`}},
		{name: "another approval does not pin", approvals: []string{fedora, ""}, sources: []approval.DiskSource{other}, pins: true},
		{name: "another entry does not pin", approvals: []string{"{templates: [{namespace: golden, name: fedora, sources: [{uid: u1}]}, {namespace: golden, selector: {}}]}"},
			sources: []approval.DiskSource{other}, pins: true},
		{name: "an entry has to permit all disks", approvals: []string{"{templates: [{namespace: golden, name: fedora, sources: [{uid: u1}]}, {namespace: golden, selector: {}, sources: [{uid: u2}]}]}"},
			sources: []approval.DiskSource{claim, other}, pins: true, want: []string{`spec.z: ` + objection + `PersistentVolumeClaim golden/other with UID u2 (approval "a0")`}},
		{name: "pinned for another template", approvals: []string{"{templates: [{namespace: golden, name: debian, sources: [{uid: u1}]}, {namespace: golden, name: fedora}]}"}, sources: []approval.DiskSource{other}},
		{name: "pinned for another content of the template", approvals: []string{"{templates: [{namespace: golden, name: fedora, digest: '" + sha + "', sources: [{uid: u1}]}, {namespace: golden, name: fedora}]}"}, digest: "else", sources: []approval.DiskSource{other}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			approvals := approvalsOf(t, tc.approvals...)
			question := approval.Question{Template: approval.Template{Namespace: "golden", Name: "fedora", Digest: tc.digest}, Sources: tc.sources}
			if pins := approval.PinsSources(approvals, question.Template); pins != tc.pins {
				t.Errorf("it pins: %v", pins)
			}
			decision := approval.Evaluate(approvals, question)
			var got []string
			for _, o := range decision.Objections {
				got = append(got, o.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || decision.Allowed != (tc.want == nil) {
				t.Errorf("allowed %v; objections (-want +got):\n%s", decision.Allowed, diff)
			}
			question.Sources = nil
			if !approval.Evaluate(approvals, question).Allowed {
				t.Error("what is not known is evaluated")
			}
		})
	}
}
