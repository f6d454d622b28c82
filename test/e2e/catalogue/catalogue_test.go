package catalogue_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

func create(t *testing.T, namespace, manifest string, arguments ...string) (stdout, denied string) {
	t.Helper()
	result := kubectl(t, ada, manifest, append([]string{"create", "-n", namespace, "-f", "-"}, arguments...)...)
	if result.Code == 0 {
		return result.Stdout, ""
	}
	return result.Stdout, result.Stderr
}

// An object with a mistake or an unknown field is rejected, and a doubtful template is stored with a warning.
func TestEverythingIsStoredWithoutWarnings(t *testing.T) {
	chart, err := install.CatalogueFolder()
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string][]string{
		"with passwords": {"--set", "architectures={amd64,arm64}"},
		"with SSH keys":  {"--set", "login=SSHKey", "--set", "windows.sysprep=Secret"},
		"with all settings of images": {
			"--set", "goldenImages.staleAfter=720h,goldenImages.importsToKeep=2,goldenImages.adopt=IfNotReady,goldenImages.retention=Delete",
			"--set", "goldenImages.registry.certConfigMap=ca,goldenImages.registry.secretRef=pull,mirror.quay\\.io=registry.example.com:5000/quay",
			"--set", "storage.images.storageClassName=slow,storage.images.accessModes={ReadWriteMany},storage.disks.storageClassName=fast",
			"--set", "sources.rhel9.registry.url=docker://registry.redhat.io/rhel9/rhel-guest-image,sources.rhel9.registry.tags.semver=~9.6",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := stencil.Plane.Helm(t.Context(), append([]string{"template", "dry", chart, "--namespace", free}, values...)...)
			if err != nil || rendered.Code != 0 {
				t.Fatal(err, rendered.Stderr)
			}
			result := must(t, nil, rendered.Stdout, "create", "--dry-run=server", "-f", "-")
			if result.Stderr != "" {
				t.Errorf("warnings:\n%s", result.Stderr)
			}
		})
	}
}

func TestAUserWithoutTheRoleCannotUseTheCatalogue(t *testing.T) {
	result := kubectl(t, eve, gen.Manifest(gen.VM("eves", gen.FromTemplate(golden+"/fedora"))), "create", "-n", free, "-f", "-")
	if want := `ask for verb "use" on virtualmachinetemplates "fedora" in namespace "golden"`; result.Code == 0 || !strings.Contains(result.Stderr, want) {
		t.Errorf("exit code %d, want a denial with %q: %s", result.Code, want, result.Stderr)
	}
	for _, more := range []string{"update virtualmachinetemplates", "get secrets", "get persistentvolumeclaims", "create datavolumes/source.cdi.kubevirt.io"} {
		may := kubectl(t, ada, "", append([]string{"auth", "can-i", "-n", golden}, strings.Fields(more)...)...).Stdout
		if strings.TrimSpace(may) != "no" {
			t.Errorf("a user of the catalogue may %s there: %s", more, may)
		}
	}
}

func TestTheGeneratedPasswordIsInASecretOfTheVM(t *testing.T) {
	must(t, ada, gen.Manifest(gen.VM("web", gen.FromTemplate(golden+"/debian13"))), "create", "-n", free, "-f", "-")
	if vm := must(t, ada, "", "get", "virtualmachine", "web", "-n", free, "-o", "yaml").Stdout; strings.Contains(vm, "cloud-config") || !strings.Contains(vm, "name: web-cloudinitdisk") {
		t.Errorf("the user data are not in a Secret:\n%s", vm)
	}
	harness.Eventually(t, "the VM owns its Secret", func() error {
		result := kubectl(t, ada, "", "get", "secret", "web-cloudinitdisk", "-n", free, "-o", `go-template={{range .metadata.ownerReferences}}{{.kind}}/{{.name}}{{end}} {{base64decode .data.userdata}}`)
		want := regexp.MustCompile(`^VirtualMachine/web #cloud-config\nuser: debian\npassword: "[a-z0-9]{4}-[a-z0-9]{4}-[a-z0-9]{4}"\nchpasswd: \{expire: false\}\n$`)
		if !want.MatchString(result.Stdout) {
			return fmt.Errorf("%s%s", result.Stdout, result.Stderr)
		}
		return nil
	})
}

func TestAnSSHKeyInPlaceOfThePassword(t *testing.T) {
	if _, denied := create(t, free, gen.Manifest(gen.VM("keyless", gen.FromTemplate(keys+"/fedora")))); !strings.Contains(denied, "parameter.template.kubevirt.io/SSH_KEY]: Required value") {
		t.Errorf("without a key: %s", denied)
	}
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtleQ== ada@example.com"
	if _, denied := create(t, free, gen.Manifest(gen.VM("keyed", gen.FromTemplate(keys+"/fedora"), gen.Parameter("SSH_KEY", "-----BEGIN OPENSSH PRIVATE KEY-----")))); !strings.Contains(denied, "SSH_KEY") {
		t.Errorf("a private key: %s", denied)
	}
	if _, denied := create(t, free, gen.Manifest(gen.VM("keyed", gen.FromTemplate(keys+"/fedora"), gen.Parameter("SSH_KEY", key)))); denied != "" {
		t.Fatal(denied)
	}
	harness.Eventually(t, "the key is in the user data", func() error {
		got := kubectl(t, ada, "", "get", "secret", "keyed-cloudinitdisk", "-n", free, "-o", `go-template={{base64decode .data.userdata}}`)
		if want := "#cloud-config\nuser: fedora\nssh_authorized_keys:\n- \"" + key + "\"\n"; got.Stdout != want {
			return fmt.Errorf("%q, want %q: %s", got.Stdout, want, got.Stderr)
		}
		return nil
	})
}

func TestWindowsWithAnswerFiles(t *testing.T) {
	if _, denied := create(t, free, gen.Manifest(gen.VM("answered", gen.FromTemplate(keys+"/windows11"), gen.Parameter("SYSPREP", "answers")))); denied != "" {
		t.Fatal(denied)
	}
	if got := jsonpath(t, free, "virtualmachine/answered", `.spec.template.spec.volumes[?(@.name=="sysprep")].sysprep.configMap.name`); got != "answers" {
		t.Errorf("answer files %q", got)
	}
}

// In a namespace of the approval, VMs of the catalogue are created with the values that it lists, and no others.
func TestTheApprovalFitsTheCatalogue(t *testing.T) {
	harness.Eventually(t, "the approval is ready", func() error {
		if got := jsonpath(t, "", "templateapproval/golden", `.status.conditions[?(@.type=="Ready")].status`); got != "True" {
			return errors.New(jsonpath(t, "", "templateapproval/golden", ".status"))
		}
		return nil
	})
	for template := range systems {
		t.Run(template, func(t *testing.T) {
			vm := gen.VM("approved", gen.FromTemplate(golden+"/"+template), gen.RunStrategy("Always"),
				gen.Parameters(map[string]string{"INSTANCETYPE": "u1.xlarge", "DISK_SIZE": "100Gi"}))
			if _, denied := create(t, governed, gen.Manifest(vm), "--dry-run=server"); denied != "" {
				t.Error(denied)
			}
		})
	}
	for name, tc := range map[string]struct {
		modifiers []gen.Modifier
		want      string
	}{
		"a larger disk":               {[]gen.Modifier{gen.Parameter("DISK_SIZE", "1Ti")}, `parameters[DISK_SIZE]: Invalid value: "1Ti": at most 100Gi`},
		"another size":                {[]gen.Modifier{gen.Parameter("INSTANCETYPE", "u1.8xlarge")}, `parameters[INSTANCETYPE]: Invalid value: "u1.8xlarge": must be one of`},
		"another image":               {[]gen.Modifier{gen.Parameter("DATA_SOURCE_NAME", "rhel9")}, `parameters[DATA_SOURCE_NAME]: Invalid value: "rhel9": must be "fedora"`},
		"a field beside the template": {[]gen.Modifier{gen.Spec(`template: {spec: {nodeSelector: {disk: ssd}}}`)}, "spec.template.spec.nodeSelector.disk: may not be written"},
	} {
		t.Run(name, func(t *testing.T) {
			vm := gen.VM("denied", append(tc.modifiers, gen.FromTemplate(golden+"/fedora"))...)
			if _, denied := create(t, governed, gen.Manifest(vm), "--dry-run=server"); !strings.Contains(denied, tc.want) {
				t.Errorf("want a denial with %q, got %q", tc.want, denied)
			}
		})
	}
}

// An image that a user uploads into the claim of its name makes the DataSource and the template ready, and VMs get copies of it.
func TestAnImageThatUsersBring(t *testing.T) {
	ready := func(object, want string) {
		t.Helper()
		harness.Eventually(t, object+" is ready: "+want, func() error {
			if got := jsonpath(t, golden, object, `.status.conditions[?(@.type=="Ready")].status`); got != want {
				return errors.New(jsonpath(t, golden, object, ".status"))
			}
			return nil
		})
	}
	for _, tc := range []struct{ template, source string }{{"rhel10", "rhel10"}, {"windows2k25", "windows2k25-iso"}} {
		t.Run(tc.template, func(t *testing.T) {
			ready("datasource/"+tc.source, "False")
			ready("virtualmachinetemplate/"+tc.template, "False")
			// The disk of a VM that exists already appears when the image does.
			name := "brought-" + tc.template
			must(t, ada, gen.Manifest(gen.VM(name, gen.FromTemplate(golden+"/"+tc.template))), "create", "-n", free, "-f", "-")
			must(t, nil, gen.Manifest(gen.DataVolume(tc.source, "{blank: {}}", gen.Annotation("cdi.kubevirt.io/storage.bind.immediate.requested", "true"))), "create", "-n", golden, "-f", "-")
			ready("datasource/"+tc.source, "True")
			ready("virtualmachinetemplate/"+tc.template, "True")
			disk := name
			if tc.source != tc.template {
				disk += "-iso"
			}
			harness.Eventually(t, "the disk is lent", func() error {
				got := kubectl(t, ada, "", "get", "datavolume", disk, "-n", free, "-o", "jsonpath={.spec.source.pvc}")
				if want := fmt.Sprintf(`{"name":%q,"namespace":"golden"}`, tc.source); got.Stdout != want {
					return fmt.Errorf("source %s, want %s: %s", got.Stdout, want, got.Stderr)
				}
				return nil
			})
		})
	}
}

func TestUpgradeAndUninstall(t *testing.T) {
	const passing = "passing"
	helm := func(arguments ...string) {
		t.Helper()
		result, err := stencil.Plane.Helm(t.Context(), append(arguments, "--namespace", passing)...)
		if err != nil || result.Code != 0 {
			t.Fatalf("helm %v: %v %s", arguments, err, result.Stderr)
		}
	}
	remain := func(what, want string) {
		t.Helper()
		// A GoldenImage is deleted when its finalizer is removed.
		harness.Eventually(t, what, func() error {
			got := must(t, nil, "", "get", "virtualmachinetemplates,goldenimages,datasources,rolebindings", "-n", passing, "-l", "app.kubernetes.io/instance="+passing, "-o", "name").Stdout
			return harness.Complaint(cmp.Diff(want, got))
		})
	}
	if err := installCatalogue(t.Context(), passing, map[string]any{"systems": []string{"fedora", "rhel9"}, "goldenImages": map[string]any{"suspended": true}}); err != nil {
		t.Fatal(err)
	}
	chart, err := install.CatalogueFolder()
	if err != nil {
		t.Fatal(err)
	}
	helm("upgrade", passing, chart, "--reuse-values", "--set", "systems={rhel9,windows11}", "--set", "settings.rhel9.diskSize=40Gi", "--set", "users.groups={all}")
	if got, want := jsonpath(t, passing, "virtualmachinetemplate/rhel9", `.spec.parameters[?(@.name=="DISK_SIZE")].value`), "40Gi"; got != want {
		t.Errorf("size after the upgrade %q, want %q", got, want)
	}
	remain("what was chosen before is gone", `virtualmachinetemplate.template.kubevirt.io/rhel9
virtualmachinetemplate.template.kubevirt.io/windows11
datasource.cdi.kubevirt.io/rhel9
datasource.cdi.kubevirt.io/windows11-iso
rolebinding.rbac.authorization.k8s.io/passing-stencil-template-user
rolebinding.rbac.authorization.k8s.io/passing-stencil-view
`)
	helm("uninstall", passing)
	remain("nothing is left", "")
}
