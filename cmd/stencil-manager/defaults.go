package main

import (
	"fmt"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/client"
	"github.com/vmstencil/stencil/webhooks/defaults"
	"github.com/vmstencil/stencil/webhooks/serving"
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

// addDefaults registers the webhook that calls the defaulter, and the observer of the
// defaulter.
func addDefaults(mgr manager.Manager, server *serving.Server, c caches, o *options) error {
	if o.defaultingSocket == "" {
		return nil
	}
	measured, err := defaults.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	defaulter := client.New(o.defaultingSocket)
	if err := mgr.Add(defaults.NewObserver(defaults.ObserverOptions{
		Defaulter: defaulter,
		KubeVirt:  c.kubevirt,
		Metrics:   measured,
		Recorder:  mgr.GetEventRecorder("stencil-defaulting"),
		Elected:   mgr.Elected(),
		Logger:    mgr.GetLogger().WithName("defaulting"),
	})); err != nil {
		return fmt.Errorf("adding the observer of the defaulter: %w", err)
	}
	options := defaults.Options{
		Defaulter:     client.NewCachingDefaulter(measured.Timed(defaulter, clock.RealClock{}), clock.RealClock{}),
		Cluster:       c.kubevirt,
		Approvals:     c.approvals,
		Instancetypes: c.instancetypes,
		Policy:        o.defaultingPolicy(),
		Namespaces:    c.approvals,
		FailClosed:    o.defaultingFailurePolicy == failurePolicyFail,
		Exempt:        c.exempt,
		Metrics:       measured,
	}
	if c.addresses != nil {
		options.Addresses = c.addresses
	}
	server.Register(serving.Webhook{
		Name:    "defaults",
		Path:    "/mutate-virtualmachine-defaults",
		Handler: defaults.New(options),
	})
	return nil
}
