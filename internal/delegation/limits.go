package delegation

import (
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// serviceAccountsPrefix begins the names of the groups of all service accounts of a namespace.
const serviceAccountsPrefix = "system:serviceaccounts:"

// Exemptions are the users exempt from every approval.
type Exemptions interface {
	Exempt(user string) bool
	// ExemptIn reports whether service accounts of a namespace are exempt.
	ExemptIn(namespace string) bool
}

// Limits are the users for which the server creates no VirtualMachine: users exempt from every approval, and members of groups with the permissions
// of such a user, which are those of the service accounts in their namespaces. Members of system:masters are not among them: approvals restrict them
// like other users. The policy delegated-machines has the same limits.
type Limits struct{ Exemptions Exemptions }

// Check returns an error if the server must not store a VirtualMachine for this user.
func (l Limits) Check(user authenticationv1.UserInfo) error {
	if l.Exemptions.Exempt(user.Username) {
		return fmt.Errorf("the API server for templates creates no VirtualMachines for user %q, who is exempt from TemplateApprovals: send the VirtualMachine itself, with annotation template.kubevirt.io/template-ref", user.Username)
	}
	for _, group := range user.Groups {
		if namespace, is := strings.CutPrefix(group, serviceAccountsPrefix); is && l.Exemptions.ExemptIn(namespace) {
			return fmt.Errorf("the API server for templates creates no VirtualMachines for members of group %q: send the VirtualMachine itself, with annotation template.kubevirt.io/template-ref", group)
		}
	}
	return nil
}
