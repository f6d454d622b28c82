package controlplane

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is one plane for all tests of a package, started by the first test that needs it:
//
//	var shared = controlplane.Shared{Options: controlplane.Options{KubeVirt: true}}
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		plane := shared.Plane(t)
//		…
//	}
type Shared struct {
	Options Options
	// Prepare, when set, runs once after the start, and installs what every test of the package needs.
	Prepare func(ctx context.Context, plane *Plane) error

	once  sync.Once
	plane *Plane
	err   error
}

// Run runs the tests, stops the plane if one was started, and returns the exit code.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if s.plane == nil {
		return code
	}
	if err := s.plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
		return 1
	}
	return code
}

// StartFor starts a plane for one test, and stops it when the test has ended.
func StartFor(t testing.TB, options Options) *Plane {
	t.Helper()
	plane, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	return plane
}

// Plane returns the package's plane. When it cannot be started, every test that calls Plane fails with the same reason.
func (s *Shared) Plane(t testing.TB) *Plane {
	t.Helper()
	s.once.Do(func() {
		// The plane serves later tests too, so the life of this one must not bound it.
		ctx := context.Background()
		if s.plane, s.err = Start(ctx, s.Options); s.err == nil && s.Prepare != nil {
			s.err = s.Prepare(ctx, s.plane)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.plane
}
