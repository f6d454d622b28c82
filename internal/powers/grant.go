package powers

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Grant names the user of the request that rendered a VirtualMachine, by whose permission its template lends disks to it. The render webhook writes it to VirtualMachines
// whose disks are copied from another namespace. The policy rendered-for lets every user write their own name only, so that what KubeVirt's controllers copy or
// restore, whose annotations users specify, has none.
type Grant struct {
	// Template is the UID of the template.
	Template types.UID
	// Sources identifies what is copied; see disks.Borrowed.
	Sources string
	// User has username and groups only.
	User authenticationv1.UserInfo
}

// escapes are what the policy rendered-for replaces in names.
var escapes, unescapes = strings.NewReplacer("%", "%25", " ", "%20"), strings.NewReplacer("%25", "%", "%20", " ")

// String returns the text of the annotation: UID, sources, username and groups, separated by spaces.
func (g Grant) String() string {
	return string(g.Template) + " " + g.Sources + " " + namesOf(g.User)
}

// namesOf returns username and groups, separated by spaces.
func namesOf(user authenticationv1.UserInfo) string {
	names := append([]string{user.Username}, user.Groups...)
	for i, name := range names {
		names[i] = escapes.Replace(name)
	}
	return strings.Join(names, " ")
}

// named reads username and groups.
func named(names []string) (user authenticationv1.UserInfo) {
	user.Username = unescapes.Replace(names[0])
	for _, group := range names[1:] {
		user.Groups = append(user.Groups, unescapes.Replace(group))
	}
	return user
}

// ParseGrant reads the text of an annotation.
func ParseGrant(text string) (Grant, bool) {
	parts := strings.Split(text, " ")
	if len(parts) < 3 || slices.Contains(parts[:3], "") {
		return Grant{}, false
	}
	return Grant{Template: types.UID(parts[0]), Sources: parts[1], User: named(parts[2:])}, true
}
