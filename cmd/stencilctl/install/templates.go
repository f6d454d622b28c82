package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// maxUnusable is how many templates that Stencil rejects are named.
const maxUnusable = 50

// unusable returns findings about stored templates that Stencil would reject if they were created now. The cluster may have no definition of templates.
func unusable(ctx context.Context, client *cluster.Client) (findings []installation.Finding, err error) {
	more := 0
	visit := func(object map[string]any) error {
		why := rejected(object)
		switch {
		case why == "":
		case len(findings) == maxUnusable:
			more++
		default:
			metadata := machine.MapAt(object, "metadata")
			findings = append(findings, installation.Finding{
				Level: installation.Warning, Subject: fmt.Sprintf("VirtualMachineTemplate %s/%s", machine.StringAt(metadata, "namespace"), machine.StringAt(metadata, "name")), Found: why,
				Action: "it stays stored, and Stencil makes no VirtualMachine of it: have it corrected, stencilctl lint shows all of it",
			})
		}
		return nil
	}
	// Before version 1.9, KubeVirt's component has the older version only.
	for _, version := range []string{cluster.VirtualMachineTemplate.Version, "v1alpha1"} {
		resource := cluster.VirtualMachineTemplate
		resource.Version = version
		if err = client.List(ctx, resource, "", visit); !errors.Is(err, cluster.ErrNotServed) {
			break
		}
	}
	if errors.Is(err, cluster.ErrNotServed) {
		return nil, nil
	}
	if more > 0 {
		findings = append(findings, installation.Finding{
			Level: installation.Warning, Subject: "templates", Found: cli.Count(more, "further one", "further ones") + " would be rejected", Action: "correct the others first",
		})
	}
	return findings, err
}

// rejected returns why Stencil would reject a template, empty if it would not.
func rejected(object map[string]any) string {
	var read v1beta1.VirtualMachineTemplate
	err := templates.Decode(object, &read)
	if err == nil {
		var compiled *template.Compiled
		if compiled, err = template.Compile(&read); err == nil {
			causes, _ := compiled.CheckDefaults()
			err = causes.ToAggregate()
		}
	}
	if err == nil {
		return ""
	}
	// One finding is one line.
	return excerpt.Of(strings.Join(strings.Fields(err.Error()), " "), longest)
}

// warnUnusable prints the findings about stored templates.
func warnUnusable(ctx context.Context, streams cli.Streams, client *cluster.Client) error {
	findings, err := unusable(ctx, client)
	for _, f := range findings {
		fmt.Fprintf(streams.Err, "Warning: %s: %s\n", f.Subject, f.Found)
	}
	if len(findings) > 0 {
		fmt.Fprintln(streams.Err, "Warning: they stay stored, and Stencil makes no VirtualMachine of them")
	}
	return err
}
