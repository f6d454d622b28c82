package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/launcher"
	"github.com/vmstencil/stencil/defaulting/worker"
)

// Command is how the worker is started.
type Command struct {
	Path string
	// Args does not begin with the path.
	Args []string
	Env  []string
}

// Options are the dependencies and settings of a Supervisor.
type Options struct {
	Command Command
	// Log receives starts and deaths of the worker.
	Log logr.Logger
	// Watchdog bounds a define, 5 s by default.
	Watchdog time.Duration
	// ReadyTimeout bounds the start of a worker, 20 s by default: the first one queries QEMU's
	// capabilities.
	ReadyTimeout time.Duration
	// Queue is the maximum number of running and waiting defines, 64 by default.
	Queue int
	// Prepare is called before each start.
	Prepare func() error
	// Clock determines when a quarantined domain is tried again; nil means the real clock.
	Clock clock.PassiveClock
	// Reap makes the supervisor wait for every child of this process. Tests that start
	// processes of their own do not set it.
	Reap bool
}

// Delays between the death of a worker and the next start.
const (
	firstDelay = 50 * time.Millisecond
	maxDelay   = 10 * time.Second
	// steady is the run time of a worker after which the delay starts at firstDelay again.
	steady = 30 * time.Second
)

// Supervisor is a launcher.Definer that sends domains to a worker.
type Supervisor struct {
	options Options
	slots   chan struct{}
	// gate is locked for reading by every define, and for writing by one that is tried alone.
	gate       sync.RWMutex
	quarantine *quarantine
	restarts   atomic.Int64

	mu      sync.Mutex
	current *process
	facts   worker.Facts
	// changed is closed when current is replaced.
	changed chan struct{}
}

// New returns a Supervisor. It does nothing until Run is called.
func New(options Options) *Supervisor {
	if options.Watchdog == 0 {
		options.Watchdog = 5 * time.Second
	}
	if options.ReadyTimeout == 0 {
		options.ReadyTimeout = 20 * time.Second
	}
	if options.Queue == 0 {
		options.Queue = 64
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Supervisor{
		options:    options,
		slots:      make(chan struct{}, options.Queue),
		quarantine: newQuarantine(options.Clock),
		changed:    make(chan struct{}),
	}
}

// Run runs a worker, and restarts it, until the context ends.
func (s *Supervisor) Run(ctx context.Context) error {
	if s.options.Reap {
		if err := becomeReaper(); err != nil {
			return err
		}
		// Processes that are killed at the end are reaped too.
		reaping, stop := context.WithCancel(context.WithoutCancel(ctx))
		reaped := make(chan struct{})
		go func() {
			defer close(reaped)
			reap(reaping)
		}()
		defer func() {
			stop()
			<-reaped
			reapRest(endLimit)
		}()
	}
	s.runLoop(ctx)
	return nil
}

// runLoop restarts the worker until the context ends.
func (s *Supervisor) runLoop(ctx context.Context) {
	delay := time.Duration(0)
	for ctx.Err() == nil {
		begin := time.Now()
		err := s.runOnce(ctx)
		if ctx.Err() != nil {
			// The worker was ended on purpose.
			break
		}
		s.restarts.Add(1)
		if delay = min(2*delay, maxDelay); delay == 0 || time.Since(begin) > steady {
			delay = firstDelay
		}
		s.options.Log.Error(err, "the worker ended and is started again", "delay", delay.String())
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// runOnce starts one worker and returns when it has ended.
func (s *Supervisor) runOnce(ctx context.Context) error {
	if s.options.Prepare != nil {
		if err := s.options.Prepare(); err != nil {
			return fmt.Errorf("preparing the worker's folder: %w", err)
		}
	}
	begin := time.Now()
	p, err := start(ctx, s.options.Command, s.options.ReadyTimeout)
	if err != nil {
		s.cleanUp()
		return err
	}
	s.options.Log.Info("the worker is ready", "after", time.Since(begin).String(), "libvirt", p.facts.Libvirt, "qemu", p.facts.QEMU)
	s.replace(p)
	select {
	case <-p.ended:
		err = errEnded
	case <-ctx.Done():
	}
	s.replace(nil)
	p.end()
	_ = p.input.Close()
	s.cleanUp()
	return err
}

func (s *Supervisor) cleanUp() {
	if s.options.Reap {
		killChildren()
	}
}

func (s *Supervisor) replace(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = p
	if p != nil {
		s.facts = p.facts
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// await returns the current worker, once there is one other than dead.
func (s *Supervisor) await(ctx context.Context, dead *process) (*process, error) {
	for {
		s.mu.Lock()
		p, changed := s.current, s.changed
		s.mu.Unlock()
		if p != nil && p != dead {
			return p, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, defaulting.Unavailable("libvirt is being started")
		}
	}
}

// Machines returns QEMU's machine types by architecture. The first call waits for QEMU to
// report them.
func (s *Supervisor) Machines(ctx context.Context) (map[string][]string, error) {
	p, err := s.await(ctx, nil)
	if err != nil {
		return nil, err
	}
	answer, err := p.send(worker.Survey, "")
	if err != nil {
		return nil, defaulting.Unavailable("libvirt is being started again")
	}
	select {
	case frame, ok := <-answer:
		if !ok || frame.Kind != worker.Surveyed {
			return nil, defaulting.Unavailable("querying libvirt for its machine types failed: %s", frame.Payload)
		}
		var machines map[string][]string
		if err := json.Unmarshal(frame.Payload, &machines); err != nil {
			return nil, fmt.Errorf("reading the machine types: %w", err)
		}
		return machines, nil
	case <-ctx.Done():
		return nil, defaulting.Late("QEMU did not return its machine types in time")
	}
}

// Restarts returns how often a worker has died.
func (s *Supervisor) Restarts() int64 { return s.restarts.Load() }

// Waiting returns the number of running and waiting defines.
func (s *Supervisor) Waiting() int { return len(s.slots) }

// Quarantined returns the number of domains in quarantine.
func (s *Supervisor) Quarantined() int { return s.quarantine.size() }

// Define sends a domain to the worker. Its errors are a RejectedError or a defaulting.Problem.
func (s *Supervisor) Define(ctx context.Context, xml string) (string, error) {
	decision, left := s.quarantine.decide(xml)
	if decision == held {
		return "", inQuarantine(left)
	}
	described, err := s.queued(ctx, xml, decision)
	if decision == probation {
		s.reportResult(xml, err)
	}
	return described, err
}

// queued tries a domain if there is room in the queue: concurrently with others first, and
// alone if the worker died on it or if the domain is on probation.
func (s *Supervisor) queued(ctx context.Context, xml string, decision decision) (string, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return "", defaulting.Busy(time.Second)
	}
	if decision == free {
		described, err := s.together(ctx, xml)
		if !errors.Is(err, errEnded) && !errors.Is(err, errHung) {
			return described, err
		}
	}
	described, err := s.alone(ctx, xml)
	if errors.Is(err, errHung) || errors.Is(err, errEnded) {
		period := s.quarantine.add(xml)
		s.options.Log.Error(err, "libvirt ended again while it processed a VM; the VM is in quarantine", "period", period.String())
		problem := inQuarantine(period)
		if errors.Is(err, errHung) {
			problem = defaulting.Late("libvirt did not answer within %s, again; the VM is retried in %s", s.options.Watchdog, period)
		}
		return "", &endedError{problem}
	}
	return described, err
}

// endedError means that a domain has ended the worker and is in quarantine.
type endedError struct{ *defaulting.Problem }

func (e *endedError) Unwrap() error { return e.Problem }

// reportResult reports the result of a domain on probation to the quarantine.
func (s *Supervisor) reportResult(xml string, err error) {
	var (
		problem *defaulting.Problem
		ended   *endedError
	)
	switch {
	case errors.As(err, &ended):
		// It is back in quarantine already.
	case errors.As(err, &problem):
		s.quarantine.postpone(xml)
	default:
		// libvirt has answered, with a description or a rejection.
		s.quarantine.release(xml)
	}
}

func inQuarantine(left time.Duration) *defaulting.Problem {
	left = max(left.Round(time.Second), time.Second)
	problem := defaulting.Unavailable("libvirt ended or stopped responding more than once while it processed this VM; it is retried in %s", left)
	problem.RetryAfter = left
	return problem
}

func (s *Supervisor) together(ctx context.Context, xml string) (string, error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	return s.try(ctx, xml)
}

func (s *Supervisor) alone(ctx context.Context, xml string) (string, error) {
	s.gate.Lock()
	defer s.gate.Unlock()
	return s.try(ctx, xml)
}

// errHung is returned for a request that exceeded the watchdog timeout.
var errHung = errors.New("the watchdog ended the worker")

func (s *Supervisor) try(ctx context.Context, xml string) (string, error) {
	var (
		p      *process
		answer <-chan worker.Frame
	)
	for answer == nil {
		var err error
		if p, err = s.await(ctx, p); err != nil {
			return "", err
		}
		// The death of an earlier worker is not caused by this domain.
		if answer, err = p.send(worker.Define, xml); err != nil && !errors.Is(err, errEnded) {
			return "", err
		}
	}
	// The context does not end the wait: a define that takes too long must be detected even if
	// its caller has left.
	watchdog := time.NewTimer(s.options.Watchdog)
	defer watchdog.Stop()
	select {
	case frame, ok := <-answer:
		if !ok {
			return "", errEnded
		}
		return read(frame)
	case <-watchdog.C:
		s.options.Log.Error(nil, "libvirt does not answer; the worker is killed", "watchdog", s.options.Watchdog.String())
		p.kill()
		return "", errHung
	}
}

func read(frame worker.Frame) (string, error) {
	switch frame.Kind {
	case worker.Described:
		return string(frame.Payload), nil
	case worker.Rejected:
		return "", &launcher.RejectedError{Message: string(frame.Payload)}
	}
	return "", defaulting.Unavailable("the request to libvirt failed: %s", frame.Payload)
}

// Versions returns the versions of libvirt and QEMU, and whether there is a worker. Between two
// workers they are the versions of the last one.
func (s *Supervisor) Versions() (libvirt, qemu string, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts.Libvirt, s.facts.QEMU, s.current != nil
}
