package delegation

import (
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
)

type exemptions struct {
	users     []string
	namespace string
}

func (e exemptions) Exempt(user string) bool { return slices.Contains(e.users, user) }

func (e exemptions) ExemptIn(namespace string) bool { return namespace == e.namespace }

func TestForWhomTheServerCreatesNothing(t *testing.T) {
	limits := Limits{Exemptions: exemptions{users: []string{"system:serviceaccount:kubevirt:kubevirt-controller", "backup"}, namespace: "kubevirt"}}
	const instead = ": send the VirtualMachine itself, with annotation template.kubevirt.io/template-ref"
	for _, tc := range []struct {
		name   string
		user   string
		groups []string
		want   string
	}{
		{name: "a user", user: "ada", groups: []string{"team-a", "system:authenticated"}},
		{name: "a service account", user: "system:serviceaccount:ci:deployer", groups: []string{"system:serviceaccounts", "system:serviceaccounts:ci"}},
		{name: "an exempt service account", user: "system:serviceaccount:kubevirt:kubevirt-controller",
			want: `the API server for templates creates no VirtualMachines for user "system:serviceaccount:kubevirt:kubevirt-controller", who is exempt from TemplateApprovals` + instead},
		{name: "an exempt user", user: "backup",
			want: `the API server for templates creates no VirtualMachines for user "backup", who is exempt from TemplateApprovals` + instead},
		{name: "a user whose name begins like that of an exempt one", user: "backup-2"},
		{name: "a member of system:masters", user: "ada", groups: []string{"team-a", "system:masters"}},
		{name: "another service account of KubeVirt's namespace", user: "system:serviceaccount:kubevirt:other", groups: []string{"system:serviceaccounts", "system:serviceaccounts:kubevirt"},
			want: `the API server for templates creates no VirtualMachines for members of group "system:serviceaccounts:kubevirt"` + instead},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if err := limits.Check(authenticationv1.UserInfo{Username: tc.user, Groups: tc.groups}); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
