package approval_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/approval"
)

func TestDenyingDisk(t *testing.T) {
	restored, plain := map[string]string{"restored": "yes"}, map[string]string(nil)
	const allow, some = "existingDisks: {policy: Allow}", "existingDisks: {policy: Allow, selector: {matchLabels: {restored: 'yes'}}}"
	for _, tc := range []struct {
		name      string
		approvals map[string]string
		labels    map[string]string
		want      []string
		decides   bool
	}{
		{name: "no approval denies nothing", approvals: map[string]string{}},
		{name: "an approval that says nothing", approvals: map[string]string{"a": ""}, want: []string{"a"}, decides: true},
		{name: "Deny", approvals: map[string]string{"a": "existingDisks: {policy: Deny}"}, want: []string{"a"}, decides: true},
		{name: "Allow", approvals: map[string]string{"a": allow}},
		{name: "Allow with labels that the disk has", approvals: map[string]string{"a": some}, labels: restored, decides: true},
		{name: "Allow with labels that the disk lacks", approvals: map[string]string{"a": some}, labels: plain, want: []string{"a"}, decides: true},
		{name: "each approval has to allow it", approvals: map[string]string{"c": "", "a": allow, "b": some}, labels: plain, want: []string{"b", "c"}, decides: true},
		{name: "an approval that warns has no say beside one that denies", approvals: map[string]string{"a": allow, "b": "enforcement: Warn"}},
		{name: "where approvals warn only they do", approvals: map[string]string{"b": "enforcement: Warn"}, want: []string{"b"}, decides: true},
		{name: "an approval that audits denies nothing", approvals: map[string]string{"b": "enforcement: Audit"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var approvals []*approval.Approval
			for name, spec := range tc.approvals {
				approvals = append(approvals, compile(t, name, spec))
			}
			var got []string
			for _, a := range approval.DenyingDisk(approvals, tc.labels) {
				got = append(got, a.Name())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("approvals that deny (-want +got):\n%s", diff)
			}
			if decides := approval.DecidesOnDisks(approvals); decides != tc.decides {
				t.Errorf("they decide on disks: %v, want %v", decides, tc.decides)
			}
		})
	}
}

func TestAnApprovalThatDoesNotCompileAllowsNoExistingDisk(t *testing.T) {
	closed := approval.Closed(object(t, "a", "existingDisks: {policy: Allow}"), nil)
	if closed.AllowsDisk(nil) || len(approval.DenyingDisk([]*approval.Approval{closed}, nil)) != 1 || len(approval.DenyingDisk([]*approval.Approval{approval.Undecided("unknown")}, nil)) != 1 {
		t.Error("it allows one")
	}
}
