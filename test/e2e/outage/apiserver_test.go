package outage_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/harness"
)

const (
	catalogue   = "shelf"
	subresource = "/apis/subresources.template.kubevirt.io/v1beta1/namespaces/" + catalogue + "/virtualmachinetemplates/box/"
)

// available are the templates for VMs in shelf.
const available = "/apis/subresources.template.kubevirt.io/v1beta1/namespaces/" + catalogue + "/availabletemplates"

// works processes a template, creates from it and lists it, and checks that a change of the template has an effect.
func works(t *testing.T, version int) {
	t.Helper()
	template := fmt.Sprintf(`{"apiVersion":"template.kubevirt.io/v1beta1","kind":"VirtualMachineTemplate","metadata":{"name":"box","annotations":{"description":"version %[1]d"}},
		"spec":{"message":"version %[1]d","virtualMachine":{"metadata":{"generateName":"box-"},"spec":{"runStrategy":"Halted","template":{"spec":{"domain":{"memory":{"guest":"64Mi"},"devices":{}}}}}}}}`, version)
	want := fmt.Sprintf(`"message":"version %d"`, version)
	harness.Eventually(t, "process and create render the newest template", func() error {
		if out := kubectl(t, nil, catalogue, template, "apply", "-f", "-"); out.Code != 0 {
			return errors.New(out.Stderr)
		}
		for _, verb := range []string{"process", "create"} {
			got := kubectl(t, ada, catalogue, "{}", "create", "--raw", subresource+verb+"?dryRun=All", "-f", "-")
			if got.Code != 0 || !strings.Contains(got.Stdout, want) {
				return fmt.Errorf("%s: exit code %d: %s%s", verb, got.Code, got.Stdout, got.Stderr)
			}
		}
		if got := kubectl(t, ada, catalogue, "", "get", "--raw", available); got.Code != 0 || !strings.Contains(got.Stdout, fmt.Sprintf(`"description":"version %d"`, version)) {
			return fmt.Errorf("available: exit code %d: %s%s", got.Code, got.Stdout, got.Stderr)
		}
		return nil
	})
}

func TestProcessCreateAndAvailableTemplatesSurviveRestarts(t *testing.T) {
	rule := rbacv1.PolicyRule{
		APIGroups: []string{"subresources.template.kubevirt.io"}, Resources: []string{"virtualmachinetemplates/process", "virtualmachinetemplates/create"}, Verbs: []string{"create"},
	}
	harness.Grant(t, stencil.Plane, ada, catalogue, rule)
	harness.Bind(t, stencil.Plane, ada, catalogue, "edit")
	harness.Bind(t, stencil.Plane, ada, catalogue, "stencil-template-user")
	works(t, 1)

	t.Run("of the API server", func(t *testing.T) {
		server := stencil.APIServer.PID()
		if err := stencil.Plane.RestartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		works(t, 2)
		if now := stencil.APIServer.PID(); now != server {
			t.Error("stencil-apiserver was started again as well")
		}
		select {
		case <-stencil.APIServer.Done():
			t.Errorf("stencil-apiserver has ended:\n%s", stencil.APIServer.Logs())
		default:
		}
	})
	t.Run("of etcd", func(t *testing.T) {
		if err := stencil.Plane.RestartEtcd(t.Context()); err != nil {
			t.Fatal(err)
		}
		works(t, 3)
	})
	t.Run("of stencil-apiserver", func(t *testing.T) {
		if err := stencil.APIServer.Stop(); err != nil {
			t.Fatal(err)
		}
		// Requests that do not involve it continue to work.
		must(t, nil, catalogue, "", "get", "vmt", "box")
		denied(t, kubectl(t, ada, catalogue, "{}", "create", "--raw", subresource+"process", "-f", "-"), "unable to handle the request")
		denied(t, kubectl(t, ada, catalogue, "", "get", "--raw", available), "unable to handle the request")
		if err := stencil.StartAPIServer(); err != nil {
			t.Fatal(err)
		}
		works(t, 4)
	})
}
