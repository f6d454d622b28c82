package process

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// creatable returns an error if a VirtualMachine is to be created from a template with other
// objects that is rendered here: only the cluster creates them together. It is called before
// anything is created, and with --dry-run as well.
func (p *processing) creatable(from string, objects []string) error {
	if !p.create || len(objects) == 0 {
		return nil
	}
	command := from
	if p.file != "" {
		command = "-f " + p.file
	} else if p.local {
		command += " --local"
	}
	return cli.Usage(errors.New(machine.ObjectsDenial(from, command, objects)))
}

// all returns the VirtualMachine and the other objects.
func (r *result) all() []any { return append([]any{r.vm}, r.objects...) }

// tabulate prints a table of the other objects.
func (p *processing) tabulate(objects []any) error {
	fmt.Fprintln(p.streams.Out)
	rows := [][]string{{"KIND", "NAME"}}
	for _, object := range objects {
		rows = append(rows, []string{kindOf(object), machine.StringAt(metadataOf(object), "name")})
	}
	return cli.Columns(p.streams.Out, rows...)
}

// resourceName returns KIND.GROUP/NAME in lower case, as kubectl takes it.
func resourceName(object any) string {
	content, _ := object.(map[string]any)
	kind := kindOf(object)
	if group, _, found := strings.Cut(machine.StringAt(content, "apiVersion"), "/"); found {
		kind += "." + group
	}
	return strings.ToLower(kind) + "/" + machine.StringAt(metadataOf(object), "name")
}

func kindOf(object any) string {
	content, _ := object.(map[string]any)
	return machine.StringAt(content, "kind")
}

func metadataOf(object any) map[string]any {
	content, _ := object.(map[string]any)
	metadata, _ := content["metadata"].(map[string]any)
	return metadata
}
