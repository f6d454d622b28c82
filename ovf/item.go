package ovf

// ResourceType is the kind of a device: CIM_ResourceAllocationSettingData.ResourceType.
type ResourceType int

// Resource types that virtual systems use.
const (
	ResourceOther          ResourceType = 1
	ResourceProcessor      ResourceType = 3
	ResourceMemory         ResourceType = 4
	ResourceIDEController  ResourceType = 5
	ResourceSCSIController ResourceType = 6
	ResourceEthernet       ResourceType = 10
	ResourceFloppy         ResourceType = 14
	ResourceCD             ResourceType = 15
	ResourceDVD            ResourceType = 16
	ResourceDisk           ResourceType = 17
	ResourceStorageExtent  ResourceType = 19
	ResourceOtherStorage   ResourceType = 20
	ResourceSerialPort     ResourceType = 21
	ResourceParallelPort   ResourceType = 22
	ResourceUSBController  ResourceType = 23
	ResourceGraphics       ResourceType = 24
	ResourceLogicalDisk    ResourceType = 31
	ResourceStorageVolume  ResourceType = 32
	ResourceSound          ResourceType = 35
)

// resourceNames are the names of resource types in messages.
var resourceNames = map[ResourceType]string{
	ResourceOther: "other device", ResourceProcessor: "processor", ResourceMemory: "memory", ResourceIDEController: "IDE controller",
	ResourceSCSIController: "SCSI controller", 7: "fibre channel adapter", 8: "iSCSI adapter", 9: "InfiniBand adapter", ResourceEthernet: "Ethernet adapter",
	11: "network adapter", 12: "I/O slot", 13: "I/O device", ResourceFloppy: "floppy drive", ResourceCD: "CD drive", ResourceDVD: "DVD drive",
	ResourceDisk: "disk", 18: "tape drive", ResourceStorageExtent: "storage extent", ResourceOtherStorage: "storage controller", ResourceSerialPort: "serial port",
	ResourceParallelPort: "parallel port", ResourceUSBController: "USB controller", ResourceGraphics: "graphics controller", 25: "IEEE 1394 controller",
	ResourceLogicalDisk: "logical disk", ResourceStorageVolume: "storage volume", ResourceSound: "sound card",
}

// String returns the name of the resource type.
func (t ResourceType) String() string {
	if name, found := resourceNames[t]; found {
		return name
	}
	return "unknown device"
}

// Item is a device, or an amount of a resource.
type Item struct {
	// InstanceID is unique among the items that are effective in one configuration. Parent is the InstanceID of the controller.
	InstanceID, Parent string
	Type               ResourceType
	SubType            string
	Name, Description  string
	// Address is specific to the device: the MAC address of an Ethernet adapter, the bus number of a controller.
	Address string
	// AddressOnParent is the position of the device at its controller.
	AddressOnParent string
	// HostResources are what backs the device: ovf:/disk/ID or ovf:/file/ID. Resource splits them.
	HostResources []string
	// Connections are names of networks.
	Connections []string
	// Units is the unit of Quantity. Empty is byte for memory and count for everything else.
	Units string
	// Quantity is the amount in Units; 0 if it is not declared.
	Quantity uint64
	// CoresPerSocket is VMware's extension of processors; 0 if it is not declared.
	CoresPerSocket uint64
	// Reservation, Limit and Weight are as declared; empty if they are not.
	Reservation, Limit, Weight string
	// Required is false if the virtual system runs without the device.
	Required bool
	// Configurations are the IDs of the configurations in which the item is effective; empty for all.
	Configurations []string
	// Bound is min or max for items that declare a range, and normal or empty for all others.
	Bound string
	// Config are settings of the device of the platform that exported the package.
	Config []Setting
	// Line is the line of the descriptor, from 1.
	Line int
}

// bounds reports whether the item is a limit of a range, and not a device.
func (i *Item) bounds() bool { return i.Bound != "" && i.Bound != "normal" }

// Resource returns the kind (disk or file) and the ID of the first host resource; both are empty if the item has none, or none of these kinds.
func (i *Item) Resource() (kind, id string) {
	for _, resource := range i.HostResources {
		if match := hostResource.FindStringSubmatch(resource); match != nil {
			return match[1], match[2]
		}
	}
	return "", ""
}
