// Package storage_test migrates templates and their requests, which etcd has in an older version of their API, to the current one, with stencilctl.
package storage_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/stencilctl"
)

const (
	templates = "virtualmachinetemplates"
	requests  = "virtualmachinetemplaterequests"
	group     = "template.kubevirt.io"
	older     = "v1alpha1"
	current   = "v1beta1"

	// count is how many templates there are.
	count = 1000
)

var (
	stencil *platform.Platform
	binary  string
	// migrator has the permissions that the command's help names, and no others.
	migrator *controlplane.User
)

func TestMain(m *testing.M) {
	harness.Main(m, func(ctx context.Context) (stop func() error, err error) {
		if binary, err = stencilctl.Binary(ctx); err != nil {
			return nil, err
		}
		// Stencil's policies and webhooks evaluate what the command writes.
		if stencil, err = platform.Start(ctx, platform.Options{}); err != nil {
			return nil, err
		}
		if migrator, err = stencil.Plane.User("migrator"); err != nil {
			return stencil.Stop, err
		}
		return stencil.Stop, stencil.Plane.Grant(ctx, migrator, "",
			rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get"}},
			rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions/status"}, Verbs: []string{"patch"}},
			rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{templates, requests}, Verbs: []string{"list", "get", "patch"}},
		)
	})
}

// storeIn makes a version that in which the API server writes, as the definition of an older release does.
func storeIn(t *testing.T, version string) {
	t.Helper()
	for _, resource := range []string{templates, requests} {
		var definition struct {
			Spec struct {
				Versions []struct{ Name string } `json:"versions"`
			} `json:"spec"`
		}
		name := resource + "." + group
		text := harness.Must(t, stencil.Plane, nil, "", "get", "crd", name, "-o", "json").Stdout
		if err := json.Unmarshal([]byte(text), &definition); err != nil {
			t.Fatal(err)
		}
		var patch []map[string]any
		for i, each := range definition.Spec.Versions {
			patch = append(patch, map[string]any{"op": "replace", "path": fmt.Sprintf("/spec/versions/%d/storage", i), "value": each.Name == version})
		}
		content, err := json.Marshal(patch)
		if err != nil {
			t.Fatal(err)
		}
		harness.Must(t, stencil.Plane, nil, "", "patch", "crd", name, "--type=json", "-p", string(content))
	}
}

// storedVersions returns what the definitions say.
func storedVersions(t *testing.T) string {
	t.Helper()
	return harness.Must(t, stencil.Plane, nil, "", "get", "crd", templates+"."+group, requests+"."+group, "-o", "jsonpath={.items[*].status.storedVersions}").Stdout
}

// inEtcd counts the stored objects by version.
func inEtcd(t *testing.T, resource string) map[string]int {
	t.Helper()
	stored, err := stencil.Plane.Stored(t.Context(), "/registry/"+group+"/"+resource+"/")
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]int{}
	for key, content := range stored {
		var object struct {
			APIVersion string `json:"apiVersion"`
		}
		if err := json.Unmarshal(content, &object); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		versions[strings.TrimPrefix(object.APIVersion, group+"/")]++
	}
	return versions
}

func migrate(t *testing.T, flags ...string) stencilctl.Result {
	t.Helper()
	result, err := stencilctl.Command{Binary: binary, Kubeconfig: migrator.Kubeconfig, Line: "install migrate-storage", Arguments: flags}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestObjectsAreStoredInTheCurrentVersion(t *testing.T) {
	storeIn(t, older)
	config := stencil.Plane.AdminConfig()
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	create := func(resource, namespace, name string, fields map[string]any) error {
		object := map[string]any{"apiVersion": group + "/" + current, "metadata": map[string]any{"namespace": namespace, "name": name}}
		maps.Copy(object, fields)
		_, err := client.Resource(schema.GroupVersionResource{Group: group, Version: current, Resource: resource}).Namespace(namespace).
			Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
		return err
	}
	template := func(i int) error {
		return create(templates, []string{"default", "kube-public"}[i%2], fmt.Sprintf("box-%d", i), map[string]any{"kind": "VirtualMachineTemplate", "spec": map[string]any{
			"virtualMachine": map[string]any{"spec": map[string]any{"runStrategy": "Halted", "template": map[string]any{"spec": map[string]any{"domain": map[string]any{"devices": map[string]any{}}}}}},
		}})
	}
	// The API server writes in the older version a moment after the definition was changed.
	made := 0
	harness.Eventually(t, "a template is stored in the older version", func() error {
		if err := template(made); err != nil {
			return err
		}
		made++
		if found := inEtcd(t, templates); found[older] == 0 {
			return fmt.Errorf("stored are %v", found)
		}
		return nil
	})
	var work sync.WaitGroup
	numbers := make(chan int)
	for range 8 {
		work.Go(func() {
			for i := range numbers {
				if err := template(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := made; i < count; i++ {
		numbers <- i
	}
	close(numbers)
	work.Wait()
	if err := create(requests, "default", "web", map[string]any{
		"kind": "VirtualMachineTemplateRequest", "spec": map[string]any{"virtualMachineRef": map[string]any{"namespace": "default", "name": "web"}},
	}); err != nil {
		t.Fatal(err)
	}
	// The manager's writes of statuses store objects in the current version as well.
	harness.Eventually(t, "the manager has written all statuses", func() error {
		reasons := func(resource string) []string {
			text := harness.Must(t, stencil.Plane, nil, "", "get", resource, "--all-namespaces", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].reason}`).Stdout
			return strings.Fields(text)
		}
		if written := reasons(templates); len(written) != count {
			return fmt.Errorf("%d templates have a status", len(written))
		}
		if got := reasons(requests); !slices.Equal(got, []string{"WaitingForMachine"}) {
			return fmt.Errorf("the request is not ready because of %v", got)
		}
		return nil
	})
	storeIn(t, current)
	if found := storedVersions(t); strings.Count(found, older) != 2 || strings.Count(found, current) != 2 {
		t.Fatalf("stored versions %s", found)
	}
	before, beforeRequests := inEtcd(t, templates), inEtcd(t, requests)
	if before[older] < count-made || before[older]+before[current] != count || beforeRequests[older] != 1 {
		t.Fatalf("stored are %v and %v", before, beforeRequests)
	}
	objects := unchanged(t)

	dry := migrate(t, "--dry-run")
	if dry.Code != 0 || !strings.Contains(dry.Output, fmt.Sprintf("to do   %s.%s: %d objects from v1alpha1 to v1beta1\n", templates, group, count)) || !strings.Contains(dry.Output, requests+"."+group+": 1 object from") {
		t.Errorf("a dry run: %+v", dry)
	}
	if found := inEtcd(t, templates); !maps.Equal(found, before) {
		t.Errorf("after a dry run, stored are %v, before %v", found, before)
	}

	kill(t)
	if found := inEtcd(t, templates); found[older] == 0 || found[current] < before[current]+200 {
		t.Errorf("the command was killed, and stored are %v", found)
	}
	if found := storedVersions(t); strings.Count(found, older) == 0 {
		t.Errorf("the command was killed, and the stored versions are %s", found)
	}

	begin := time.Now()
	done := migrate(t)
	t.Logf("%d templates in %s\n%s", count, time.Since(begin).Round(time.Millisecond), done.Output)
	if done.Code != 0 || !strings.Contains(done.Output, fmt.Sprintf("did     %s.%s: %d objects from v1alpha1 to v1beta1\n", templates, group, count)) || !strings.Contains(done.Problems, "500 "+templates) {
		t.Errorf("exit code %d, %s%s", done.Code, done.Output, done.Problems)
	}
	if found := storedVersions(t); found != `["v1beta1"] ["v1beta1"]` {
		t.Errorf("stored versions %s", found)
	}
	for resource, want := range map[string]int{templates: count, requests: 1} {
		if found := inEtcd(t, resource); found[current] != want || len(found) != 1 {
			t.Errorf("stored %s are %v, want %d in %s", resource, found, want, current)
		}
	}
	for name, now := range unchanged(t) {
		if objects[name] != now {
			t.Errorf("%s was %s and is %s", name, objects[name], now)
		}
	}

	versions := resourceVersions(t)
	again := migrate(t)
	if again.Code != 0 || strings.Count(again.Output, "done  ") != 2 || again.Problems != "" {
		t.Errorf("a second time: %+v", again)
	}
	if now := resourceVersions(t); now != versions {
		t.Error("a second time, objects were written")
	}
}

// unchanged returns UID, generation and specification of all templates.
func unchanged(t *testing.T) map[string]string {
	t.Helper()
	text := harness.Must(t, stencil.Plane, nil, "", "get", templates, "--all-namespaces", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.metadata.generation} {.spec}{"\n"}{end}`).Stdout
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, " ")
		all[name] = rest
	}
	if len(all) != count {
		t.Fatalf("%d templates, want %d", len(all), count)
	}
	return all
}

func resourceVersions(t *testing.T) string {
	t.Helper()
	return harness.Must(t, stencil.Plane, nil, "", "get", templates, "--all-namespaces", "-o", "jsonpath={.items[*].metadata.resourceVersion}").Stdout
}

// kill starts the command, and kills it when it has written the first page.
func kill(t *testing.T) {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary, "install", "migrate-storage")
	command.Env = append(os.Environ(), "KUBECONFIG="+migrator.Kubeconfig)
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	found := false
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "250 "+templates) {
			found = true
			if err := command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := command.Wait(); !found || err == nil || command.ProcessState.ExitCode() != -1 {
		t.Fatalf("the command was not killed in between: %v", err)
	}
}

// TestAUserWithoutPermissionsChangesNothing has no permission for the last step.
func TestAUserWithoutPermissionsChangesNothing(t *testing.T) {
	storeIn(t, older)
	harness.Eventually(t, "the older version is among those stored", func() error {
		if found := storedVersions(t); strings.Count(found, older) != 2 {
			return fmt.Errorf("stored versions %s", found)
		}
		return nil
	})
	storeIn(t, current)
	reader, err := stencil.Plane.User("reader")
	if err != nil {
		t.Fatal(err)
	}
	if err := stencil.Plane.Grant(t.Context(), reader, "",
		rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{templates, requests}, Verbs: []string{"list", "get", "patch"}},
	); err != nil {
		t.Fatal(err)
	}
	result, err := stencilctl.Command{Binary: binary, Kubeconfig: reader.Kubeconfig, Line: "install migrate-storage"}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if result.Code != 3 || !strings.Contains(result.Problems, `changing status.storedVersions: customresourcedefinitions.apiextensions.k8s.io "`+requests+"."+group+`" is forbidden`) {
		t.Errorf("%+v", result)
	}
	if found := storedVersions(t); strings.Count(found, older) != 2 {
		t.Errorf("stored versions %s", found)
	}
	if result := migrate(t); result.Code != 0 {
		t.Errorf("%+v", result)
	}
}
