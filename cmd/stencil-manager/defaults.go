package main

import (
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/defaulting"
)

// The values of --defaulting-failure-policy.
const (
	failurePolicyIgnore = "Ignore"
	failurePolicyFail   = "Fail"
)

// defaultingPolicy returns the defaulting policy that the flags specify.
func (o *options) defaultingPolicy() defaulting.Policy {
	return defaulting.Policy{
		MachineType:  defaulting.MachineTypePolicy(o.defaultingMachineType),
		PCIAddress:   ptr.To(o.defaultingPCIAddress),
		FirmwareUUID: ptr.To(o.defaultingFirmwareUUID),
		MAC:          defaulting.MACPolicy(o.defaultingMAC),
		CPU:          ptr.To(o.defaultingCPU),
		Memory:       ptr.To(o.defaultingMemory),
	}
}

// generatesMAC reports whether MAC addresses are generated.
func (o *options) generatesMAC() bool {
	return o.defaultingSocket != "" && o.defaultingMAC == string(defaulting.MACGenerate)
}
