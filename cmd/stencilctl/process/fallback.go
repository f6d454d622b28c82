package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	subresourcesv1beta1 "github.com/vmstencil/stencil/api/subresources/v1beta1"
	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// call is a call of a subresource that the cluster has denied, and what the user requested with it.
type call struct {
	client      *cluster.Client
	at          machine.Reference
	namespace   string // of the VirtualMachine
	subresource string
	doing       string
	given       map[string]string
	// denial is the error of the call.
	denial error
}

// lacksSubresource reports whether an error is that the user may not create a subresource of templates. Denials by approvals and other admission are not:
// they are about the VirtualMachine.
func lacksSubresource(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	details := status.Status().Details
	if details.Kind != templates.Subresources.Resource {
		return false
	}
	// stencil-apiserver checks the permission in another namespace than the template's itself.
	elsewhere := len(details.Causes) == 1 && details.Causes[0].Field == "targetNamespace"
	return elsewhere || details.Group == templates.Subresources.Group
}

// otherwise does with the rights of a VM owner what the cluster has denied: render what the user may get, or send a manifest that refers to the template.
func (p *processing) otherwise(ctx context.Context, name string, c *call) (*result, error) {
	if c.subresource == "process" && !p.explain {
		return p.renderedHere(ctx, name, c)
	}
	return p.manifest(ctx, c)
}

// renderedHere reads the template, and renders it.
func (p *processing) renderedHere(ctx context.Context, name string, c *call) (*result, error) {
	t, err := templates.Get(ctx, c.client, c.at)
	if apierrors.IsForbidden(err) {
		return nil, c.neither("rendered here", err, templateAccess("get", c.at))
	}
	if err != nil {
		return nil, err
	}
	p.note(c, "the template is read, and rendered here")
	return p.locally(ctx, name, t, c.given)
}

// manifest creates a VirtualMachine that refers to the template, as kubectl would: the cluster renders it, and evaluates it as the user's. With --explain it
// is a dry run, and its result is the decision.
func (p *processing) manifest(ctx context.Context, c *call) (*result, error) {
	annotations := map[string]string{contract.AnnotationTemplateRef: c.at.String()}
	for parameter, value := range c.given {
		annotations[contract.AnnotationParameterPrefix+parameter] = value
	}
	vm := map[string]any{
		"apiVersion": cluster.VirtualMachines.GroupVersion().String(), "kind": "VirtualMachine",
		"metadata": map[string]any{"namespace": c.namespace, "annotations": annotations},
	}
	stored, err := c.client.Create(ctx, cluster.VirtualMachines, c.namespace, vm, cluster.Written{DryRun: p.explain || p.dryRun.Server()})
	// A user who may not read templates there receives the same answer for one that does not exist and for one that they may not use.
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		missing, failed := c.missing(ctx, authorizationv1.ResourceAttributes{
			Verb: "create", Group: cluster.VirtualMachines.Group, Version: cluster.VirtualMachines.Version, Resource: cluster.VirtualMachines.Resource, Namespace: c.namespace,
		}, templateAccess("use", c.at))
		if failed != nil {
			return nil, failed
		}
		if len(missing) > 0 {
			return nil, c.neither("as a manifest of yours", err, missing...)
		}
	}
	if p.explain {
		p.note(c, "the decision is that of a dry run of a manifest, with your rights, and does not list what allows it")
		return decided(err)
	}
	p.note(c, "the VirtualMachine is created as a manifest that refers to the template, with your rights")
	if err != nil {
		return nil, cluster.Failed(c.doing+c.at.String(), err)
	}
	return &result{vm: stored, namespace: c.namespace}, nil
}

// decided returns the decisions that a dry run shows.
func decided(err error) (*result, error) {
	denial, denied := cluster.RefusalOf(err)
	if err != nil && !denied {
		return nil, cluster.Failed("asking what would happen", err)
	}
	var found []any
	add := func(effect subresourcesv1beta1.Effect, field, message string) {
		found = append(found, subresourcesv1beta1.Decision{Decision: effect, Field: field, Message: message})
	}
	for _, cause := range denial.Causes {
		add(subresourcesv1beta1.EffectDeny, cause.Field, cause.Message)
	}
	switch {
	case denied && len(denial.Causes) == 0:
		add(subresourcesv1beta1.EffectDeny, "", denial.Message)
	case !denied:
		add(subresourcesv1beta1.EffectAllow, "", "nothing denies it")
	}
	return &result{decisions: found}, nil
}

func (p *processing) note(c *call, instead string) {
	fmt.Fprintf(p.streams.Err, "Note: you lack %s, so %s\n", c.verb(), instead)
}

// verb names the permission that the call takes.
func (c *call) verb() string {
	where := "namespace " + c.at.Namespace
	if c.namespace != c.at.Namespace && c.subresource == "create" {
		where += " or " + c.namespace
	}
	return fmt.Sprintf("verb create on %s/%s.%s in %s", templates.Subresources.Resource, c.subresource, templates.Subresources.Group, where)
}

// missing returns the permissions that the user does not have.
func (c *call) missing(ctx context.Context, needed ...authorizationv1.ResourceAttributes) (missing []authorizationv1.ResourceAttributes, err error) {
	for _, one := range needed {
		allowed, err := c.client.May(ctx, one)
		if _, denied := cluster.RefusalOf(err); err != nil && !denied {
			return nil, cluster.Failed("checking your permissions", err)
		}
		if err == nil && !allowed {
			missing = append(missing, one)
		}
	}
	return missing, nil
}

// neither is the error of a user who lacks the permissions for both ways.
func (c *call) neither(second string, denial error, missing ...authorizationv1.ResourceAttributes) error {
	var verbs []string
	for _, one := range missing {
		of := one.Resource + "." + one.Group
		if one.Name != "" {
			of += fmt.Sprintf(" %q", one.Name)
		}
		verbs = append(verbs, fmt.Sprintf("verb %s on %s in namespace %s", one.Verb, of, one.Namespace))
	}
	text := fmt.Sprintf("%s%s: there are two ways, and you lack permissions for both; ask for those of one:\n  by the cluster: %s\n    %s\n  %s: %s\n    %s",
		c.doing, c.at, c.verb(), denialText(c.denial), second, strings.Join(verbs, ", and "), denialText(denial))
	return cli.Cluster(errors.New(text))
}

// denialText returns the message of a denial on one line.
func denialText(err error) string {
	denial, _ := cluster.RefusalOf(err)
	return oneLine(cmp.Or(denial.Message, err.Error()))
}

func templateAccess(verb string, at machine.Reference) authorizationv1.ResourceAttributes {
	resource := cluster.VirtualMachineTemplate
	return authorizationv1.ResourceAttributes{
		Verb: verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Namespace: at.Namespace, Name: at.Name,
	}
}
