package render

import (
	"context"
	"encoding/json"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	contract "github.com/vmstencil/stencil/api/template"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/mutation"
	"github.com/vmstencil/stencil/internal/powers"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// borrowed returns the disks of the VM that are copied from another namespace and that the template does not lend. The usual VM, of a template
// of another namespace that lends its disks and without a source of the user's own, is not examined: its template was when it was stored. A template of the VM's
// own namespace lends nothing from others.
func (c creation) borrowed(compiled *template.Compiled, spec json.RawMessage, name string, explicit map[string]string) []disks.Loan {
	lender := disks.Lender{Namespace: c.template.Namespace, Name: c.template.Name, Labels: c.template.Labels(), Compiled: compiled}
	requested := c.object.Spec["dataVolumeTemplates"]
	selected := requested != nil
	for parameter := range explicit {
		selected = selected || compiled.SelectsSource(parameter)
	}
	if c.template.Namespace != c.namespace && lender.Lends() && !selected {
		return nil
	}
	rendered, err := machine.Decode(spec)
	if err != nil {
		return nil
	}
	if requested != nil {
		rendered["dataVolumeTemplates"] = requested
	}
	if !disks.Foreign(rendered, c.namespace) {
		return nil
	}
	annotations := map[string]any{}
	for parameter, value := range explicit {
		annotations[contract.AnnotationParameterPrefix+parameter] = value
	}
	vm := map[string]any{"metadata": map[string]any{"name": name, "annotations": annotations}, "spec": rendered}
	loans, err := disks.Loans(vm, c.namespace, lender)
	if err != nil {
		return nil
	}
	return loans
}

// grant adds the user of the request to the stamps of the VM if disks of it are copied from another namespace.
func (c creation) grant(stamps map[string]string, spec map[string]any) {
	if !c.lending || c.template.Namespace == c.namespace {
		return
	}
	if borrowed := disks.Borrowed(spec, c.namespace); borrowed != "" {
		stamps[contract.AnnotationRenderedFor] = powers.Grant{Template: c.template.UID, Sources: borrowed, User: c.user}.String()
	}
}

// grant writes the user of the request into a VM if other disks of it are copied from another namespace than before.
func (u update) grant(p *mutation.Patch, from machine.Record, spec any) {
	if !u.lending || from.Namespace == u.namespace {
		return
	}
	changed, _ := spec.(map[string]any)
	borrowed := disks.Borrowed(changed, u.namespace)
	if borrowed == "" || borrowed == disks.Borrowed(u.stored.Spec, u.namespace) || u.object.Annotations == nil {
		return
	}
	p.Set(mutation.Pointer{"metadata", "annotations", contract.AnnotationRenderedFor}, powers.Grant{Template: from.UID, Sources: borrowed, User: u.user}.String())
}

// warnOfDisks returns a warning for each disk that neither the template lends nor KubeVirt may copy. KubeVirt requires the permission of the
// ServiceAccount of the namespace. A check that fails gives no warning: the creation does not depend on it.
func (h *Handler) warnOfDisks(ctx context.Context, namespace string, loans []disks.Loan) []string {
	if !h.lending {
		return nil
	}
	account := serviceaccount.UserInfo(namespace, "default", "")
	user := authenticationv1.UserInfo{Username: account.GetName(), Groups: account.GetGroups()}
	var warnings []string
	for _, loan := range loans {
		if loan.Denial == "" {
			continue
		}
		action := permission.CopyDisks(loan.Source.Namespace)
		if loan.Source.Kind != disks.DataSourceKind {
			action.Name = loan.Source.Name
		}
		if may, err := h.permissions.May(ctx, user, action); may || err != nil {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s: disk %q will not be created: %s; and %s may not copy from namespace %s, which this grants: %s",
			loan.Field, loan.Name, loan.Denial, user.Username, loan.Source.Namespace, loan.Source.Grant(namespace)))
	}
	return warnings
}
