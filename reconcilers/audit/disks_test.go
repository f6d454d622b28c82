package audit

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

// claims is a pager over claims in memory, by namespace.
type claims struct {
	of    map[string]map[string]map[string]string
	lists []string
	err   error
}

func (c *claims) page(_ context.Context, namespace, _ string, visit func(map[string]any)) (string, error) {
	c.lists = append(c.lists, namespace)
	for name, labels := range c.of[namespace] {
		given := map[string]any{}
		for key, value := range labels {
			given[key] = value
		}
		visit(map[string]any{"metadata": map[string]any{"name": name, "labels": given}})
	}
	return "", c.err
}

func allowing(selector *v1alpha1.LabelSelector) func(*v1alpha1.TemplateApproval) {
	return func(a *v1alpha1.TemplateApproval) {
		a.Spec.ExistingDisks = v1alpha1.ExistingDisks{Policy: v1alpha1.ExistingDiskAllow, Selector: selector}
	}
}

func TestDisksOfOthersAreReported(t *testing.T) {
	own, other := map[string]string{"kubevirt.io/created-by": "u"}, map[string]string{"kubevirt.io/created-by": "v", "restored": "yes"}
	strict := approve("a")
	for _, tc := range []struct {
		name      string
		approvals []*approval.Approval
		disks     []string
		claims    map[string]map[string]string
		want      *cause
		lists     int
	}{
		{name: "a disk that KubeVirt created", disks: []string{"root"}, claims: map[string]map[string]string{"root": own}, lists: 1},
		{name: "a disk that does not exist yet", disks: []string{"root"}, lists: 1},
		{
			name: "disks of nobody and of another VM", disks: []string{"root", "data"}, claims: map[string]map[string]string{"root": nil, "data": other}, lists: 1,
			want: &cause{rule: "ExistingDisk", approval: "a", message: "claim data was not created for this VM: its label kubevirt.io/created-by names another VirtualMachine, " +
				"claim root was not created for this VM: it lacks the label kubevirt.io/created-by, which KubeVirt gives to disks that it creates"},
		},
		{name: "the approval allows it", approvals: []*approval.Approval{approve("a", allowing(nil))}, disks: []string{"root"}, claims: map[string]map[string]string{"root": nil}},
		{
			name: "the approval allows those with a label", disks: []string{"data"}, claims: map[string]map[string]string{"data": other}, lists: 1,
			approvals: []*approval.Approval{approve("a", allowing(&v1alpha1.LabelSelector{MatchLabels: map[string]string{"restored": "yes"}}))},
		},
		{
			name: "another approval does not", approvals: []*approval.Approval{approve("a", allowing(nil)), approve("b")}, disks: []string{"root"}, claims: map[string]map[string]string{"root": nil}, lists: 1,
			want: &cause{rule: "ExistingDisk", approval: "b", message: "claim root was not created for this VM: it lacks the label kubevirt.io/created-by, which KubeVirt gives to disks that it creates"},
		},
		{name: "an approval that audits", approvals: []*approval.Approval{approve("a", enforcing(v1alpha1.EnforcementAudit))}, disks: []string{"root"}, claims: map[string]map[string]string{"root": nil}},
		{name: "a VM without such disks"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.approvals == nil {
				tc.approvals = []*approval.Approval{strict}
			}
			lister := &claims{of: map[string]map[string]map[string]string{"team-a": tc.claims}}
			page := []found{{subject: subject{"team-a", "web", "u"}, approvals: tc.approvals, evaluation: evaluation{satisfied: tc.approvals}, disks: tc.disks}}
			check := diskCheck{lister: lister, retries: oneTry}
			if err := check.apply(t.Context(), page); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, page[0].evaluation.cause, cmp.AllowUnexported(cause{})); diff != "" {
				t.Errorf("cause (-want +got):\n%s", diff)
			}
			if satisfied := len(page[0].evaluation.satisfied) > 0; satisfied != (tc.want == nil) {
				t.Errorf("it satisfies an approval: %v", satisfied)
			}
			if len(lister.lists) != tc.lists {
				t.Errorf("lists %v, want %d", lister.lists, tc.lists)
			}
		})
	}
}

func TestClaimsAreListedOnceForEachNamespace(t *testing.T) {
	strict := []*approval.Approval{approve("a")}
	vm := func(namespace string, satisfied []*approval.Approval) found {
		return found{subject: subject{namespace, "web", "u"}, approvals: strict, evaluation: evaluation{satisfied: satisfied}, disks: []string{"root"}}
	}
	lister := &claims{}
	check := diskCheck{lister: lister, retries: oneTry}
	for _, page := range [][]found{{vm("a", strict), vm("a", strict), vm("b", nil)}, {vm("c", strict)}, {vm("c", strict)}} {
		if err := check.apply(t.Context(), page); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a", "c"}, lister.lists); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	lister.err = errors.New("listing PersistentVolumeClaims of namespace d: no")
	if err := check.apply(t.Context(), []found{vm("d", strict)}); !errors.Is(err, lister.err) {
		t.Errorf("got %v", err)
	}
}
