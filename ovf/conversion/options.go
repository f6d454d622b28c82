package conversion

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vmstencil/stencil/ovf"
)

// Delivery is how the guest receives the values of properties.
type Delivery string

const (
	// DeliveryAuto is DeliveryCloudInit if all properties that users configure are hostname, password or public-keys, and otherwise
	// DeliveryEnvironment if there are properties.
	DeliveryAuto Delivery = ""
	// DeliveryEnvironment is a CD with the file ovf-env.xml, from a Secret that belongs to the VirtualMachine. The CD has the label OVF-TRANSPORT, by
	// which cloud-init finds it.
	DeliveryEnvironment Delivery = "Environment"
	// DeliveryCloudInit is user data of cloud-init. It takes the properties hostname, password and public-keys.
	DeliveryCloudInit Delivery = "CloudInit"
	// DeliveryNone leaves properties out.
	DeliveryNone Delivery = "None"
)

// PodNetwork is the value of Options.Networks for the network of pods.
const PodNetwork = "pod"

// Buses of disks.
const (
	BusSATA   = "sata"
	BusSCSI   = "scsi"
	BusVirtio = "virtio"
)

// Options specify how an envelope becomes templates. The zero value is valid, but for Namespace where templates are to be used in a cluster.
type Options struct {
	// Namespace is the namespace of the templates and of the disks.
	Namespace string
	// Name is the name of the template if the package has one system, and otherwise the beginning of the names. If it is empty, templates are named
	// after their systems.
	Name string
	// Configuration is the ID of a deployment option; empty for the default.
	Configuration string
	// Networks maps names of networks in the package to [PodNetwork] or to a NetworkAttachmentDefinition (NAME or NAMESPACE/NAME). Of the others, that of
	// the first adapter becomes the network of pods unless another one is, and the rest become parameters.
	Networks map[string]string
	// DiskBus is the bus of all disks. If it is empty, disks at virtio controllers stay at virtio, and all others are sata, with which guests boot that
	// have no virtio drivers.
	DiskBus string
	// StorageClass is the storage class of the disks; empty for the cluster's default.
	StorageClass string
	// Instancetype is the name of a VirtualMachineClusterInstancetype for all systems, which has the CPUs and the memory instead of the descriptor. If it is
	// empty, they are those of the descriptor.
	Instancetype string
	// Preference is the name of a VirtualMachineClusterPreference for all systems. Nil chooses one for the operating system, and an empty name none.
	Preference *string
	Delivery   Delivery
	// Template is the content of the file that [EmbeddedFile] returns. Nil makes templates from the descriptor. Otherwise
	// only Name and Namespace apply, and Instancetype and Preference are errors.
	Template []byte
}

// attachment matches NAME and NAMESPACE/NAME.
var attachment = regexp.MustCompile(`^([a-z0-9][-a-z0-9]*/)?[a-z0-9][-.a-z0-9]*$`)

func (o *Options) check(e *ovf.Envelope) error {
	switch {
	case !slices.Contains([]string{"", BusSATA, BusSCSI, BusVirtio}, o.DiskBus):
		return fmt.Errorf("converting the OVF: there is no bus %q; want %s, %s or %s", o.DiskBus, BusSATA, BusSCSI, BusVirtio)
	case !slices.Contains([]Delivery{DeliveryAuto, DeliveryEnvironment, DeliveryCloudInit, DeliveryNone}, o.Delivery):
		return fmt.Errorf("converting the OVF: there is no delivery %q; want %s, %s or %s", o.Delivery, DeliveryEnvironment, DeliveryCloudInit, DeliveryNone)
	}
	if o.Configuration != "" && !slices.ContainsFunc(e.Configurations, func(c ovf.Configuration) bool { return c.ID == o.Configuration }) {
		var ids []string
		for _, c := range e.Configurations {
			ids = append(ids, c.ID)
		}
		return fmt.Errorf("converting the OVF: there is no deployment option %q; the package has %q", o.Configuration, ids)
	}
	names := map[string]string{"storage class": o.StorageClass, "template name": o.Name, "namespace": o.Namespace, "instance type": o.Instancetype}
	if o.Preference != nil {
		names["preference"] = *o.Preference
	}
	for kind, name := range names {
		if name == "" {
			continue
		}
		if err := checkName(kind, name); err != nil {
			return err
		}
	}
	pods := 0
	for name, target := range o.Networks {
		if !attachment.MatchString(target) {
			return fmt.Errorf("converting the OVF: the network %q is mapped to %q; want %s, NAME or NAMESPACE/NAME", name, target, PodNetwork)
		}
		if !slices.ContainsFunc(networks(e), func(known string) bool { return known == name }) {
			return fmt.Errorf("converting the OVF: there is no network %q; the package has %q", name, networks(e))
		}
		if target == PodNetwork {
			pods++
		}
	}
	if pods > 1 {
		return errors.New("converting the OVF: KubeVirt has one network of pods, and several networks are mapped to it")
	}
	return nil
}

// sizing returns the first choice that belongs to a descriptor without a template; empty if there is none.
func (o *Options) sizing() string {
	switch {
	case o.Instancetype != "":
		return "instance type"
	case o.Preference != nil:
		return "preference"
	}
	return ""
}

// networks returns the names of all networks, those of adapters first.
func networks(e *ovf.Envelope) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i := range e.Systems {
		for _, item := range e.Systems[i].Hardware.Items {
			for _, name := range item.Connections {
				add(name)
			}
		}
	}
	for _, network := range e.Networks {
		add(network.Name)
	}
	return names
}

// checkName rejects what is not the name of an object. Callers also name files after objects, so that a name must not lead to another folder.
func checkName(kind, name string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("converting the OVF: the %s %q is not the name of an object; want lower case letters, digits, hyphens and dots", kind, name)
	}
	return nil
}
