package policies

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
)

const (
	syntheticName      = "example"
	syntheticNamespace = "default"
)

// synthetic evaluates a version for one synthetic object of each of its kinds, with each of its operations, and returns the first failure. A policy for
// the VirtualMachines of certain templates is not tried on one without a template.
func (s *Sampler) synthetic(ctx context.Context, entry *policyset.Entry, user *authenticationv1.UserInfo) *failedTrial {
	v := newVersions(entry, nil)
	for _, kind := range rego.Kinds() {
		for _, operation := range []string{operationCreate, operationUpdate, operationDelete} {
			if v.tried.Empty(kind, operation) || kind == rego.KindVirtualMachine && len(entry.Match.Templates) > 0 {
				continue
			}
			c := policyinput.Case{
				Request: rego.Request{
					Operation: operation, Kind: kind, Namespace: syntheticNamespace, Name: syntheticName, Time: s.Clock.Now(),
					UserInfo: rego.UserInfo{Username: user.Username, UID: user.UID, Groups: user.Groups},
				},
				Namespace: rego.Namespace{Name: syntheticNamespace, Labels: map[string]string{"kubernetes.io/metadata.name": syntheticNamespace}},
			}
			if operation != operationDelete {
				c.Object = syntheticObject(kind)
			}
			if operation != operationCreate {
				c.OldObject = syntheticObject(kind)
			}
			input, err := rego.NewInput(c.Document())
			if err != nil {
				return &failedTrial{kind: kind, operation: operation, err: err}
			}
			if _, err := v.try(ctx, input); err != nil {
				return &failedTrial{kind: kind, operation: operation, err: err}
			}
		}
	}
	return nil
}

// syntheticObject returns an object of a kind with what its API requires.
func syntheticObject(kind string) map[string]any {
	object := map[string]any{
		"apiVersion": "template.kubevirt.io/v1beta1", "kind": kind,
		"metadata": map[string]any{"name": syntheticName, "namespace": syntheticNamespace},
	}
	spec := map[string]any{
		"runStrategy": "Halted",
		"template":    map[string]any{"spec": map[string]any{"domain": map[string]any{"devices": map[string]any{}}}},
	}
	switch kind {
	case rego.KindVirtualMachine:
		object["apiVersion"], object["spec"] = "kubevirt.io/v1", spec
	case rego.KindVirtualMachineTemplate:
		object["spec"] = map[string]any{"virtualMachine": map[string]any{"spec": spec}}
	case rego.KindVirtualMachineTemplateImport:
		object["spec"] = map[string]any{"source": map[string]any{"http": map[string]any{"url": "https://example.com/example.ova"}}}
	case rego.KindVirtualMachineTemplateExport:
		object["spec"] = map[string]any{"templateRef": map[string]any{"name": syntheticName}}
	default:
		object["spec"] = map[string]any{"virtualMachineRef": map[string]any{"namespace": syntheticNamespace, "name": syntheticName}}
	}
	return object
}
