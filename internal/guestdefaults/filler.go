package guestdefaults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"

	"github.com/vmstencil/stencil/defaulting"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Defaulter fills in defaults; a client.Client implements it. A rejection is a *defaulting.Problem.
type Defaulter interface {
	Defaults(ctx context.Context, request *defaulting.Request) (*defaulting.Response, error)
}

// Clusters returns the cluster configuration that defaults depend on; a kubevirtconfig.Cache implements it.
type Clusters interface {
	Synced() bool
	Cluster() defaulting.Cluster
}

// Filler requests the defaults of VirtualMachines. It is safe for concurrent use.
type Filler struct {
	Defaulter     Defaulter
	Cluster       Clusters
	Instancetypes sizing.Resolver
	// Policy selects which defaults are filled in.
	Policy defaulting.Policy
	// Addresses and Namespaces are required if Policy generates MAC addresses.
	Addresses  Addresses
	Namespaces Namespaces
}

// Subject is a VirtualMachine that is to be created or changed.
type Subject struct {
	Namespace string
	VM        machine.Object
	// Stored is the VirtualMachine before an update. It is the zero Object on creation.
	Stored machine.Object
	// Running reports that the guest may be running.
	Running bool
	// Whole requests the whole VirtualMachine with its defaults. Otherwise the response has only the patch.
	Whole bool
}

func (s *Subject) creates() bool { return s.Stored.Object == nil }

// ErrUnsynced means that a cache that defaults depend on is not synced.
var ErrUnsynced = errors.New("is not synced")

// Request requests the defaults of a VirtualMachine. The request contains only the fields that defaults depend on, unless the
// whole VM is requested. Requests for VMs of one template are then identical, and secrets in the VM are not sent. unresolved
// are the instance type and the preference that were not found: what depends on them is left open.
func (f *Filler) Request(ctx context.Context, s *Subject) (response *defaulting.Response, unresolved field.ErrorList, err error) {
	if !f.Cluster.Synced() {
		return nil, nil, fmt.Errorf("the configuration of KubeVirt %w", ErrUnsynced)
	}
	request := &defaulting.Request{Operation: defaulting.Update, Cluster: f.Cluster.Cluster(), PatchOnly: !s.Whole, Running: s.Running}
	if request.Policy, err = f.policy(ctx, s.Namespace); err != nil {
		return nil, nil, err
	}
	if request.VM, err = s.sent(s.VM.Object); err != nil {
		return nil, nil, err
	}
	if s.creates() {
		request.Operation = defaulting.Create
	} else if request.OldVM, err = s.sent(s.Stored.Object); err != nil {
		return nil, nil, err
	}
	if unresolved, err = f.resolve(ctx, s, request); err != nil {
		return nil, nil, err
	}
	for attempt := 1; ; attempt++ {
		response, err = f.Defaulter.Defaults(ctx, request)
		if err != nil || !f.collides(s, response) {
			return response, unresolved, err
		}
		if attempt == maxCollisions {
			return nil, nil, fmt.Errorf("the defaulter has generated MAC addresses %d times that VMs of the namespace already have", attempt)
		}
	}
}

// sent returns the part of a VirtualMachine that the request contains.
func (s *Subject) sent(object map[string]any) (json.RawMessage, error) {
	part := map[string]any{"spec": object["spec"]}
	if !s.Whole {
		part = defaulting.Relevant(object)
	}
	text, err := json.Marshal(part)
	if err != nil {
		return nil, fmt.Errorf("encoding the VirtualMachine: %w", err)
	}
	return text, nil
}

// resolve adds the specs of the instance type and the preference of the VM. One that cannot be resolved is omitted,
// and the defaulter then leaves the fields that depend on it empty.
func (f *Filler) resolve(ctx context.Context, s *Subject, request *defaulting.Request) (field.ErrorList, error) {
	c := &policyinput.Case{
		Request: rego.Request{Kind: rego.KindVirtualMachine, Operation: string(request.Operation), Namespace: s.Namespace},
		Object:  s.VM.Object,
	}
	unresolved := c.Resolve(ctx, f.Instancetypes)
	if c.Instancetype != nil {
		request.Instancetype = &instancetypev1beta1.VirtualMachineInstancetypeSpec{}
		if err := into(c.Instancetype["spec"], request.Instancetype); err != nil {
			return nil, fmt.Errorf("reading the instance type: %w", err)
		}
	}
	if c.Preference != nil {
		request.Preference = &instancetypev1beta1.VirtualMachinePreferenceSpec{}
		if err := into(c.Preference["spec"], request.Preference); err != nil {
			return nil, fmt.Errorf("reading the preference: %w", err)
		}
	}
	return unresolved, nil
}

// into converts a value to the type of target by way of JSON. Numbers in value may be json.Number.
func into(value, target any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, target)
}
