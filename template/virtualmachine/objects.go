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
	listed := strings.Join(objects[:min(len(objects), maxListed)], ", ")
	if more := len(objects) - maxListed; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("template %s has other objects, which are not created together with the VirtualMachine here (%s); use \"stencilctl process %s … | kubectl create -f -\"", template, listed, command)
}
