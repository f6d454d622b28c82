package exemption_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/exemption"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name         string
		given        []string
		wantUsers    exemption.Users
		wantAccounts []exemption.Account
		wantUnknown  []string
	}{
		{name: "nothing"},
		{
			name: "users of Kubernetes and of Stencil are exempt by their name",
			given: []string{"system:serviceaccount:kube-system:namespace-controller", "system:kube-controller-manager",
				"system:serviceaccount:stencil-system:stencil-manager"},
			wantUsers: exemption.Users{"system:serviceaccount:kube-system:namespace-controller", "system:kube-controller-manager",
				"system:serviceaccount:stencil-system:stencil-manager"},
		},
		{
			name:         "accounts have a namespace or none",
			given:        []string{"kubevirt-controller", "system:serviceaccount:cdi:cdi-sa"},
			wantAccounts: []exemption.Account{{Name: "kubevirt-controller"}, {Namespace: "cdi", Name: "cdi-sa"}},
		},
		{
			name: "what names no service account",
			given: []string{"alice@example.com", "system:admin", "system:serviceaccount:kubevirt", "system:serviceaccount::a", "system:serviceaccount:a:b:c",
				"system:serviceaccounts:kubevirt", "Upper", ""},
			wantUnknown: []string{"alice@example.com", "system:admin", "system:serviceaccount:kubevirt", "system:serviceaccount::a", "system:serviceaccount:a:b:c",
				"system:serviceaccounts:kubevirt", "Upper", ""},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := exemption.Parse(tc.given, "stencil-system")
			if diff := cmp.Diff(tc.wantUsers, names.Users()); diff != "" {
				t.Errorf("users (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantAccounts, names.Accounts()); diff != "" {
				t.Errorf("accounts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantUnknown, names.Unknown()); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAccount(t *testing.T) {
	names := exemption.Parse([]string{"kubevirt-controller", "system:serviceaccount:cdi:cdi-sa", "system:serviceaccount:kube-system:gc"}, "")
	for account, want := range map[exemption.Account]bool{
		{Namespace: "anywhere", Name: "kubevirt-controller"}: true,
		{Namespace: "cdi", Name: "cdi-sa"}:                   true,
		{Namespace: "other", Name: "cdi-sa"}:                 false,
		{Namespace: "anywhere", Name: "gc"}:                  false,
	} {
		if got := names.Account(account); got != want {
			t.Errorf("%v: %v", account, got)
		}
	}
}

func TestUsers(t *testing.T) {
	users := exemption.Users{"ada", "system:serviceaccount:kubevirt:kubevirt-handler"}
	if !users.Exempt("ada") || users.Exempt("bob") {
		t.Error("other users are exempt than those listed")
	}
	if !users.ExemptIn("kubevirt") || users.ExemptIn("ada") {
		t.Error("other namespaces have exempt accounts than those listed")
	}
}

func TestExpression(t *testing.T) {
	const bound = `request.userInfo.username.startsWith('system:serviceaccount:') && (request.userInfo.username in ["a", "system:serviceaccount:n:b"] || ` +
		`request.userInfo.username.split(':')[3] in ["a", "system:serviceaccount:n:b"]) && ` +
		`authorizer.group('stencil.kubevirt.io').resource('templateapprovals').check('bypass').allowed() && !authorizer.group('stencil.kubevirt.io').resource('templateapprovals').check('any-verb').allowed()`
	for name, tc := range map[string]struct {
		given []string
		want  string
	}{
		"no names":             {nil, ""},
		"names of nothing":     {[]string{"a b"}, ""},
		"users":                {[]string{"system:kube-controller-manager"}, `request.userInfo.username in ["system:kube-controller-manager"]`},
		"accounts":             {[]string{"a", "system:serviceaccount:n:b"}, bound},
		"users, then accounts": {[]string{"a", "system:kube-x", "system:serviceaccount:n:b"}, `request.userInfo.username in ["system:kube-x"] || ` + bound},
	} {
		if got := exemption.Parse(tc.given, "").Expression(); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tc.want)
		}
	}
}
