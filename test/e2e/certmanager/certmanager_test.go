package certmanager_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

// module denies one name. The manager registers its webhook, with the authority that the CA injector wrote elsewhere.
const module = `package names

deny contains "this name is taken" if input.object.metadata.name == "taken"
`

// vmManifest returns a VirtualMachine from the template box.
func vmManifest(name string) string {
	return gen.Manifest(gen.VM(name, gen.InNamespace("default"), gen.FromTemplate("box")))
}

// bundled are the objects that call Stencil's servers, and how many clients each has.
var bundled = map[string]string{
	"mutatingwebhookconfiguration/a-stencil-render":         "{range .webhooks[*]}{.clientConfig.caBundle}{\"\\n\"}{end}",
	"mutatingwebhookconfiguration/zz-stencil-preview":       "{range .webhooks[*]}{.clientConfig.caBundle}{\"\\n\"}{end}",
	"validatingwebhookconfiguration/stencil-validate":       "{range .webhooks[*]}{.clientConfig.caBundle}{\"\\n\"}{end}",
	"apiservice/v1alpha1.subresources.template.kubevirt.io": "{.spec.caBundle}{\"\\n\"}",
	"apiservice/v1beta1.subresources.template.kubevirt.io":  "{.spec.caBundle}{\"\\n\"}",
}

func TestBothServersServeWithWhatCertManagerIssues(t *testing.T) {
	plane := shared.Plane(t)
	webhooks, err := manager.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	free, err := manager.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(free)
	if err != nil {
		t.Fatal(err)
	}
	release := install.Options{
		ManagerURL: "https://" + webhooks, APIServerAddress: net.JoinHostPort("localhost", port),
		Values: map[string]any{"certificates": map[string]any{"provider": "cert-manager"}},
	}
	if err := install.Chart(t.Context(), plane, release); err != nil {
		t.Fatal(err)
	}
	managerUser, err := release.ManagerUser(plane)
	if err != nil {
		t.Fatal(err)
	}
	apiserverUser, err := release.APIServerUser(plane)
	if err != nil {
		t.Fatal(err)
	}
	// Neither server may publish an authority of Stencil's own.
	servers := []*server{
		{program: manager.StencilManager, certificate: "stencil-webhook", user: managerUser, address: webhooks, directory: t.TempDir(),
			arguments: append(release.ManagerArgs(), "--webhook-configurations=", "--api-services=")},
		{program: manager.StencilAPIServer, certificate: "stencil-apiserver", user: apiserverUser, address: release.APIServerAddress, directory: t.TempDir(),
			arguments: append(release.APIServerArgs(), "--api-services=")},
	}
	for _, s := range servers {
		s.secret = mustKubectl(t, "", "get", "certificate", s.certificate, "--namespace="+install.Namespace, "-o", "jsonpath={.spec.secretName}")
		mustKubectl(t, "", "wait", "certificate/"+s.certificate, "--namespace="+install.Namespace, "--for=condition=Ready", "--timeout=60s")
		harness.Eventually(t, "the certificate can be mounted", func() error { return s.mount(t) })
		s.start(t)
	}

	t.Run("the CA injector tells the API server whom to trust", func(t *testing.T) {
		authority := mustKubectl(t, "", "get", "secret", servers[0].secret, "--namespace="+install.Namespace, "-o", `jsonpath={.data.ca\.crt}`)
		for object, path := range bundled {
			harness.Eventually(t, object+" trusts the authority", func() error {
				found := mustKubectl(t, "", "get", object, "-o", "jsonpath="+path)
				for bundle := range strings.Lines(found) {
					if strings.TrimSpace(bundle) != authority {
						return fmt.Errorf("%s trusts %q", object, strings.TrimSpace(bundle))
					}
				}
				return nil
			})
		}
	})
	t.Run("the API server reaches both", func(t *testing.T) { reached(t) })
	t.Run("policies are asked, too", func(t *testing.T) {
		mustKubectl(t, gen.Manifest(gen.Policy("names", module)), "apply", "-f", "-")
		t.Cleanup(func() { mustKubectl(t, "", "delete", "virtualmachinepolicy", "names") })
		harness.Eventually(t, "the policy refuses", func() error {
			out := kubectl(t, nil, vmManifest("taken"), "create", "--dry-run=server", "-f", "-")
			if out.Code == 0 || !strings.Contains(out.Stderr, "this name is taken") {
				return fmt.Errorf("exit code %d: %s%s", out.Code, out.Stdout, out.Stderr)
			}
			return nil
		})
	})
	t.Run("a certificate that is issued anew takes the place of the old one", func(t *testing.T) {
		for _, s := range servers {
			before, err := s.serves(t)
			if err != nil {
				t.Fatal(err)
			}
			mustKubectl(t, "", "delete", "secret", s.secret, "--namespace="+install.Namespace)
			harness.Eventually(t, "the certificate is issued anew", func() error { return s.mount(t) })
			harness.Eventually(t, "the new certificate is served", func() error {
				now, err := s.serves(t)
				if err == nil && now.Equal(before) {
					err = errors.New("the old certificate is still served")
				}
				return err
			})
		}
		reached(t)
	})
	t.Run("an upgrade of the release leaves what the CA injector wrote", func(t *testing.T) {
		if err := install.Chart(t.Context(), plane, release); err != nil {
			t.Fatal(err)
		}
		for object, path := range bundled {
			if found := mustKubectl(t, "", "get", object, "-o", "jsonpath="+path); strings.HasPrefix(found, "\n") || found == "" {
				t.Errorf("%s trusts nobody any more", object)
			}
		}
		reached(t)
	})
}

// reached waits until the manager renders a VirtualMachine, and stencil-apiserver, which calls the manager for validation, creates one.
func reached(t *testing.T) {
	t.Helper()
	template := gen.Template("box", gen.InNamespace("default"), gen.Declares("NAME", "required: true"), gen.Renders("${NAME}", gen.LeastSpec()))
	harness.Eventually(t, "the manager and stencil-apiserver are reached", func() error {
		if out := kubectl(t, nil, gen.Manifest(template), "apply", "-f", "-"); out.Code != 0 {
			return errors.New(out.Stderr)
		}
		out := kubectl(t, nil, vmManifest("web-1"), "create", "--dry-run=server", "-o", "jsonpath={.spec.runStrategy}", "-f", "-")
		if out.Stdout != "Halted" {
			return fmt.Errorf("the manager is not reached: %s%s", out.Stdout, out.Stderr)
		}
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			path := "/apis/subresources.template.kubevirt.io/" + version + "/namespaces/default/virtualmachinetemplates/box/create?dryRun=All"
			out := kubectl(t, nil, "{parameters: {NAME: web-2}, explain: true}", "create", "--raw", path, "-f", "-")
			if out.Code != 0 || !strings.Contains(out.Stdout, `"template.kubevirt.io/created-by":"`) {
				return fmt.Errorf("stencil-apiserver is not reached in %s: %s%s", version, out.Stdout, out.Stderr)
			}
		}
		return nil
	})
}
