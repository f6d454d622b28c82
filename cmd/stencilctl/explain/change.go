package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// change is a field that would change. Of a field that is added or removed, one of the values is missing.
type change struct {
	Field  string `json:"field"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// annotations returns the annotations that the parameters of the command line set, nil for those that it removes.
func annotations(parameters []string) (map[string]any, error) {
	set := map[string]any{}
	for _, parameter := range parameters {
		name, value, given := strings.Cut(parameter, "=")
		removed := !given && strings.HasSuffix(parameter, "-")
		if name = strings.TrimSuffix(name, "-"); name == "" || !given && !removed {
			return nil, cli.Usage(fmt.Errorf("--param %q: must be NAME=VALUE, or NAME- for the default", parameter))
		}
		if set[contract.AnnotationParameterPrefix+name] = value; removed {
			set[contract.AnnotationParameterPrefix+name] = nil
		}
	}
	return set, nil
}

// changed describes what new values of parameters would do to a stored VirtualMachine.
func (e *explaining) changed(ctx context.Context, client *cluster.Client, name string, found *report) error {
	set, err := annotations(e.parameters)
	if err != nil {
		return err
	}
	at, err := e.cluster.Existing("VirtualMachine", name, client.Namespace)
	if err != nil {
		return err
	}
	found.VM = at.String()
	stored, err := client.Get(ctx, cluster.VirtualMachines, at.Namespace, at.Name)
	if err != nil {
		return cluster.Failed("reading VirtualMachine "+found.VM, err)
	}
	if stored == nil {
		return client.Absent(ctx, at.Namespace, fmt.Errorf("VirtualMachine %s does not exist", found.VM))
	}
	vm, errs := machine.Read(stored)
	if _, refers := vm.Reference(); len(errs) > 0 || !refers {
		return cli.Cluster(fmt.Errorf("VirtualMachine %s is not made from a template", found.VM))
	}
	found.Update = true
	x := examination{client: client, namespace: at.Namespace, report: found}
	if err := x.permission(ctx, "you may change VirtualMachine "+found.VM, access{
		Group: "kubevirt.io", Resource: "virtualmachines", Verb: "patch", Namespace: at.Namespace, Name: at.Name,
	}); err != nil {
		return err
	}
	// The reference has been resolved in the record.
	from := vm.Record()
	found.Template = from.Namespace + "/" + from.Name
	if err := x.permission(ctx, "you may use template "+found.Template, access{
		Group: "template.kubevirt.io", Resource: "virtualmachinetemplates", Verb: "use", Namespace: from.Namespace, Name: from.Name,
	}); err != nil {
		return err
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": set, "resourceVersion": vm.Metadata["resourceVersion"]}}
	after, err := client.Patch(ctx, cluster.VirtualMachines, at.Namespace, at.Name, patch, cluster.Written{DryRun: true})
	if denial, denied := cluster.RefusalOf(err); denied {
		found.Refusal = explainRefusal(denial)
		return nil
	} else if err != nil {
		return cluster.Failed("asking what would happen", err)
	}
	for _, place := range approval.Changes(stored, after) {
		found.Changes = append(found.Changes, change{Field: place.String(), Before: valueAt(stored, place), After: valueAt(after, place)})
	}
	return nil
}

// valueAt returns the value at a place, nil if there is none, or if the place is only a part of a list without names.
func valueAt(in any, place approval.Path) any {
	for _, step := range place {
		name, item := step.Name()
		switch value := in.(type) {
		case map[string]any:
			in = value[name]
		case []any:
			in = nil
			for _, each := range value {
				if members, is := each.(map[string]any); is && item && members["name"] == name {
					in = each
				}
			}
		default:
			return nil
		}
	}
	return in
}

// shown returns a value as one line.
func shown(value any) string {
	if value == nil {
		return "nothing"
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

var errOneSource = errors.New("a VirtualMachine must be given: -f FILE, or NAME and -p for one that exists")
