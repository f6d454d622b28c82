// Package readiness_test checks when templates become ready and unready, with KubeVirt's and CDI's own controllers and admission, and simulated
// storage.
package readiness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
)

// stage is a plane with Stencil.
type stage struct {
	*platform.Platform
	options platform.Options
	// owner has the role edit in the namespaces of the tests.
	owner *controlplane.User

	once sync.Once
	err  error
}

// full is for the tests that need nothing of their own.
var full = &stage{options: platform.Options{
	KubeVirt: true, ControllerManager: true, CDI: true, AuditPolicy: objectRequests, Log: os.Stderr,
	Values: map[string]any{"readiness": map[string]any{"dryRun": true, "populators": []any{map[string]any{"apiGroup": "example.org", "version": "v1", "kind": "Milk", "resource": "milks"}}}, "objects": map[string]any{"lentResources": []any{"configmaps"}}},
}}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := full.end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// on starts the stage with the first test that needs it.
func (s *stage) on(t *testing.T) *stage {
	t.Helper()
	// It serves later tests too, so the life of this one must not bound it.
	s.once.Do(func() {
		if s.Platform, s.err = platform.Start(context.Background(), s.options); s.err == nil {
			s.owner, s.err = gen.User(context.Background(), s.Plane, "owner")
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s
}

func (s *stage) end() error {
	if s.Platform == nil {
		return nil
	}
	return s.Stop()
}

// kubectl runs kubectl, as the administrator when user is nil.
func (s *stage) kubectl(t *testing.T, user *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, s.Plane, user, stdin, arguments...)
}

// must runs kubectl as the administrator, and returns what it prints.
func (s *stage) must(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, s.Plane, nil, stdin, arguments...).Stdout
}

// apply stores the objects of a manifest, in a namespace of the owner.
func (s *stage) apply(t *testing.T, namespace, manifest string) {
	t.Helper()
	harness.Must(t, s.Plane, s.owner, manifest, "apply", "-n", namespace, "-f", "-")
}

// snapshot stores a VolumeSnapshot, as the administrator: no role of users permits it.
func (s *stage) snapshot(t *testing.T, namespace, manifest string) {
	t.Helper()
	s.must(t, manifest, "apply", "-n", namespace, "-f", "-")
}

// namespace makes a namespace of the owner.
func (s *stage) namespace(t *testing.T) string {
	t.Helper()
	name := harness.Namespace(t, s.Plane, "ready")
	harness.Bind(t, s.Plane, s.owner, name, "edit")
	return name
}

// becomes waits until the result of a JSONPath in a template contains all texts.
func (s *stage) becomes(t *testing.T, namespace, name, path string, want ...string) {
	t.Helper()
	s.eventually(t, fmt.Sprintf("template %s has %q at %s", name, want, path), func() error {
		got := s.kubectl(t, s.owner, "", "get", "virtualmachinetemplate", name, "-n", namespace, "-o", "jsonpath={"+path+"}")
		for _, text := range want {
			if !strings.Contains(got.Stdout, text) {
				all := s.kubectl(t, s.owner, "", "get", "virtualmachinetemplate", name, "-n", namespace, "-o", "jsonpath={.status}")
				return errors.New(got.Stdout + got.Stderr + " of " + all.Stdout)
			}
		}
		return nil
	})
}

// condition is the JSONPath of a condition.
func condition(kind string) string { return `.status.conditions[?(@.type=="` + kind + `")]` }

// eventually polls until there is no error. The parameter what completes the sentence "waiting until …".
func (s *stage) eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	if err := deadline.Wait(context.WithoutCancel(t.Context()), what, harness.Limit, func(context.Context) error { return ask() }); err != nil {
		t.Fatalf("%v\n%s", err, s.Manager.Logs())
	}
}

// template returns the manifest of a template with a root disk that is filled from a source or a sourceRef, and with these fields of its VMs.
func template(name, from string, modifiers ...gen.Modifier) string {
	return withoutMemory(name, from, append([]gen.Modifier{gen.Memory("1Gi")}, modifiers...)...)
}

// withoutMemory is template for VMs that have their memory from an instance type.
func withoutMemory(name, from string, modifiers ...gen.Modifier) string {
	common := []gen.Modifier{gen.LeastSpec(), gen.DataVolumeDisk("root", "${NAME}-root", from)}
	return gen.Manifest(gen.Template(name, gen.Declares("NAME", "{required: true, generate: expression, from: 'vm-[a-z0-9]{5}'}"),
		gen.Renders("${NAME}", append(common, modifiers...)...)))
}

// image is the manifest of a DataVolume that is imported, and dataSource of a DataSource that stands for its claim.
func image(name string) string {
	return gen.Manifest(gen.DataVolume(name, "{http: {url: 'http://images.example/x.qcow2'}}"))
}

func dataSource(namespace, name, claim string) string {
	return fmt.Sprintf(`{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": %q},
		"spec": {"source": {"pvc": {"namespace": %q, "name": %q}}}}`, name, namespace, claim)
}
