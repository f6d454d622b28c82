package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/offline"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// access is an action to check the permission for.
type access = authorizationv1.ResourceAttributes

// permission checks with the cluster whether the user may perform an action.
func (x *examination) permission(ctx context.Context, what string, to access) error {
	allowed, err := x.client.May(ctx, to)
	if denial, denied := cluster.RefusalOf(err); denied {
		x.report.add(what, unknown, denial.Message)
		return nil
	}
	if err != nil {
		return cluster.Failed("asking for your permissions", err)
	}
	if allowed {
		x.report.add(what, passed)
	} else {
		name := ""
		if to.Name != "" {
			name = " with resourceName " + to.Name
		}
		x.report.add(what, failed, fmt.Sprintf("no role gives you verb %s on %s.%s%s in namespace %s", to.Verb, to.Resource, to.Group, name, to.Namespace))
	}
	return nil
}

// template reads the template with the user's permissions, and renders it as the webhook would.
func (x *examination) template(ctx context.Context, at machine.Reference) error {
	readable := fmt.Sprintf("template %s exists and is valid", at)
	stored, err := x.client.Get(ctx, cluster.VirtualMachineTemplate, at.Namespace, at.Name)
	if denial, denied := cluster.RefusalOf(err); denied {
		x.report.add(readable, unknown, "you may not read it, which using it does not take: "+denial.Message)
		return nil
	}
	if err != nil {
		return cluster.Failed("reading template "+at.String(), err)
	}
	if stored == nil {
		x.report.add(readable, failed, "there is no such template")
		return nil
	}
	var read v1beta1.VirtualMachineTemplate
	if err := templates.Decode(stored, &read); err != nil {
		return cli.Cluster(fmt.Errorf("reading template %s: %w", at, err))
	}
	if _, err := template.Compile(&read); err != nil {
		x.report.add(readable, failed, causes(err)...)
		return nil
	}
	x.report.add(readable, passed)
	return x.renders(ctx, stored)
}

// renders renders with the code of the webhook, as a user with all permissions.
func (x *examination) renders(ctx context.Context, stored map[string]any) error {
	const what = "it can be rendered with these parameters"
	raw, err := json.Marshal(stored)
	if err != nil {
		return cli.Internal(err)
	}
	subject := *x.object
	if subject.Content, err = machine.Decode(subject.Raw); err != nil {
		return cli.Internal(err)
	}
	metadata, _ := subject.Content["metadata"].(map[string]any)
	if metadata != nil {
		metadata["namespace"] = x.namespace
	}
	fixture, err := offline.NewFixture([]source.Object{subject}, nil, []source.Object{{
		File: "the cluster", Kind: "VirtualMachineTemplate", Raw: raw, Content: stored,
	}})
	if err != nil {
		return err
	}
	if _, err := fixture.Case(ctx, &fixture.Subjects[0], offline.Request{Operation: offline.Create, Namespace: x.namespace}); err != nil {
		text := err.Error()
		if _, after, found := strings.Cut(text, subject.String()+": "); found {
			text = after
		}
		x.report.add(what, failed, text)
		return nil
	}
	x.report.add(what, passed)
	return nil
}

func causes(err error) []string {
	var invalid *template.InvalidError
	if !errors.As(err, &invalid) {
		return []string{err.Error()}
	}
	var all []string
	for _, cause := range invalid.Causes {
		all = append(all, cause.Error())
	}
	return all
}
