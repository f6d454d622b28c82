package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/guest"
	"github.com/vmstencil/stencil/cmd/stencil-defaulter/libvirt"
	"github.com/vmstencil/stencil/defaulting/supervisor"
)

// roleVariable makes the test binary a worker, or the whole program.
const roleVariable = "STENCIL_TEST_ROLE"

func TestMain(m *testing.M) {
	guest.Main()
	if os.Getenv(roleVariable) == workerCommand {
		if err := runWorker(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, withFaults); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// nobody is the ID of the user of that name, who runs libvirt when the tests run as root.
const nobody = "65532"

// stateFolder returns a folder for libvirt, which is removed at the end of the test.
func stateFolder(t testing.TB) string {
	t.Helper()
	folder, err := guest.Folder("stencil-defaulter-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// workerEnvironment returns the environment of a worker that stores its state in the folder.
func workerEnvironment(folder string) []string {
	return append(guest.Environment(folder), roleVariable+"="+workerCommand, "GOTRACEBACK=none")
}

// startSupervisor runs a worker of the test binary until the test ends.
func startSupervisor(t testing.TB, change func(*supervisor.Options)) *supervisor.Supervisor {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := stateFolder(t)
	options := supervisor.Options{
		Command: supervisor.Command{
			Path: self,
			Args: []string{"--root", folder, "--user", nobody},
			Env:  workerEnvironment(folder),
		},
		Log:  logr.Discard(),
		Reap: true,
	}
	if change != nil {
		change(&options)
	}
	s := supervisor.New(options)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Run(ctx); err != nil {
			t.Errorf("supervisor: %v", err)
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	deadline := time.Now().Add(30 * time.Second)
	for {
		if _, _, ready := s.Versions(); ready {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("libvirt does not start. %s. Its folder was %s", libvirt.Install, filepath.Base(folder))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestNothingIsLeftAtTheEnd also counts children that have ended and were not reaped.
func TestNothingIsLeftAtTheEnd(t *testing.T) {
	t.Run("while it runs", func(t *testing.T) {
		startSupervisor(t, nil)
		if len(childrenOf(t, os.Getpid())) == 0 {
			t.Error("there is no worker")
		}
	})
	if left := childrenOf(t, os.Getpid()); len(left) > 0 {
		t.Errorf("children %v are left", left)
	}
}
