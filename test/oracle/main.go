package oracle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	kvlog "kubevirt.io/client-go/log"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/guest"
	"github.com/vmstencil/stencil/cmd/stencil-defaulter/libvirt"
	"github.com/vmstencil/stencil/defaulting/supervisor"
	"github.com/vmstencil/stencil/defaulting/worker"
)

// roleVariable makes the test binary the process that calls libvirt.
const roleVariable = "STENCIL_TEST_ROLE"

// Main is the TestMain of a release's tests.
func Main(m *testing.M) {
	guest.Main()
	if root := os.Getenv(roleVariable); root != "" {
		if err := errors.Join(guest.DropPrivileges(root), work(root)); err != nil {
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

// startLibvirt runs libvirt until the test ends.
func startLibvirt(t *testing.T) *supervisor.Supervisor {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := guest.Folder("stencil-oracle-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	s := supervisor.New(supervisor.Options{
		Command: supervisor.Command{Path: self, Env: append(guest.Environment(root), roleVariable+"="+root)},
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
