package disks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
	// Sources identifies what is copied; see Borrowed.
	Sources string
	// User has username and groups only.
	User authenticationv1.UserInfo
}

// escapes are what the policy rendered-for replaces in names.
var escapes, unescapes = strings.NewReplacer("%", "%25", " ", "%20"), strings.NewReplacer("%25", "%", "%20", " ")

// String returns the text of the annotation: UID, sources, username and groups, separated by spaces.
func (g Grant) String() string {
	text := string(g.Template) + " " + g.Sources
	for _, name := range append([]string{g.User.Username}, g.User.Groups...) {
		text += " " + escapes.Replace(name)
	}
	return text
}

// ParseGrant reads the text of an annotation.
func ParseGrant(text string) (Grant, bool) {
	parts := strings.Split(text, " ")
	if len(parts) < 3 || slices.Contains(parts[:3], "") {
		return Grant{}, false
	}
	g := Grant{Template: types.UID(parts[0]), Sources: parts[1], User: authenticationv1.UserInfo{Username: unescapes.Replace(parts[2])}}
	for _, group := range parts[3:] {
		g.User.Groups = append(g.User.Groups, unescapes.Replace(group))
	}
	return g, true
}

// Borrowed identifies the disks in the spec of a VirtualMachine that are copied from other namespaces, and what they are copied from; empty if there are none.
func Borrowed(spec map[string]any, namespace string) string {
	var found []string
	for _, entry := range list(spec, "dataVolumeTemplates") {
		for _, source := range filledFrom(nil, object(object(entry)["spec"]), namespace) {
			if source.foreign(namespace) {
				found = append(found, fmt.Sprintf("%q %s %s/%s", text(object(object(entry)["metadata"])["name"]), source.Kind, source.Namespace, source.Name))
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	sum := sha256.Sum256([]byte(strings.Join(found, "\n")))
	return hex.EncodeToString(sum[:8])
}
