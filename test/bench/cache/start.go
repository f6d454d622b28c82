package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/vmstencil/stencil/test/bench/machine"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/manager"
)

// auditPolicy records only when the manager requests the templates. A list that is streamed is a watch.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  verbs: [list, watch]
  resources: [{group: template.kubevirt.io, resources: [virtualmachinetemplates]}]
- level: None
`

const (
	// readyLimit bounds the wait for readiness.
	readyLimit = 2 * time.Minute
	// observation is how long memory is watched after that, observationStep how often it is read.
	observation     = time.Minute
	observationStep = time.Second
	// readyStep bounds the error of a result. Each question takes the manager a TLS handshake with itself.
	readyStep = 50 * time.Millisecond
)

// start is one start of the manager.
type start struct {
	// process is the time from the start of the process until it was ready, list that from its request for the templates.
	process, list time.Duration
	// cpu is the processor time until then.
	cpu time.Duration
	// ready is the memory at that moment, largest the largest resident size of the minute that followed, later the memory at its end.
	ready, later machine.Memory
	largest      int64
}

// measure starts the manager, waits until it is ready, watches its memory and stops it.
func measure(ctx context.Context, plane *controlplane.Plane, options manager.Options, watch time.Duration) (result start, err error) {
	options.WithoutWaiting = true
	begin := time.Now()
	process, err := manager.Start(ctx, options)
	if err != nil {
		return start{}, err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	if err := process.Poll(ctx, readyStep, readyLimit, func() (bool, error) { return process.Ready(ctx) == nil, nil }); err != nil {
		return start{}, fmt.Errorf("waiting until the manager is ready: %w\n%s", err, process.Logs())
	}
	now := time.Now()
	result.process = now.Sub(begin)
	if result.ready, err = machine.MemoryOf(process.PID()); err != nil {
		return start{}, err
	}
	used, err := machine.CPU("stencil-manager")
	if err != nil {
		return start{}, err
	}
	result.cpu = used["stencil-manager"]
	requested, err := listed(plane, begin)
	if err != nil {
		return start{}, err
	}
	result.list = now.Sub(requested)

	result.largest = result.ready.Resident
	err = process.Poll(ctx, observationStep, watch+observationStep, func() (bool, error) {
		if result.later, err = machine.MemoryOf(process.PID()); err != nil {
			return false, err
		}
		result.largest = max(result.largest, result.later.Resident)
		return time.Since(now) >= watch, nil
	})
	return result, err
}

// listed returns when the manager that started at begin requested all templates: before any of them can have arrived.
func listed(plane *controlplane.Plane, begin time.Time) (time.Time, error) {
	events, err := plane.AuditEvents()
	if err != nil {
		return time.Time{}, err
	}
	for _, event := range events {
		if event.Stage == auditv1.StageRequestReceived && event.RequestReceivedTimestamp.After(begin) {
			return event.RequestReceivedTimestamp.Time, nil
		}
	}
	return time.Time{}, errors.New("the audit log does not tell when the manager asked for the templates")
}
