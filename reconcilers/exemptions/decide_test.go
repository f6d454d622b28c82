package exemptions

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/exemption"
)

const (
	fullController = "system:serviceaccount:kubevirt:kubevirt-controller"
	otherThanThese = "; exempt controllers other than KubeVirt's and CDI's with exemptSubjects of the TemplateApprovals"
)

func TestDecide(t *testing.T) {
	for _, tc := range []struct {
		name      string
		names     []string
		kubevirts []string
		bound     map[string][]string
		// existing are service accounts as NAMESPACE/NAME.
		existing []string
		want     []string
		problems []string
		// incomplete is set if KubeVirt and CDI may be installed later.
		incomplete bool
	}{
		{name: "no names"},
		{
			name: "nothing is installed", names: []string{"kubevirt-controller", "cdi-sa"}, incomplete: true,
		},
		{
			name: "an account of a namespace of that name, without KubeVirt", names: []string{"kubevirt-controller"},
			existing: []string{"kubevirt/kubevirt-controller"}, incomplete: true,
		},
		{
			name: "a KubeVirt object that whoever administers a namespace can create", names: []string{"kubevirt-controller"},
			kubevirts: []string{"mallory"}, existing: []string{"mallory/kubevirt-controller"},
			problems: []string{"kubevirt-controller: there is a KubeVirt object in namespace mallory, but ClusterRoleBinding kubevirt-controller does not bind service account " +
				"kubevirt-controller there: wait until virt-operator has installed KubeVirt"},
			incomplete: true,
		},
		{
			name: "the same beside the installed KubeVirt changes nothing", names: []string{"kubevirt-controller"},
			kubevirts: []string{"kubevirt", "mallory"}, bound: map[string][]string{"kubevirt-controller": {"kubevirt"}},
			existing: []string{"kubevirt/kubevirt-controller", "mallory/kubevirt-controller"},
			want:     []string{"kubevirt/kubevirt-controller"},
		},
		{
			name: "a binding that has outlived KubeVirt", names: []string{"kubevirt-controller"},
			bound: map[string][]string{"kubevirt-controller": {"kubevirt"}}, existing: []string{"kubevirt/kubevirt-controller"}, incomplete: true,
		},
		{
			name: "both are found in any namespace", names: []string{"kubevirt-controller", "kubevirt-handler", "cdi-sa"},
			kubevirts: []string{"hco"}, bound: map[string][]string{"kubevirt-controller": {"hco"}, "cdi-sa": {"storage"}},
			existing: []string{"hco/kubevirt-controller", "hco/kubevirt-handler", "storage/cdi-sa", "storage/kubevirt-controller", "hco/cdi-sa"},
			want:     []string{"hco/kubevirt-controller", "hco/kubevirt-handler", "storage/cdi-sa"},
		},
		{
			name: "an account that this version of KubeVirt does not have", names: []string{"kubevirt-controller", "kubevirt-synchronization-controller"},
			kubevirts: []string{"kubevirt"}, bound: map[string][]string{"kubevirt-controller": {"kubevirt"}}, existing: []string{"kubevirt/kubevirt-controller"},
			want: []string{"kubevirt/kubevirt-controller"}, incomplete: true,
		},
		{
			name: "full names where KubeVirt is", names: []string{fullController},
			kubevirts: []string{"kubevirt"}, bound: map[string][]string{"kubevirt-controller": {"kubevirt"}}, existing: []string{"kubevirt/kubevirt-controller"},
			want: []string{"kubevirt/kubevirt-controller"},
		},
		{
			name: "full names elsewhere", names: []string{fullController, "system:serviceaccount:cdi:cdi-sa", "system:serviceaccount:velero:velero"},
			kubevirts: []string{"hco"}, bound: map[string][]string{"kubevirt-controller": {"hco"}, "cdi-sa": {"hco"}},
			existing: []string{"kubevirt/kubevirt-controller", "cdi/cdi-sa", "velero/velero", "hco/kubevirt-controller", "hco/cdi-sa"},
			problems: []string{
				fullController + ": KubeVirt is not installed in namespace kubevirt: write the name without a namespace, kubevirt-controller" + otherThanThese,
				"system:serviceaccount:cdi:cdi-sa: CDI is not installed in namespace cdi: write the name without a namespace, cdi-sa" + otherThanThese,
				"system:serviceaccount:velero:velero: KubeVirt is not installed in namespace velero: write the name without a namespace, velero" + otherThanThese,
			},
			incomplete: true,
		},
		{
			name: "a full name of an account that does not exist", names: []string{"system:serviceaccount:kubevirt:kubevirt-x", "kubevirt-controller"},
			kubevirts: []string{"kubevirt"}, bound: map[string][]string{"kubevirt-controller": {"kubevirt"}}, existing: []string{"kubevirt/kubevirt-controller"},
			want:       []string{"kubevirt/kubevirt-controller"},
			problems:   []string{"system:serviceaccount:kubevirt:kubevirt-x: there is no such service account in the namespace of KubeVirt: remove the name from exemptUsers" + otherThanThese},
			incomplete: true,
		},
		{
			name: "names of no controller", names: []string{"velero", "alice@example.com"},
			problems: []string{
				"velero: there is no such service account in the namespace of KubeVirt: remove the name from exemptUsers" + otherThanThese,
				"alice@example.com: it is the name of no service account: exempt other users with exemptSubjects of the TemplateApprovals",
			},
			incomplete: true,
		},
		{
			name: "an account by both of its names", names: []string{fullController, "kubevirt-controller"},
			kubevirts: []string{"kubevirt"}, bound: map[string][]string{"kubevirt-controller": {"kubevirt"}}, existing: []string{"kubevirt/kubevirt-controller"},
			want: []string{"kubevirt/kubevirt-controller"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := exemption.Parse(tc.names, "stencil-system")
			installed := locate(tc.kubevirts, tc.bound)
			var existing []exemption.Account
			for _, account := range installed.candidates(names) {
				if slices.Contains(tc.existing, account.Namespace+"/"+account.Name) {
					existing = append(existing, account)
				}
			}
			decided := decide(names, installed, existing)
			var got, problems []string
			for _, account := range decided.exempt {
				got = append(got, account.Namespace+"/"+account.Name)
			}
			for _, each := range decided.problems {
				problems = append(problems, each.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("exempt (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.problems, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if decided.complete == tc.incomplete {
				t.Errorf("complete is %v", decided.complete)
			}
		})
	}
}

func TestConditionNamesFewProblems(t *testing.T) {
	var p plan
	if c := p.condition(3); c.Status != "True" || c.Reason != "Found" || c.ObservedGeneration != 3 {
		t.Errorf("without problems: %+v", c)
	}
	for i := range maximumProblems + 2 {
		p.problems = append(p.problems, problem{fmt.Sprint("u", i), "c"})
	}
	const want = "names in the chart value exemptUsers that exempt no user: u0: c; u1: c; u2: c; and 2 more"
	if c := p.condition(3); c.Status != "False" || c.Reason != "NotInstalled" || c.Message != want {
		t.Errorf("with problems: %+v", c)
	}
}
