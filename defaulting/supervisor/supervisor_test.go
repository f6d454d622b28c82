package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/worker"
)

// diaryVariable makes the test binary a worker that records each requested define in a file.
const diaryVariable = "STENCIL_TEST_DIARY"

// lingerVariable makes the test binary a process that outlives its worker. Its value is the process
// ID of the worker, because the worker may have ended before the process can query it.
const lingerVariable = "STENCIL_TEST_LINGER"

func TestMain(m *testing.M) {
	if diary := os.Getenv(diaryVariable); diary != "" {
		if err := serveWorker(diary); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveWorker serves with pipes that stay open after the worker is killed, as on a busy host: a
// process in a separate process group holds them.
func serveWorker(diary string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	lingering, err := os.StartProcess(self, []string{self, "-test.run=^TestLinger$"}, &os.ProcAttr{
		Env: []string{lingerVariable + "=" + strconv.Itoa(os.Getpid())}, Files: []*os.File{os.Stdin, os.Stdout, nil}, Sys: &unix.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return err
	}
	served := worker.Serve(context.Background(), os.Stdin, os.Stdout, scribe{diary}, worker.Facts{Libvirt: "1", QEMU: "2"}, 2)
	return errors.Join(served, lingering.Kill())
}

// TestLinger is not a test but the process that outlives a worker: it ends shortly after the worker.
func TestLinger(*testing.T) {
	parent := os.Getenv(lingerVariable)
	if parent == "" {
		return
	}
	for strconv.Itoa(os.Getppid()) == parent {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond)
	os.Exit(0)
}

// curedSuffix is the suffix of a file next to the diary. While that file exists, no domain causes
// harm.
const curedSuffix = ".cured"

// scribe is a fake libvirt that hangs on some domains, and is killed during others.
type scribe struct{ diary string }

func (s scribe) Define(_ context.Context, xml string) (string, error) {
	file, err := os.OpenFile(s.diary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(file, xml); err != nil {
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	if _, err := os.Stat(s.diary + curedSuffix); err == nil {
		return "defined " + xml, nil
	}
	if strings.Contains(xml, "hang") {
		time.Sleep(time.Minute)
	}
	if strings.Contains(xml, "killed") {
		// As the kernel does when memory runs out.
		return "", unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	return "defined " + xml, nil
}

func (scribe) Machines() (map[string][]string, error) { return nil, nil }

// startScribe runs a supervisor with such workers until the test ends.
func startScribe(t *testing.T, change func(*Options)) (s *Supervisor, diary string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	diary = filepath.Join(t.TempDir(), "diary")
	options := Options{
		Command:  Command{Path: self, Env: []string{diaryVariable + "=" + diary}},
		Watchdog: 300 * time.Millisecond,
		Log:      logr.Discard(),
	}
	if change != nil {
		change(&options)
	}
	s = New(options)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, diary
}

func TestAMachineInQuarantineIsTriedAgainLaterAndLater(t *testing.T) {
	for xml, wantStatus := range map[string]int{"hang": http.StatusGatewayTimeout, "killed": http.StatusServiceUnavailable} {
		t.Run(xml, func(t *testing.T) {
			clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
			s, diary := startScribe(t, func(o *Options) {
				o.Clock = clock
				if xml == "killed" {
					// The lingering process keeps the pipes open longer than the default watchdog.
					o.Watchdog = 20 * time.Second
				}
			})
			after := func(passed time.Duration) { clock.SetTime(clock.Now().Add(passed)) }
			tried := func() int {
				text, err := os.ReadFile(diary)
				if err != nil {
					t.Fatal(err)
				}
				return strings.Count(string(text), xml)
			}
			refused := func(status, wantTried int, wantRetry time.Duration) {
				t.Helper()
				_, err := s.Define(t.Context(), xml)
				var problem *defaulting.Problem
				if !errors.As(err, &problem) || problem.Status != status {
					t.Fatalf("got %v, want status %d", err, status)
				}
				if status == http.StatusServiceUnavailable && problem.RetryAfter != wantRetry {
					t.Errorf("to be asked again after %s, want %s", problem.RetryAfter, wantRetry)
				}
				if got := tried(); got != wantTried {
					t.Errorf("workers were asked %d times, want %d", got, wantTried)
				}
			}
			refused(wantStatus, 2, time.Minute)
			refused(http.StatusServiceUnavailable, 2, time.Minute)
			after(59 * time.Second)
			refused(http.StatusServiceUnavailable, 2, time.Second)
			after(time.Second)
			// One failure suffices for a domain on probation.
			refused(wantStatus, 3, 2*time.Minute)
			after(time.Minute)
			refused(http.StatusServiceUnavailable, 3, time.Minute)
			after(time.Minute)
			if err := os.WriteFile(diary+curedSuffix, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if described, err := s.Define(t.Context(), xml); err != nil || described != "defined "+xml {
				t.Errorf("what ended the worker is gone: %q, %v", described, err)
			}
			if s.Quarantined() != 0 {
				t.Error("it is in quarantine still")
			}
		})
	}
}

func TestOnlyOneIsOnProbationAtATime(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	q := newQuarantine(clock)
	want := func(what decision) {
		t.Helper()
		if got, _ := q.decide("x"); got != what {
			t.Errorf("verdict %d, want %d", got, what)
		}
	}
	want(free)
	q.add("x")
	want(held)
	clock.SetTime(clock.Now().Add(firstQuarantine))
	want(probation)
	want(held)
	q.postpone("x")
	want(probation)
	q.release("x")
	want(free)
	for range 10 {
		q.add("x")
	}
	if period := q.add("x"); period != maxQuarantine {
		t.Errorf("held for %s, want at most %s", period, maxQuarantine)
	}
}

func TestAMachineThatHangsIsTriedOnAnotherWorkerBeforeItIsGivenUp(t *testing.T) {
	s, diary := startScribe(t, nil)

	_, err := s.Define(t.Context(), "hang")
	var problem *defaulting.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusGatewayTimeout {
		t.Errorf("got %v, want 504", err)
	}
	if text, err := os.ReadFile(diary); err != nil || string(text) != "hang\nhang\n" {
		t.Errorf("workers were asked for %q, %v; want it twice", text, err)
	}
	if s.Quarantined() != 1 {
		t.Errorf("%d machines are in quarantine", s.Quarantined())
	}
	described, err := s.Define(t.Context(), "good")
	if err != nil || described != "defined good" {
		t.Errorf("another machine: %q, %v", described, err)
	}
	if _, err = s.Define(t.Context(), "hang"); !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable {
		t.Errorf("the third time: got %v, want 503", err)
	}
	if got := s.Restarts(); got != 2 {
		t.Errorf("%d workers were replaced, want 2", got)
	}
}

func TestAWorkerThatIsStartingDoesNotKeepTheSupervisor(t *testing.T) {
	s := New(Options{Command: Command{Path: "/bin/sh", Args: []string{"-c", "sleep 60"}}, Log: logr.Discard()})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	time.AfterFunc(100*time.Millisecond, stop)
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a worker that nobody needs")
	}
}
