package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/client"
	"github.com/vmstencil/stencil/defaulting/engine"
	"github.com/vmstencil/stencil/defaulting/service"
	"github.com/vmstencil/stencil/defaulting/supervisor"
	"github.com/vmstencil/stencil/defaulting/worker"
)

// Machine types that trigger faults in the test's worker.
const (
	typeKill     = "fault-kill"
	typeSegfault = "fault-segfault"
	typeHang     = "fault-hang"
)

// faulty is libvirt with injected faults.
type faulty struct{ worker.Libvirt }

func withFaults(libvirt worker.Libvirt) worker.Libvirt { return faulty{libvirt} }

func (f faulty) Define(ctx context.Context, xml string) (string, error) {
	switch {
	case strings.Contains(xml, typeKill):
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case strings.Contains(xml, typeSegfault):
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		time.Sleep(time.Minute)
	case strings.Contains(xml, typeHang):
		time.Sleep(time.Minute)
	}
	return f.Libvirt.Define(ctx, xml)
}

func ofType(machineType string) shapes.Option {
	return func(vm *kubevirtv1.VirtualMachine) {
		shapes.SpecOf(vm).Domain.Machine = &kubevirtv1.Machine{Type: machineType}
	}
}

// workers returns the processes that supervisors of this process have started.
func workers(t testing.TB) []int {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, list := range lists {
		content, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(content)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(line, []byte("--root")) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// ask requests the defaults of a VirtualMachine with the given options.
func ask(e *engine.Engine, t testing.TB, options ...shapes.Option) (*defaulting.Response, error) {
	return e.Answer(context.Background(), &defaulting.Request{VM: encode(t, shapes.New(options...)), PatchOnly: true})
}

// checkAnswer checks that a response places the given number of disks.
func checkAnswer(response *defaulting.Response, count int) error {
	placed := 0
	for _, set := range response.Set {
		if strings.HasSuffix(set.Path, "pciAddress") && strings.Contains(set.Path, "disks") {
			placed++
		}
	}
	if placed != count {
		return fmt.Errorf("%d of %d disks have an address: %v", placed, count, response.Skipped)
	}
	return nil
}

func TestNoAnswerIsWrongWhileWorkersAreKilled(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV} {
		t.Run(signal.String(), func(t *testing.T) {
			s := startSupervisor(t, nil)
			e := newEngine(s)
			var (
				asking sync.WaitGroup
				done   atomic.Bool
				rounds [8]atomic.Int64
			)
			for i := range rounds {
				asking.Go(func() {
					for round := 0; !done.Load() || round < 3; round++ {
						rounds[i].Store(int64(round))
						// Each is a shape that was not requested before.
						count := 1 + (round+i)%10
						response, err := ask(e, t, shapes.Disks(count, "virtio"), shapes.NICs(1+i%4, "virtio"), shapes.CDROMs(round/10%6, "sata"), shapes.Annotation(
							"kubevirt.io/pci-interface-slot-count", strconv.Itoa(4+(i+8*round)%24)))
						if err == nil {
							err = checkAnswer(response, count)
						}
						if err != nil && !strings.Contains(err.Error(), "No more available PCI slots") {
							t.Errorf("an answer while workers are killed: %v", err)
						}
					}
				})
			}
			defer done.Store(true)
			for killed := range int64(3) {
				// A domain in progress when a worker dies is tried once more, alone, and is
				// quarantined if the worker dies again. So every goroutine finishes a round
				// first.
				waitFor(t, func() bool { return s.Restarts() >= killed })
				for i := range rounds {
					before := rounds[i].Load()
					waitFor(t, func() bool { return rounds[i].Load() > before+1 })
				}
				for _, pid := range workers(t) {
					_ = syscall.Kill(pid, signal)
				}
			}
			done.Store(true)
			asking.Wait()
			waitFor(t, func() bool { return s.Restarts() >= 3 })
			if s.Quarantined() > 0 {
				t.Errorf("%d machines are in quarantine that killed nothing", s.Quarantined())
			}
		})
	}
}

func TestAMachineThatKillsTheWorkerTwiceIsNotTriedAgain(t *testing.T) {
	for name, machineType := range map[string]string{"killed": typeKill, "segmentation fault": typeSegfault, "hung": typeHang} {
		t.Run(name, func(t *testing.T) {
			s := startSupervisor(t, func(o *supervisor.Options) { o.Watchdog = 3 * time.Second })
			e := newEngine(s)
			for attempt := range 2 {
				_, err := e.Answer(context.Background(), &defaulting.Request{VM: encode(t, shapes.New(ofType(machineType)))})
				var problem *defaulting.Problem
				if !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable && problem.Status != http.StatusGatewayTimeout {
					t.Fatalf("attempt %d: got %v, want 503 or 504", attempt, err)
				}
			}
			// On a busy host the watchdog may end a worker for another reason as well.
			waitFor(t, func() bool { return s.Restarts() >= 2 })
			if s.Quarantined() != 1 {
				t.Errorf("%d machines are in quarantine, want 1", s.Quarantined())
			}
			response, err := ask(e, t, shapes.Disks(2, "virtio"))
			if err != nil {
				t.Fatalf("another machine is not answered: %v", err)
			}
			if err := checkAnswer(response, 2); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAFolderThatCannotBeWrittenIsNoFaultOfTheMachine(t *testing.T) {
	var folder string
	s := startSupervisor(t, func(o *supervisor.Options) { folder = o.Command.Args[1] })
	e := newEngine(s)
	if _, err := ask(e, t, shapes.Disks(1, "virtio")); err != nil {
		t.Fatal(err)
	}
	definitions := filepath.Join(folder, "etc", "qemu")
	if err := os.Chmod(definitions, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := ask(e, t, shapes.Disks(2, "virtio"))
	var problem *defaulting.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable {
		t.Errorf("got %v, want 503", err)
	}
	if err := os.Chmod(definitions, 0o700); err != nil {
		t.Fatal(err)
	}
	response, err := ask(e, t, shapes.Disks(2, "virtio"))
	if err != nil {
		t.Fatalf("the failure is remembered: %v", err)
	}
	if err := checkAnswer(response, 2); err != nil {
		t.Error(err)
	}
}

func TestAThousandRequestsAtOnce(t *testing.T) {
	s := startSupervisor(t, nil)
	e := newEngine(s)
	socket := filepath.Join(stateFolder(t), "defaulter.sock")
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- service.Serve(ctx, socket, service.New(service.Options{
			Engine: e, Surveyor: s, Registry: prometheus.NewRegistry(), Log: logr.Discard(),
		}))
	}()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	waitFor(t, func() bool { _, err := os.Stat(socket); return err == nil })

	// A client that receives a retry response or a timeout tries again, after the delay that the response
	// contains: all requests are answered in the end, however slow the host is.
	c := client.New(socket)
	ctxAll, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var (
		asking     sync.WaitGroup
		again      atomic.Int64
		unanswered atomic.Int64
	)
	for i := range 1000 {
		asking.Go(func() {
			count := 1 + i%20
			body, err := json.Marshal(defaulting.Request{PatchOnly: true, VM: encode(t, shapes.New(shapes.Disks(count, "virtio"), func(vm *kubevirtv1.VirtualMachine) {
				vm.Name = fmt.Sprintf("machine-%d", i)
			}))})
			if err != nil {
				t.Error(err)
				return
			}
			for {
				text, err := c.Raw(ctxAll, body)
				var problem *defaulting.Problem
				switch {
				case ctxAll.Err() != nil:
					unanswered.Add(1)
					return
				case err == nil:
					var response defaulting.Response
					decodeInto(t, text, &response)
					if err := checkAnswer(&response, count); err != nil {
						t.Error(err)
					}
					return
				case errors.Is(err, context.DeadlineExceeded),
					errors.As(err, &problem) && (problem.Status == http.StatusTooManyRequests || problem.Status == http.StatusGatewayTimeout):
					again.Add(1)
					if problem != nil {
						time.Sleep(problem.RetryAfter)
					}
				default:
					t.Errorf("request %d: %v", i, err)
					return
				}
			}
		})
	}
	asking.Wait()
	t.Logf("there were %d attempts more than requests", again.Load())
	if n := unanswered.Load(); n > 0 {
		t.Errorf("%d were never answered", n)
	}
	if s.Restarts() > 0 || s.Quarantined() > 0 {
		t.Errorf("%d restarts, %d in quarantine", s.Restarts(), s.Quarantined())
	}
}

// waitFor polls until a condition holds.
func waitFor(t testing.TB, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatal("it does not come true")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
