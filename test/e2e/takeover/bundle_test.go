package takeover_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

// TestVirtOperatorInstallsStencil builds virt-operator 1.9 with the bundle of Stencil in place of its own template component, lets it install KubeVirt, and
// runs Stencil's servers with the arguments and certificates that virt-operator gave them.
func TestVirtOperatorInstallsStencil(t *testing.T) {
	bundle, permissions, err := install.OperatorBundle(t.Context(), t.TempDir(), "kubevirt")
	if err != nil {
		t.Fatal(err)
	}
	release := controlplane.KubeVirt19
	release.Bundle = bundle
	c := bare(t)
	c.install(release, permissions)
	if got := c.owners(); got != "virt-operator" {
		t.Errorf("the owners are %q", got)
	}
	// A field that only Stencil's definition has.
	const field = `jsonpath={.spec.versions[?(@.name=="v1beta1")].schema.openAPIV3Schema.properties.spec.properties.undefinedReferences.type}`
	if got := c.must("", "get", "crd", definitions[0], "-o", field); got != "string" {
		t.Errorf("the definition of templates has no field of Stencil: %q", got)
	}

	c.server("virt-template-apiserver", "virt-template-api-service")
	// The API server calls no APIService without endpoints, and simulated pods have a loopback address, which no EndpointSlice may have.
	c.must(`{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
		"metadata": {"namespace": "kubevirt", "name": "virt-template-api-service", "labels": {"kubernetes.io/service-name": "virt-template-api-service"}},
		"ports": [{"name": "https", "port": 8443}], "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": true}}]}`, "create", "-f", "-")
	controller := c.server("virt-template-controller", "virt-template-webhook-service")
	c.admits("virt-api", "kubevirt-virt-api-certs")
	if got, want := c.serverName(controller.MetricsURL()), "virt-template-controller-manager-metrics-service.kubevirt.svc"; !slices.Contains(got, want) {
		t.Errorf("the certificate of the metrics is for %q", got)
	}
	const rendering = "mutatingwebhookconfiguration/a-virt-template-render"
	trusted := func(bundle string) bool { return bundle != "" }
	c.has("the manager has registered rendering", rendering, "{.webhooks[0].clientConfig.caBundle}", trusted)
	c.must("", "delete", rendering)
	c.has("the manager has registered rendering again", rendering, "{.webhooks[0].clientConfig.caBundle}", trusted)
	c.has("the API server reaches stencil-apiserver", "apiservice/"+apiServices[1], `{.status.conditions[?(@.type=="Available")]}`, func(condition string) bool { return strings.Contains(condition, `"status":"True"`) })

	c.must("", "create", "namespace", "golden")
	c.must("", "create", "namespace", "team-a")
	c.must(`{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate", "metadata": {"namespace": "golden", "name": "small"},
		"spec": {"parameters": [{"name": "NAME", "required": true}, {"name": "CORES", "value": "2"}],
			"virtualMachine": {"metadata": {"name": "${NAME}"}, "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"cpu": {"cores": "${{CORES}}"}, "devices": {}}}}}}}}`, "create", "-f", "-")
	ada, err := gen.User(t.Context(), c.Plane, "ada", gen.Role("team-a", "edit"), gen.UsesTemplates("golden"), gen.Role("golden", "virt-template-template-process"))
	if err != nil {
		t.Fatal(err)
	}
	processed := harness.Must(t, c.Plane, ada, `{"parameters": {"NAME": "web-1"}}`, "create", "--raw",
		"/apis/subresources.template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/small/process", "-f", "-")
	if !strings.Contains(processed.Stdout, `"name":"web-1"`) {
		t.Errorf("process: %s", processed.Stdout)
	}
	vm := gen.Manifest(gen.VM("web-1", gen.InNamespace("team-a"), gen.FromTemplate("golden/small")))
	harness.Must(t, c.Plane, ada, vm, "create", "-f", "-")
	if got := harness.Must(t, c.Plane, ada, "", "get", "vm", "web-1", "--namespace=team-a", "-o", "jsonpath={.spec.template.spec.domain.cpu.cores}").Stdout; got != "2" {
		t.Errorf("the VirtualMachine was not rendered: cores %q", got)
	}

	// Without the component virt-operator deletes what it has installed, and what the manager has created goes with it.
	c.component(false)
	c.settled(release)
	harness.Eventually(t, "nothing of Stencil is left", func() error {
		left := c.must("", "get", "crd,mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings,clusterroles,apiservices", "-o", "name")
		for line := range strings.Lines(left) {
			if strings.Contains(line, "virt-template") && !strings.Contains(line, "virt-template-operator") || strings.Contains(line, "template.kubevirt.io") {
				return errors.New(left)
			}
		}
		return nil
	})
}

// deployed is what the test reads of a Deployment.
type deployed struct {
	Spec struct {
		Template struct {
			Spec struct {
				ServiceAccountName string
				Containers         []struct {
					Args         []string
					VolumeMounts []struct{ Name, MountPath string }
				}
				Volumes []struct {
					Name   string
					Secret *struct{ SecretName string }
				}
			}
		}
	}
}

// server runs a server of a Deployment as its pod would: as its service account, with its arguments, and with the Secrets that are mounted. Its addresses are
// those of a process outside of a pod. It is reached as a Service of KubeVirt's namespace.
func (c *cluster) server(deployment, service string) *manager.Process {
	c.t.Helper()
	var read deployed
	if err := json.Unmarshal([]byte(c.must("", "get", "deployment", deployment, "--namespace=kubevirt", "-o", "json")), &read); err != nil {
		c.t.Fatal(err)
	}
	pod := read.Spec.Template.Spec
	c.t.Logf("%s: %q", deployment, pod.Containers[0].Args)
	secrets := map[string]string{}
	for _, volume := range pod.Volumes {
		if volume.Secret != nil {
			secrets[volume.Name] = volume.Secret.SecretName
		}
	}
	arguments := pod.Containers[0].Args
	for _, mount := range pod.Containers[0].VolumeMounts {
		if secret := secrets[mount.Name]; secret != "" {
			folder := c.mounted(secret)
			for i := range arguments {
				arguments[i] = strings.ReplaceAll(arguments[i], mount.MountPath, folder)
			}
		}
	}
	user, err := c.User("system:serviceaccount:kubevirt:"+pod.ServiceAccountName, "system:serviceaccounts", "system:serviceaccounts:kubevirt")
	if err != nil {
		c.t.Fatal(err)
	}
	options := manager.Options{Kubeconfig: user.Kubeconfig, Namespace: "kubevirt", Args: withoutAddresses(arguments)}
	if deployment == "virt-template-apiserver" {
		options.Program = manager.StencilAPIServer
	}
	started, err := manager.Start(context.WithoutCancel(c.t.Context()), options)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = started.Kill() })
	c.Network().Route("kubevirt", service, started.WebhookAddress())
	return started
}

// withoutAddresses returns the arguments without those that name a port of the pod, or delay its end.
func withoutAddresses(arguments []string) []string {
	return slices.DeleteFunc(arguments, func(argument string) bool {
		name, _, _ := strings.Cut(argument, "=")
		return strings.HasSuffix(name, "bind-address") || name == "--shutdown-delay"
	})
}

// mounted writes a Secret with a certificate of virt-operator to a folder.
func (c *cluster) mounted(secret string) string {
	c.t.Helper()
	pair := c.certificate(secret)
	folder := c.t.TempDir()
	for name, content := range pair {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	return folder
}

// serverName returns the names in the certificate of a server.
func (c *cluster) serverName(address string) []string {
	c.t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		c.t.Fatal(err)
	}
	connection, err := tls.Dial("tcp", parsed.Host, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		c.t.Fatal(err)
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0].DNSNames
}
