package transfer

import (
	"context"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/powers"
)

// permitted fails permanently if the user who created the object may not do all of the actions now. kind is import or export.
func (s *session) permitted(ctx context.Context, kind string, actions ...permission.Action) error {
	lacks, err := powers.Lacks(ctx, s.permissions, s.object, actions...)
	if err == nil && lacks != "" {
		err = &permanentError{ReasonNotPermitted, lacks + ": create the " + kind + " again when that is permitted"}
	}
	return err
}

// authorized checks what the policy template-export has checked when the export was created, which can be hours ago: the user may export the template,
// create DataVolumes, and copy from the namespaces that the export names.
func (e *exporting) authorized(ctx context.Context) error {
	namespace := e.object.Namespace
	actions := []permission.Action{
		{Verb: permission.Export, Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version, Resource: "virtualmachinetemplates", Namespace: namespace, Name: e.object.Spec.TemplateRef.Name},
		permission.CreateDataVolumes(namespace),
	}
	for _, from := range e.object.Spec.SourceNamespaces {
		actions = append(actions, permission.CopyDisks(from))
	}
	return e.permitted(ctx, "export", actions...)
}

// authorized checks what the policy template-import has checked when the import was created, which can be weeks ago if it waits for a decision: the user may
// create DataVolumes and templates, and read the Secret and the ConfigMap that the import names.
func (i *importing) authorized(ctx context.Context) error {
	namespace := i.object.Namespace
	actions := []permission.Action{permission.CreateTemplates(namespace), permission.CreateDataVolumes(namespace)}
	secret, authorities := credentials(&i.object.Spec.Source)
	if secret != "" {
		actions = append(actions, permission.Action{Verb: permission.Get, Version: "v1", Resource: "secrets", Namespace: namespace, Name: secret})
	}
	if authorities != "" {
		actions = append(actions, permission.Action{Verb: permission.Get, Version: "v1", Resource: "configmaps", Namespace: namespace, Name: authorities})
	}
	return i.permitted(ctx, "import", actions...)
}
