// Package goldenimages_test checks that boot images are kept fresh, with CDI's and KubeVirt's own controllers and admission, a real registry on
// loopback whose tags move, and simulated storage and nodes: no bytes of a disk are copied.
package goldenimages_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	loopback "github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/platform"
)

var (
	stage *platform.Platform
	// owner has the role edit in the namespaces of the tests.
	owner *controlplane.User
	// registry is a registry, and images its address.
	registry *loopback.Registry
	images   string
)

func TestMain(m *testing.M) {
	harness.Main(m, func(ctx context.Context) (func() error, error) {
		registry = loopback.Start()
		images = registry.Address()
		var err error
		stage, err = platform.Start(ctx, platform.Options{
			KubeVirt: true, ControllerManager: true, CDI: true, Log: os.Stderr,
			Values: map[string]any{"readiness": map[string]any{"dryRun": true}, "goldenImages": map[string]any{"namespaces": []any{"*"}, "allowedNetworks": []any{"127.0.0.0/8"}}},
		})
		stop := func() error {
			registry.Close()
			if stage == nil {
				return nil
			}
			return stage.Stop()
		}
		if err == nil {
			owner, err = gen.User(ctx, stage.Plane, "owner")
		}
		return stop, err
	})
}

// namespace makes a namespace of the owner.
func namespace(t *testing.T) string {
	t.Helper()
	made := harness.Namespace(t, stage.Plane, "golden")
	harness.Bind(t, stage.Plane, owner, made, "edit")
	return made
}

// push pushes a new image with these tags, and returns its digest.
func push(t *testing.T, repository string, tags ...string) string {
	t.Helper()
	digest, err := registry.Push(repository, tags...)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// pushIndex pushes an image for several architectures, and returns the digests of each, and that of the index under "".
func pushIndex(t *testing.T, repository, tag string, architectures ...string) map[string]string {
	t.Helper()
	digests, err := registry.PushIndex(repository, tag, architectures...)
	if err != nil {
		t.Fatal(err)
	}
	return digests
}

// manifest returns a GoldenImage of an image of the registry, with these fields of its spec in YAML flow style.
func manifest(named, registry, fields string) string {
	return fmt.Sprintf(`{apiVersion: stencil.kubevirt.io/v1alpha1, kind: GoldenImage, metadata: {name: %s},
  spec: {source: {registry: {url: %s/%s}}, storage: {size: 1Gi}%s}}`, named, images, registry, fields)
}

// kubectl runs kubectl as the owner in a namespace.
func kubectl(t *testing.T, namespace, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stage.Plane, owner, stdin, harness.In(namespace, arguments)...)
}

// must is kubectl that has to succeed; it returns what it prints.
func must(t *testing.T, namespace, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, stage.Plane, owner, stdin, harness.In(namespace, arguments)...).Stdout
}

// asAdmin is must as the administrator.
func asAdmin(t *testing.T, namespace, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, stage.Plane, nil, stdin, harness.In(namespace, arguments)...).Stdout
}

// get returns a GoldenImage.
func get(t *testing.T, namespace, named string) *v1alpha1.GoldenImage {
	t.Helper()
	image := &v1alpha1.GoldenImage{}
	if err := json.Unmarshal([]byte(must(t, namespace, "", "get", "gimg", named, "-o", "json")), image); err != nil {
		t.Fatal(err)
	}
	return image
}

// condition returns a condition as STATUS Reason: message.
func condition(image *v1alpha1.GoldenImage, kind string) string {
	for _, one := range image.Status.Conditions {
		if one.Type == kind {
			return fmt.Sprintf("%s %s: %s", one.Status, one.Reason, one.Message)
		}
	}
	return ""
}

// becomes waits until a condition of a GoldenImage begins with a text, and returns the image.
func becomes(t *testing.T, namespace, named, kind, want string) *v1alpha1.GoldenImage {
	t.Helper()
	var image *v1alpha1.GoldenImage
	eventually(t, fmt.Sprintf("the condition %s of %s is %q", kind, named, want), func() error {
		image = get(t, namespace, named)
		if got := condition(image, kind); !strings.HasPrefix(got, want) {
			status, _ := json.MarshalIndent(image.Status, "", " ")
			return fmt.Errorf("%s\n%s", got, status)
		}
		return nil
	})
	return image
}

// standsFor waits until a DataSource is ready and stands for the volume of a digest.
func standsFor(t *testing.T, namespace, dataSource, digest string) {
	t.Helper()
	eventually(t, fmt.Sprintf("DataSource %s stands for %s", dataSource, digest), func() error {
		const path = `{.metadata.annotations.stencil\.kubevirt\.io/digest} {.status.conditions[?(@.type=="Ready")].status} {.spec.source}`
		got := kubectl(t, namespace, "", "get", "datasource", dataSource, "-o", "jsonpath="+path)
		if !strings.HasPrefix(got.Stdout, digest+" True ") || !strings.Contains(got.Stdout, volume("", digest)) {
			all := kubectl(t, namespace, "", "get", "gimg,datasource,dataimportcron,dv,pvc", "-o", "yaml")
			return errors.New(got.Stdout + got.Stderr + all.Stdout)
		}
		return nil
	})
}

// refresh lets the source be checked now.
func refresh(t *testing.T, namespace, named, value string) {
	t.Helper()
	must(t, namespace, "", "annotate", "gimg", named, "stencil.kubevirt.io/refresh="+value, "--overwrite")
}

func patch(t *testing.T, namespace, named, spec string) {
	t.Helper()
	must(t, namespace, "", "patch", "gimg", named, "--type=merge", "-p", `{"spec": `+spec+`}`)
}

// nothingIsLeft waits until a namespace has no objects of CDI, and no volumes.
func nothingIsLeft(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, "nothing is left", func() error {
		if got := asAdmin(t, namespace, "", "get", "datasource,dataimportcron,dv,pvc,volumesnapshot", "-o", "name"); got != "" {
			return errors.New(got)
		}
		return nil
	})
}

// eventually polls until there is no error. The parameter what completes the sentence "waiting until …".
func eventually(t *testing.T, what string, poll func() error) {
	t.Helper()
	if err := deadline.Wait(context.WithoutCancel(t.Context()), what, harness.Limit, func(context.Context) error { return poll() }); err != nil {
		t.Fatalf("%v\n%s", err, stage.Manager.Logs())
	}
}
