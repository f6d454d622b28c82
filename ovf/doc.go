// Package ovf reads and writes descriptors of the Open Virtualization Format: the XML file of an OVF package that declares its files, disks,
// networks, and virtual systems.
//
// [Decode] reads OVF 1.0, 1.1 and 2.x, and OVF 0.9 by translation into 1.0; [Encode] writes OVF 1.1. The format is DMTF DSP0243, programmatic units
// are DSP0004 annex C, the numbers of resource types and operating systems are those of the CIM schema. In addition, the reader understands what
// VMware, VirtualBox and Xen add in namespaces of their own, as far as [Hardware] and [OperatingSystem] have fields for it.
//
// Descriptors are hostile input. The decoder reads at most [MaxDescriptorBytes], rejects document types and entities, limits depth and numbers
// of elements, and never follows a reference. A section that it does not understand is an error if the section is required, which is the default of
// the format; all such sections are listed in one [UnsupportedError]. Other unknown content is reported in Envelope.Warnings.
//
// The package ova reads and writes the archives that contain descriptors; the package conversion converts between descriptors and
// VirtualMachineTemplates. The package is pure: it uses no Kubernetes client, no clock, no files and no network.
package ovf
