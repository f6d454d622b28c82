package oracle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	kvlog "kubevirt.io/client-go/log"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/libvirt"
	"github.com/vmstencil/stencil/defaulting/supervisor"
	"github.com/vmstencil/stencil/defaulting/worker"
)

const (
	// roleVariable makes the test binary the process that calls libvirt.
	roleVariable = "STENCIL_TEST_ROLE"
	// nobody is the ID of the user of that name, who runs that process when the tests run as root. As root, libvirt would query QEMU's capabilities for every VM.
	nobody = 65532
)

// Main is the TestMain of a release's tests.
func Main(m *testing.M) {
	if root := os.Getenv(roleVariable); root != "" {
		role := work
		if os.Getenv(guestVariable) != "" {
			role = runGuest
		}
		if err := errors.Join(becomeNobody(root), role(root)); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// KubeVirt logs a lot about each VM.
	if err := kvlog.Log.SetVerbosityLevel(0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	kvlog.Log.SetIOWriter(discard{})
	os.Exit(m.Run())
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func becomeNobody(root string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := errors.Join(os.Chown(root, nobody, nobody), syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
		return fmt.Errorf("becoming user %d: %w", nobody, err)
	}
	return nil
}

// work runs the worker process of the test's supervisor.
func work(root string) error {
	session, err := libvirt.Open(root, false)
	if err != nil {
		return err
	}
	facts, err := session.Facts()
	if err != nil {
		return err
	}
	return errors.Join(worker.Serve(context.Background(), os.Stdin, os.Stdout, session, facts, 2), session.Close())
}

// stateFolder returns a folder for libvirt, in memory where possible.
func stateFolder(t *testing.T) string {
	t.Helper()
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = os.TempDir()
	}
	root, err := os.MkdirTemp(parent, "stencil-oracle-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	return root
}

// environment is that of a process that calls libvirt.
func environment(root string) []string {
	return []string{roleVariable + "=" + root, "HOME=" + root, "XDG_CACHE_HOME=" + root, "XDG_RUNTIME_DIR=" + root, "PATH=" + os.Getenv("PATH")}
}

// startLibvirt runs libvirt until the test ends.
func startLibvirt(t *testing.T) *supervisor.Supervisor {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := supervisor.New(supervisor.Options{
		Command: supervisor.Command{Path: self, Env: environment(stateFolder(t))},
		Log:     logr.Discard(),
		Reap:    true,
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("supervisor: %v", err)
		}
	})
	deadline := time.Now().Add(30 * time.Second)
	for {
		if _, _, ready := s.Versions(); ready {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("libvirt does not start; %s", libvirt.Install)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
