package controlplane

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/deadline"
)

// shared is the plane of every test here that does not need one of its own.
var shared = Shared{
	Options: Options{KubeVirt: true, ControllerManager: true, CDI: true},
}

// abandonVariable makes the test binary the process of TestNothingOutlivesAKilledOwner instead of running tests.
const abandonVariable = "STENCIL_TEST_ABANDON_A_PLANE"

func TestMain(m *testing.M) {
	if os.Getenv(abandonVariable) != "" {
		if err := abandon(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(shared.Run(m))
}

// eventually polls until there is no error, or fails the test. The parameter what completes the sentence "waiting until …".
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	if err := deadline.Wait(context.WithoutCancel(t.Context()), what, time.Minute, func(context.Context) error { return ask() }); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl on a plane and fails the test when it cannot be run at all.
func kubectl(t *testing.T, plane *Plane, as *User, stdin string, arguments ...string) Result {
	t.Helper()
	result, err := plane.Kubectl(t.Context(), as, stdin, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// namespace creates a namespace for one test.
func namespace(t *testing.T, plane *Plane) string {
	t.Helper()
	name, err := plane.Namespace(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return name
}
