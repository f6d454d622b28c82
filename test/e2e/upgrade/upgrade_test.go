package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/release"
	"github.com/vmstencil/stencil/test/stencilctl"
	"github.com/vmstencil/stencil/test/traffic"
)

// box is a template that ada may process: it is in her namespace.
var box = gen.Manifest(gen.Template("box", gen.InNamespace(free), gen.Declares("NAME", "required: true"), gen.Renders("${NAME}", gen.SmallSpec())))

// binary is stencilctl.
var binary string

// TestUpgradeAndRollback upgrades with helm and goes back while VMs are written and templates processed. No request may be lost, and what is stored
// stays as it is.
func TestUpgradeAndRollback(t *testing.T) {
	harness.Must(t, stencil.Plane, nil, box, "apply", "-f", "-")
	running(t, "the older release", older)
	for _, namespace := range []string{free, governed} {
		harness.Must(t, stencil.Plane, ada, web, "--namespace="+namespace, "create", "-f", "-")
	}
	// KubeVirt writes what it adds to a new VM.
	harness.Eventually(t, "the stored VMs have a status", func() error {
		for namespace := range stored(t) {
			if harness.Must(t, stencil.Plane, nil, "", "--namespace="+namespace, "get", "vm", "web-1", "-o", "jsonpath={.status.printableStatus}").Stdout == "" {
				return errors.New(namespace)
			}
		}
		return nil
	})
	before := stored(t)

	writes, err := traffic.Start(t.Context(), traffic.Options{Plane: stencil.Plane, Template: "golden/fedora", Rate: 5})
	if err != nil {
		t.Fatal(err)
	}
	reads := startProcessing(t)
	written := func() {
		t.Helper()
		if err := writes.AwaitWritten(t.Context(), 8); err != nil {
			t.Fatal(err)
		}
	}
	written()

	upgraded := stencil.Options()
	upgraded.Chart = newer.ChartAddress
	if err := install.Chart(t.Context(), stencil.Plane, upgraded); err != nil {
		t.Fatal(err)
	}
	// The new definitions, roles and policies, with the old servers.
	written()
	if err := stencil.Replace(newer.Container); err != nil {
		t.Fatal(err)
	}
	written()
	running(t, "the newer release", newer)
	unchanged(t, before)
	// stencil-apiserver of the older release ends connections while a request can be on its way.
	_, problems := reads.soFar()
	delete(problems, "the server is currently unable to handle the request")
	if len(problems) > 0 {
		t.Errorf("templates were not processed during the upgrade: %v", problems)
	}

	migrated, err := stencilctl.Command{Binary: binary, Kubeconfig: stencil.Plane.Kubeconfig(), Line: "install migrate-storage"}.Run(t.Context())
	if err != nil || migrated.Code != 0 {
		t.Errorf("migrating the storage: %v, %+v", err, migrated)
	}
	unchanged(t, before)

	back, err := stencil.Plane.Helm(t.Context(), "rollback", install.Release, "1", "--namespace", install.Namespace)
	if err != nil || back.Code != 0 {
		t.Fatal(err, back.Stderr)
	}
	written()
	if err := stencil.Replace(older.Container); err != nil {
		t.Fatal(err)
	}
	written()
	running(t, "the older release again", older)
	unchanged(t, before)

	report, err := writes.Stop()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", report)
	if lost := len(report.Writes) - report.Count(traffic.Written); lost > 0 || report.NotSent > 0 {
		t.Errorf("%d of %d writes failed, and %d were not sent", lost, len(report.Writes), report.NotSent)
	}
	reads.cancel()
	reads.work.Wait()
	processed, problems := reads.soFar()
	t.Logf("%d templates processed", processed)
	if processed < 20 || len(problems) > 0 {
		t.Errorf("%d templates were processed, and these failed: %v", processed, problems)
	}
}

// web is a VM from a template.
var web = gen.Manifest(gen.VM("web-1", gen.FromTemplate("golden/fedora")))

// stored returns the VMs by namespace, without what changes with each write.
func stored(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, namespace := range []string{free, governed} {
		var vm map[string]any
		text := harness.Must(t, stencil.Plane, nil, "", "--namespace="+namespace, "get", "vm", "web-1", "-o", "json").Stdout
		if err := json.Unmarshal([]byte(text), &vm); err != nil {
			t.Fatal(err)
		}
		all[namespace] = vm
	}
	return all
}

// unchanged checks that an upgrade has written no stored VM, that applying its manifest again changes nothing, and that what was denied still is.
func unchanged(t *testing.T, before map[string]any) {
	t.Helper()
	if diff := cmp.Diff(before, stored(t)); diff != "" {
		t.Errorf("the stored VMs have changed (-before +now):\n%s", diff)
	}
	denied := harness.Kubectl(t, stencil.Plane, ada, gen.Manifest(gen.VM("web-2", gen.FromTemplate("golden/fedora"), gen.Parameter("INSTANCETYPE", "u1.large"))), "--namespace="+governed, "create", "-f", "-")
	if denied.Code == 0 || !strings.Contains(denied.Stderr, "INSTANCETYPE") {
		t.Errorf("a value that is not approved: exit code %d, %s", denied.Code, denied.Stderr)
	}
	for _, resource := range []string{"virtualmachinetemplates", "virtualmachinetemplaterequests"} {
		versions := harness.Must(t, stencil.Plane, nil, "", "get", "crd", resource+".template.kubevirt.io", "-o", "jsonpath={.status.storedVersions}").Stdout
		if versions != `["v1beta1"]` {
			t.Errorf("%s are stored as %s", resource, versions)
		}
	}
}

// running checks which release runs: the image of the manager, and the chart.
func running(t *testing.T, what string, want *release.Release) {
	t.Helper()
	if logs := stencil.Manager.Logs(); !strings.Contains(logs, want.Version) {
		t.Errorf("%s does not run:\n%s", what, logs)
	}
	listed, err := stencil.Plane.Helm(t.Context(), "list", "--namespace", install.Namespace, "--output", "json")
	if err != nil || !strings.Contains(listed.Stdout, `"chart":"stencil-`+want.Tag()+`"`) {
		t.Errorf("%s is not installed: %v, %s%s", what, err, listed.Stdout, listed.Stderr)
	}
}

// processing is a user who processes a template all the time.
type processing struct {
	cancel context.CancelFunc
	work   sync.WaitGroup

	mutex    sync.Mutex
	count    int
	problems map[string]int
}

func startProcessing(t *testing.T) *processing {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(ada.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := &processing{cancel: cancel, problems: map[string]int{}}
	p.work.Go(func() {
		for number := 0; ; number++ {
			body := fmt.Sprintf(`{"parameters": {"NAME": "box-%d"}}`, number)
			text, err := client.RESTClient().Post().AbsPath("/apis/subresources.template.kubevirt.io/v1beta1/namespaces/"+free+"/virtualmachinetemplates/box/process").
				SetHeader("Content-Type", "application/json").Body([]byte(body)).DoRaw(ctx)
			if ctx.Err() != nil {
				return
			}
			if err == nil && !strings.Contains(string(text), fmt.Sprintf(`"box-%d"`, number)) {
				err = errors.New(string(text))
			}
			p.note(err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return p
}

func (p *processing) note(err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err != nil {
		p.problems[err.Error()]++
	} else {
		p.count++
	}
}

// soFar returns how many templates were processed, and how often each error has occurred since it was called last.
func (p *processing) soFar() (int, map[string]int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	problems := p.problems
	p.problems = map[string]int{}
	return p.count, problems
}
