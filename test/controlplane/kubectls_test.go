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
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := plane.Kubectl(ctx, nil, "", "get", "pods", "--watch"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		run(t, "", "get pods")
	})
}
