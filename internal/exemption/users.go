package exemption

import "slices"

// Users is a list of user names.
type Users []string

// Exempt reports whether a user is in the list.
func (u Users) Exempt(user string) bool { return slices.Contains(u, user) }

// ExemptIn reports whether a service account of the namespace is in the list.
func (u Users) ExemptIn(namespace string) bool {
	return slices.ContainsFunc(u, func(user string) bool {
		account, is := ParseAccount(user)
		return is && account.Namespace == namespace
	})
}
