package traffic

import (
	"errors"
	"slices"
	"time"

	"github.com/vmstencil/stencil/test/controlplane"
)

// Kind is a kind of write.
type Kind string

// The kinds of writes, and their users.
const (
	// CreateVM creates a VirtualMachine without a template, as a user of the namespace.
	CreateVM Kind = "create VM"
	// CreateVMFromTemplate creates a VirtualMachine from Options.Template, as the same user.
	CreateVMFromTemplate Kind = "create VM from template"
	// UpdateVMSpec changes the spec of a VirtualMachine, as the same user.
	UpdateVMSpec Kind = "update VM spec"
	// LabelNamespace changes a label of the namespace, as an administrator of namespaces.
	LabelNamespace Kind = "label namespace"
	// UpdateVMStatus changes the status of a VirtualMachine, as the service account of virt-controller.
	UpdateVMStatus Kind = "update VM status"
	// AnnotateVM changes the metadata of a VirtualMachine, as the same service account.
	AnnotateVM Kind = "annotate VM"
)

// controllerUser is the service account of virt-controller.
const controllerUser = "system:serviceaccount:kubevirt:kubevirt-controller"

// Options configure the writes. Only Plane is required; it has to serve the definitions of KubeVirt.
type Options struct {
	Plane *controlplane.Plane
	// Rate is the number of writes a second, of all kinds together. 10 when zero.
	Rate float64
	// Kinds are written in turn. All when empty; CreateVMFromTemplate is left out when there is no Template.
	Kinds []Kind
	// Template is a reference to a template, NAMESPACE/NAME. The user may use it; its parameters need defaults.
	Template string
	// Namespace is an existing namespace for the VirtualMachines. When empty, one is created, with NamespaceLabels, and deleted
	// at the end.
	Namespace       string
	NamespaceLabels map[string]string
	// MaxWrites and MaxDuration bound the traffic: 6000 writes and 10 minutes when zero.
	MaxWrites   int
	MaxDuration time.Duration
}

const (
	// requestTimeout bounds a write. It is longer than the timeouts of webhooks, so that their timeouts are reported as theirs.
	requestTimeout = 20 * time.Second
	// maxConflicts bounds how often a write is sent again after a conflict.
	maxConflicts = 10
	// maxPending bounds how many writes have no answer at one time: all of requestTimeout at the default rate.
	maxPending = 200
	// subjects is how many VirtualMachines the updates of a kind are spread over.
	subjects = 4
)

func (o Options) withDefaults() (Options, error) {
	if o.Plane == nil {
		return o, errors.New("traffic needs Options.Plane")
	}
	if o.Rate <= 0 {
		o.Rate = 10
	}
	if o.MaxWrites <= 0 {
		o.MaxWrites = 6000
	}
	if o.MaxDuration <= 0 {
		o.MaxDuration = 10 * time.Minute
	}
	if len(o.Kinds) == 0 {
		o.Kinds = []Kind{CreateVM, UpdateVMStatus, UpdateVMSpec, LabelNamespace, AnnotateVM}
		if o.Template != "" {
			o.Kinds = append(o.Kinds, CreateVMFromTemplate)
		}
	}
	if slices.Contains(o.Kinds, CreateVMFromTemplate) && o.Template == "" {
		return o, errors.New("traffic of VirtualMachines from a template needs Options.Template")
	}
	return o, nil
}
