package virtualmachine

import (
	"fmt"
	"strings"
)

// maxListed is the maximum number of objects that a denial names.
const maxListed = 5

// ObjectsDenial returns why no VirtualMachine is created from a template with other objects, and what to do instead. Objects
// are their kinds and names. template names the template for a user, and command for stencilctl process.
func ObjectsDenial(template, command string, objects []string) string {
	return fmt.Sprintf("template %s has other objects, which are not created together with the VirtualMachine here (%s); use \"stencilctl process %s … | kubectl create -f -\"", template, listed(objects), command)
}

// ObjectsLeftToCluster returns the warning about a processed VirtualMachine whose other objects are created with it.
func ObjectsLeftToCluster(objects []string) string {
	return fmt.Sprintf("the cluster creates the other objects of the template together with the VirtualMachine (%s)", listed(objects))
}

// ObjectsLeftToUser returns the warning about a processed VirtualMachine that does not refer to its template with other objects, and why it does not.
func ObjectsLeftToUser(template, why string, objects []string) string {
	return fmt.Sprintf("the VirtualMachine does not refer to template %s, and an approval does not accept it: create its other objects, too (%s), because %s; "+
		"or let the cluster create all of them with the subresource create, or from a VirtualMachine without spec that refers to the template", template, listed(objects), why)
}

func listed(objects []string) string {
	text := strings.Join(objects[:min(len(objects), maxListed)], ", ")
	if more := len(objects) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
