package delegation

import (
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
)

const (
	serviceAccountPrefix  = "system:serviceaccount:"
	serviceAccountsPrefix = "system:serviceaccounts:"
)

// Limits are for whom the server creates no VirtualMachine: users who are exempt from every approval, and groups with the power of such a
// user. The policy delegated-machines has the same limits.
type Limits struct {
	users  []string
	groups []string
}

// LimitsOf returns the limits that follow from the full names of the exempt users. The groups are those of the service accounts in the
// namespaces of exempt service accounts. Members of system:masters are not among them: approvals restrict them as everybody.
func LimitsOf(exemptUsers []string) Limits {
	l := Limits{users: exemptUsers}
	for _, name := range exemptUsers {
		account, is := strings.CutPrefix(name, serviceAccountPrefix)
		if !is {
			continue
		}
		namespace, _, _ := strings.Cut(account, ":")
		if group := serviceAccountsPrefix + namespace; !slices.Contains(l.groups, group) {
			l.groups = append(l.groups, group)
		}
	}
	return l
}

// Check returns an error if the server must not store a VirtualMachine for this user.
func (l Limits) Check(user authenticationv1.UserInfo) error {
	if slices.Contains(l.users, user.Username) {
		return fmt.Errorf("the API server for templates creates no VirtualMachines for user %q, whom no TemplateApproval restricts: send the VirtualMachine itself, with annotation template.kubevirt.io/template-ref", user.Username)
	}
	for _, group := range user.Groups {
		if slices.Contains(l.groups, group) {
			return fmt.Errorf("the API server for templates creates no VirtualMachines for members of group %q: send the VirtualMachine itself, with annotation template.kubevirt.io/template-ref", group)
		}
	}
	return nil
}
