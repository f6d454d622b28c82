package process

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
)

// completionTime bounds the time of one completion.
const completionTime = 3 * time.Second

// completable is a parameter for completion: its values if they are a list.
type completable struct {
	about  string
	values []string
}

// completeParameters completes NAME=VALUE of -p: the names of parameters that are not given yet, and the values that the template or an approval lists.
// For a template of the cluster, it offers the parameters that the user may set in the namespace of the VirtualMachine.
func (p *processing) completeParameters(command *cobra.Command, arguments []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	ctx, cancel := context.WithTimeout(command.Context(), completionTime)
	defer cancel()
	// An error would be written into the user's command line.
	names, found := p.completables(ctx, arguments)
	if name, value, chosen := strings.Cut(begun, "="); chosen {
		var offered []cobra.Completion
		for _, one := range found[name].values {
			if strings.HasPrefix(one, value) {
				offered = append(offered, name+"="+one)
			}
		}
		return offered, directive
	}
	var offered []cobra.Completion
	for _, name := range names {
		given := slices.ContainsFunc(p.parameters, func(one string) bool { return strings.HasPrefix(one, name+"=") })
		if strings.HasPrefix(name, begun) && !given {
			offered = append(offered, cobra.CompletionWithDesc(name+"=", found[name].about))
		}
	}
	return offered, directive | cobra.ShellCompDirectiveNoSpace
}

// completables returns the parameters of the template of a command line, in the order of the template.
func (p *processing) completables(ctx context.Context, arguments []string) (names []string, found map[string]completable) {
	found = map[string]completable{}
	add := func(name, about string, sensitive bool, kind templatev1beta1.ParameterType, values []string) {
		if kind == templatev1beta1.ParameterTypeBool && len(values) == 0 {
			values = []string{"true", "false"}
		}
		if sensitive {
			values = nil // they are not shown
		}
		known, is := found[name]
		if !is {
			names = append(names, name)
			known.about = oneLine(about)
		}
		for _, value := range values {
			if !slices.Contains(known.values, value) {
				known.values = append(slices.Clip(known.values), value)
			}
		}
		found[name] = known
	}
	file, arguments := source.FileOf(p.file, arguments)
	var t *templates.Template
	var err error
	switch {
	case file == source.Stdin || file == "" && len(arguments) != 1:
		return nil, found
	case file != "":
		t, err = templates.Read(&source.Reader{In: strings.NewReader("")}, file)
	default:
		client, problem := p.cluster.Client(io.Discard)
		if problem != nil {
			return nil, found
		}
		at, problem := reference(arguments[0], client)
		if problem != nil {
			return nil, found
		}
		if p.target != "" {
			client.Namespace = p.target
		}
		var available v1beta1.AvailableTemplate
		listed, problem := client.GetInto(ctx, v1beta1.GroupVersion.WithResource("availabletemplates"), client.Namespace, at.Namespace+"."+at.Name, &available)
		if problem == nil && listed {
			for _, variant := range available.Variants {
				for i := range variant.Parameters {
					if each := &variant.Parameters[i]; !each.Fixed {
						add(each.Name, each.Description, each.Sensitive, each.Type, each.Enum)
					}
				}
			}
			return names, found
		}
		t, err = templates.Get(ctx, client, at)
	}
	if err != nil {
		return nil, found
	}
	for _, each := range t.Compiled.Parameters() {
		add(each.Name, each.Description, each.Sensitive, each.Type, each.Enum)
	}
	return names, found
}
