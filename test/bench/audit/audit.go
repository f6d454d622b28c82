package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/bench/machine"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/manager"
	"github.com/vmstencil/stencil/test/metrics"
	"github.com/vmstencil/stencil/test/product"
)

// Options are the sizes and the extent of the measurement.
type Options struct {
	// Golden is the template of all VMs.
	Golden *v1beta1.VirtualMachineTemplate
	// Definitions is the folder with the CRDs of Stencil.
	Definitions string
	// Machines is the number of audited VMs.
	Machines int
	// Rounds is how often the evaluation of one VM and the audit of all are measured, each time by a manager that has just started; the result is the
	// median. At least 1.
	Rounds int
	// Time of each measurement of one VM.
	Time time.Duration
	// Log receives the cluster's log, Progress the steps of the benchmark.
	Log      io.Writer
	Progress func(format string, arguments ...any)
}

// Result is what Run has measured.
type Result struct {
	vms        int
	evaluating evaluating
	// idle is the memory of a manager that has nothing to audit.
	idle machine.Memory
	runs []run
}

// run is one audit of all VMs.
type run struct {
	// duration is reported by the manager, cpu is the processor time of its process from its start to the end of the audit.
	duration, cpu time.Duration
	// memory of its process at the end of the audit.
	memory machine.Memory
}

// limit bounds an audit.
const limit = 10 * time.Minute

// Run measures.
func Run(ctx context.Context, options Options) (result *Result, err error) {
	result = &Result{vms: options.Machines}
	for round := range options.Rounds {
		options.Progress("audit: one machine, round %d of %d", round+1, options.Rounds)
		if err := result.evaluating.measure(options.Golden, options.Time); err != nil {
			return nil, err
		}
	}
	binary, err := product.Binary(ctx, string(manager.StencilManager))
	if err != nil {
		return nil, err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{Log: options.Log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	options.Progress("audit: creating %d machines", options.Machines)
	process, err := prepare(ctx, plane, options)
	if err != nil {
		return nil, err
	}
	process.Binary = binary
	for round := range options.Rounds {
		options.Progress("audit: audit %d of %d", round+1, options.Rounds)
		one, err := audit(ctx, process, options.Machines)
		if err != nil {
			return nil, err
		}
		result.runs = append(result.runs, one)
	}
	// The same manager, once no namespace is governed any more.
	if err := remove(ctx, plane); err != nil {
		return nil, err
	}
	options.Progress("audit: a manager without an approval")
	idle, err := audit(ctx, process, 0)
	result.idle = idle.memory
	return result, err
}

// audit starts a manager and returns when it has audited that many VMs.
func audit(ctx context.Context, options manager.Options, vms int) (result run, err error) {
	process, err := manager.Start(ctx, options)
	if err != nil {
		return run{}, err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	var text string
	audited := 0
	err = process.Poll(ctx, 50*time.Millisecond, limit, func() (bool, error) {
		if text, err = process.Metrics(ctx); err != nil {
			return false, err
		}
		if metrics.Value(text, "stencil_audit_failures_total") > 0 {
			return false, errors.New("the audit failed")
		}
		audited = int(metrics.Value(text, `stencil_audit_machines{approval="`+approvalName+`",result="conforming"}`))
		return metrics.Value(text, "stencil_audit_last_success_timestamp_seconds") > 0 && audited == vms, nil
	})
	if err != nil {
		return run{}, fmt.Errorf("waiting for the audit, which found %d machines: %w\n%s", audited, err, process.Logs())
	}
	return taken(process, text)
}

func taken(process *manager.Process, text string) (result run, err error) {
	result.duration = time.Duration(metrics.Value(text, "stencil_audit_duration_seconds") * float64(time.Second))
	if result.memory, err = machine.MemoryOf(process.PID()); err != nil {
		return run{}, err
	}
	used, err := machine.CPU("stencil-manager")
	if err != nil {
		return run{}, err
	}
	result.cpu = used["stencil-manager"]
	return result, nil
}
