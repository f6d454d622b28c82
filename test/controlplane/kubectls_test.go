package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestKubectlsRun(t *testing.T) {
	for arguments, want := range map[string]bool{
		"get pods": true, "--namespace=a get pods": true, "-n a get pods": false, "stencil audit": false, "logs a": false, "--help": false, "": false,
	} {
		if got := kubectlsRun(strings.Fields(arguments)); got != want {
			t.Errorf("kubectl %s: %t, want %t", arguments, got, want)
		}
	}
}

func TestKubectlProcesses(t *testing.T) {
	plane := shared.Plane(t)
	run := func(t *testing.T, stdin, line string) Result {
		t.Helper()
		got, err := plane.Kubectl(t.Context(), nil, stdin, strings.Fields(line)...)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	t.Run("commands at the same time have their own input and output", func(t *testing.T) {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				name := fmt.Sprintf("at-once-%d", i)
				want := Result{Stdout: "configmap/" + name + "\n"}
				if got := run(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "`+name+`", "namespace": "default"}}`, "create -f - -o name"); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
			})
		}
		group.Wait()
	})
	t.Run("an error", func(t *testing.T) {
		want := Result{Code: 1, Stderr: "Error from server (NotFound): configmaps \"nothing\" not found\n"}
		if got := run(t, "", "get configmap nothing -n default"); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
	t.Run("a command that ends the process", func(t *testing.T) {
		for range 2 {
			if got := run(t, "", "auth can-i create pods --as=eve --as-group=system:authenticated"); got.Code != 1 || got.Stdout != "no\n" {
				t.Errorf("got %+v", got)
			}
		}
	})
	t.Run("a flag that does not exist", func(t *testing.T) {
		if got := run(t, "", "get pods --nothing"); got.Code != 1 || !strings.Contains(got.Stderr, "unknown flag: --nothing") {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("flags are those of one command", func(t *testing.T) {
		run(t, "", "get configmaps -n kube-system -o json --v=6")
		if got := run(t, "", "get configmap at-once-0 -o name"); got != (Result{Stdout: "configmap/at-once-0\n"}) {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("apply computes the patches of kubectl", func(t *testing.T) {
		const deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "applied"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
			"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "first", "image": "%s"}]}}}}`
		const other = `{"spec": {"template": {"spec": {"containers": [{"name": "of-another", "image": "x"}]}}}}`
		const label = `{"spec": {"template": {"metadata": {"labels": {"c": "of-another"}}}}}`
		for _, object := range []struct{ kind, manifest, patch, field string }{
			// A strategic merge patch leaves the container of another writer.
			{"deployment", deployment, other, "{.spec.template.spec.containers[*].name} {.spec.template.spec.containers[*].image}"},
			{"vm", vmManifest("applied", `{"runStrategy": "Halted", "template": {"metadata": {"labels": {"a": "%s"}}, "spec": {"domain": {"devices": {}}}}}`), label, "{.spec.template.metadata}"},
		} {
			var got [2]string
			// Flags before the command select a process of its own.
			for i, as := range []func(...string) []string{
				func(arguments ...string) []string { return append(arguments, "-n", "default") },
				func(arguments ...string) []string { return append([]string{"-n", "default"}, arguments...) },
			} {
				if kubectlsRun(as("apply")) != (i == 0) {
					t.Fatalf("command %d runs elsewhere", i)
				}
				for _, step := range [][]string{
					{fmt.Sprintf(object.manifest, "one"), "apply", "-f", "-"},
					{"", "patch", object.kind, "applied", "--type=" + map[bool]string{true: "merge", false: "strategic"}[object.kind == "vm"], "-p", object.patch},
					{fmt.Sprintf(object.manifest, "two"), "apply", "-f", "-"},
				} {
					if out := kubectl(t, plane, nil, step[0], as(step[1:]...)...); out.Code != 0 || out.Stderr != "" {
						t.Fatal(out.Stderr)
					}
				}
				got[i] = kubectl(t, plane, nil, "", "get", object.kind, "applied", "-n", "default", "-o", "jsonpath="+object.field).Stdout
				kubectl(t, plane, nil, "", "delete", object.kind, "applied", "-n", "default")
			}
			if got[0] != got[1] || !strings.Contains(got[0], "two") || !strings.Contains(got[0], "of-another") {
				t.Errorf("%s: got %s, want %s", object.kind, got[0], got[1])
			}
		}
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := plane.Kubectl(ctx, nil, "", "get", "pods", "--watch"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		run(t, "", "get pods")
	})
}
