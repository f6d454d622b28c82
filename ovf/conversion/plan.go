package conversion

import (
	"fmt"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// Plan is what an import makes of a package.
type Plan struct {
	// Systems are the templates, one for each virtual system, in the order of the descriptor.
	Systems []SystemPlan `json:"systems"`
	// Notes concern the package as a whole.
	Notes []Note `json:"notes,omitempty"`
}

// SystemPlan is what an import makes of one virtual system.
type SystemPlan struct {
	// System is the ID of the virtual system.
	System string `json:"system"`
	// Configuration is the deployment option that was applied; empty if the package has none.
	Configuration string `json:"configuration,omitempty"`
	// Restored is true if the template is the one that the package carries.
	Restored bool `json:"restored,omitempty"`
	// Disks must exist before VirtualMachines are created from the template.
	Disks    []Disk                          `json:"disks"`
	Notes    []Note                          `json:"notes"`
	Template *v1beta1.VirtualMachineTemplate `json:"template"`
}

// Disk is a disk that an import fills from a file of the package.
type Disk struct {
	// Volume is the name of the volume in the VirtualMachine.
	Volume string `json:"volume"`
	// Claim is the name of the PersistentVolumeClaim, in the namespace of the template, of which VirtualMachines get copies.
	Claim string `json:"claim"`
	// File is the name of the file in the package (href).
	File string `json:"file"`
	// Format is the URI of the disk's format; empty for an ISO image of a CD drive that declares none.
	Format string `json:"format,omitempty"`
	// Capacity is the size of the disk in bytes, and of the file for an ISO image; -1 if it is not known.
	Capacity int64 `json:"capacity"`
	// CDROM is true for an ISO image.
	CDROM bool `json:"cdrom,omitempty"`
}

// Action is how an item of the descriptor is handled.
type Action string

const (
	// ActionKept is an item that the template has as well.
	ActionKept Action = "kept"
	// ActionChanged is an item that the template has in another form.
	ActionChanged Action = "changed"
	// ActionParameter is an item that became a parameter.
	ActionParameter Action = "parameter"
	// ActionDropped is an item that the template does not have, without consequence in most cases.
	ActionDropped Action = "dropped"
	// ActionWarning is an item that needs attention.
	ActionWarning Action = "warning"
)

// Note reports how an import or an export handles an item.
type Note struct {
	Action Action `json:"action"`
	// Source is the item, for instance: disk Hard disk 1.
	Source string `json:"source"`
	// Result describes the item's counterpart in the template, or why there is none, and what the user can do.
	Result string `json:"result"`
}

func (n Note) String() string { return fmt.Sprintf("%s: %s: %s", n.Action, n.Source, n.Result) }
