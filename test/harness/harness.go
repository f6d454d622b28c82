// Package harness contains what tests of a running cluster have in common.
package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/product"
)

// Limit bounds each operation of a test. An overloaded host stretches it, see package deadline.
const Limit = time.Minute

// Main runs the tests of a package with the environment that start has started, and exits. start returns a function that stops it, which may be nil.
// The context ends after that.
func Main(m *testing.M, start func(ctx context.Context) (stop func() error, err error)) {
	os.Exit(run(m, start))
}

func run(m *testing.M, start func(ctx context.Context) (func() error, error)) (code int) {
	if _, err := product.Digest(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop, err := start(ctx)
	if stop != nil {
		defer func() {
			if err := stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Kubectl runs kubectl as a user, or as the administrator when as is nil. Cleanups may call it: it does not end with the test's context.
func Kubectl(t *testing.T, plane *controlplane.Plane, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	result, err := plane.Kubectl(context.WithoutCancel(t.Context()), as, stdin, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// WithoutReadiness removes the warnings that a template is not ready from what kubectl prints: the images of the examples do not exist on every plane.
func WithoutReadiness(printed string) string { return unready.ReplaceAllString(printed, "") }

var unready = regexp.MustCompile(`(?m)^Warning: template \S+ is not ready \(.*\n`)

// In adds a namespace to kubectl arguments that do not contain one.
func In(namespace string, arguments []string) []string {
	if slices.ContainsFunc(arguments, func(argument string) bool { return strings.HasPrefix(argument, "--namespace=") }) {
		return arguments
	}
	return append([]string{"--namespace=" + namespace}, arguments...)
}

// Must runs Kubectl and requires success.
func Must(t *testing.T, plane *controlplane.Plane, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	result := Kubectl(t, plane, as, stdin, arguments...)
	if result.Code != 0 {
		t.Fatalf("kubectl %s: exit %d\n%s%s", strings.Join(arguments, " "), result.Code, result.Stdout, result.Stderr)
	}
	return result
}

// Apply stores the objects of files and a manifest, while a cluster is prepared. "-" is the manifest. Packages that share a platform may apply
// the same files at the same time.
func Apply(ctx context.Context, plane *controlplane.Plane, manifest string, files ...string) error {
	arguments := []string{"apply"}
	for _, file := range files {
		arguments = append(arguments, "-f", file)
	}
	var result controlplane.Result
	for range applyAttempts {
		var err error
		if result, err = plane.Kubectl(ctx, nil, manifest, arguments...); err != nil || result.Code == 0 {
			return err
		}
		if !raced(result.Stderr) {
			break
		}
	}
	return fmt.Errorf("kubectl %s: %s", strings.Join(arguments, " "), result.Stderr)
}

// applyAttempts bounds how often Apply meets another package on the shared platform that stores the same objects at the same time.
const applyAttempts = 10

// raced reports whether kubectl apply failed only because another writer created the objects after it had read them.
func raced(stderr string) bool {
	failed := false
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "Error from server") {
			continue
		}
		if !strings.HasPrefix(line, "Error from server (AlreadyExists)") && !strings.HasPrefix(line, "Error from server (Conflict)") {
			return false
		}
		failed = true
	}
	return failed
}

// TakeAway deletes a CustomResourceDefinition with all its objects, and returns the manifest that brings the definition back.
func TakeAway(t *testing.T, plane *controlplane.Plane, definition string) (manifest string) {
	t.Helper()
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON([]byte(Must(t, plane, nil, "", "get", "customresourcedefinition", definition, "-o", "json").Stdout)); err != nil {
		t.Fatal(err)
	}
	object.SetResourceVersion("")
	object.SetUID("")
	delete(object.Object, "status")
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	Must(t, plane, nil, "", "delete", "customresourcedefinition", definition, "--timeout=60s")
	return string(text)
}

// Discard deletes VirtualMachines when the test ends and waits until they no longer exist, so that the next test can use their names.
func Discard(t *testing.T, plane *controlplane.Plane, namespace string, names ...string) {
	t.Helper()
	t.Cleanup(func() {
		Must(t, plane, nil, "", append([]string{"--namespace=" + namespace, "delete", "virtualmachine", "--ignore-not-found", "--wait=true"}, names...)...)
	})
}

// Eventually polls until there is no complaint, and fails the test with the last one at the limit. The parameter what completes the sentence "waiting
// until …". Cleanups may call it: it does not end with the test's context.
func Eventually(t *testing.T, what string, complaint func() error) {
	t.Helper()
	Within(t, what, Limit, complaint)
}

// Within is Eventually with a limit of its own.
func Within(t *testing.T, what string, limit time.Duration, complaint func() error) {
	t.Helper()
	err := deadline.Wait(context.WithoutCancel(t.Context()), what, limit, func(context.Context) error { return complaint() })
	if err != nil {
		t.Fatal(err)
	}
}

// Complaint returns an error with that text, nil if it is empty.
func Complaint(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
