package defaults

import (
	"context"
	"encoding/json"
	"fmt"

	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"

	"github.com/vmstencil/stencil/defaulting"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
)

// requestDefaults queries the defaulter for the defaults of a VM. The request contains only the fields that defaults depend on,
// unless the whole VM is compared afterwards. Requests for VMs of one template are then identical, and secrets in the
// VM are not sent.
func (h *Handler) requestDefaults(ctx context.Context, f *filling) (*defaulting.Response, error) {
	if !h.Cluster.Synced() {
		return nil, fmt.Errorf("the configuration of KubeVirt is not synced")
	}
	request := &defaulting.Request{
		Operation: defaulting.Operation(f.request.Operation),
		Cluster:   h.Cluster.Cluster(),
		PatchOnly: f.creates() || !h.governed(f.request),
	}
	var err error
	if request.Policy, err = h.policy(ctx, f.request.Namespace); err != nil {
		return nil, err
	}
	sent := func(object map[string]any) (json.RawMessage, error) {
		if request.PatchOnly {
			return textOf(defaulting.Relevant(object))
		}
		return textOf(map[string]any{"spec": object["spec"]})
	}
	if request.VM, err = sent(f.vm.Object); err != nil {
		return nil, err
	}
	if !f.creates() {
		if request.OldVM, err = sent(f.stored.Object); err != nil {
			return nil, err
		}
		request.Running = f.runs()
	}
	if err := h.resolve(ctx, f, request); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		response, err := h.Defaulter.Defaults(ctx, request)
		if err != nil || !h.collides(f, response) {
			return response, err
		}
		if attempt == maxCollisions {
			return nil, fmt.Errorf("the defaulter has generated MAC addresses %d times that VMs of the namespace already have", attempt)
		}
	}
}

// resolve adds the specs of the instance type and the preference of the VM. One that cannot be resolved is omitted,
// and the defaulter then leaves the fields that depend on it empty.
func (h *Handler) resolve(ctx context.Context, f *filling, request *defaulting.Request) error {
	c := &policyinput.Case{
		Request: rego.Request{Kind: rego.KindVirtualMachine, Operation: string(f.request.Operation), Namespace: f.request.Namespace},
		Object:  f.vm.Object,
	}
	c.Resolve(ctx, h.Instancetypes)
	if c.Instancetype != nil {
		request.Instancetype = &instancetypev1beta1.VirtualMachineInstancetypeSpec{}
		if err := into(c.Instancetype["spec"], request.Instancetype); err != nil {
			return fmt.Errorf("reading the instance type: %w", err)
		}
	}
	if c.Preference != nil {
		request.Preference = &instancetypev1beta1.VirtualMachinePreferenceSpec{}
		if err := into(c.Preference["spec"], request.Preference); err != nil {
			return fmt.Errorf("reading the preference: %w", err)
		}
	}
	return nil
}

func textOf(object map[string]any) (json.RawMessage, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding the VirtualMachine: %w", err)
	}
	return text, nil
}

// into converts a value to the type of target by way of JSON. Numbers in value may be json.Number.
func into(value, target any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, target)
}
