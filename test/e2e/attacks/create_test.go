package attacks_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

const handwritten = `spec:
  runStrategy: Always
  template:
    spec:
      domain:
        memory: {guest: 64Gi}
        devices:
          disks: [{name: own, disk: {bus: virtio}}]
      volumes: [{name: own, containerDisk: {image: evil.example.com/rootkit:latest}}]
`

// TestUnapprovedMachinesAreNotCreated tests every way to create a VirtualMachine that is not approved.
func TestUnapprovedMachinesAreNotCreated(t *testing.T) {
	plain := strings.Replace(vm("attack", "x", nil, handwritten), "  annotations:\n    template.kubevirt.io/template-ref: \"x\"\n", "", 1)
	field := func(path string) string { return "spec.template.spec." + path }
	space := namespaces.Of(t)
	builder, err := gen.User(t.Context(), stencil.Plane, "system:serviceaccount:"+space+":builder", gen.Role(space, "edit"), gen.UsesTemplates("golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, manifest string
		args           []string
		want           []string
	}{
		{
			name: "without a template, and told which templates may be used", manifest: plain,
			want: []string{fmt.Sprintf("not approved in namespace %q", space), "you may use: golden/fedora"},
		},
		{name: "a template that is not approved", manifest: vm("attack", "golden/windows", map[string]string{"ANSWERS": "a"}, ""), want: []string{"golden/fedora"}},
		{name: "a hand-written VM behind an approved reference", manifest: vm("attack", "golden/fedora", nil, handwritten), want: []string{field("volumes[name=own]"), field("domain.memory.guest")}},
		{name: "a value that is not approved", manifest: vm("attack", "golden/fedora", map[string]string{"INSTANCETYPE": "u1.2xlarge"}, ""), want: []string{"INSTANCETYPE"}},
		{
			name: "a parameter that the approval does not list", manifest: vm("attack", "golden/fedora", map[string]string{"DATA_SOURCE_NAME": "rootkit"}, ""),
			want: []string{`parameters[DATA_SOURCE_NAME]: Invalid value: "rootkit": must be "fedora", the default of the template, because the approval does not list this parameter`},
		},
		{
			name: "a password where the template generates it, which is not told", manifest: vm("attack", "golden/fedora", map[string]string{"CLOUD_USER_PASSWORD": "open-sesame"}, ""),
			want: []string{`parameters[CLOUD_USER_PASSWORD]: Invalid value: must be left to the template, which generates it, because the approval does not list this parameter`},
		},
		{name: "an extra volume", manifest: vm("attack", "golden/fedora", nil, "spec: {template: {spec: {volumes: [{name: data, emptyDisk: {capacity: 1Gi}}]}}}\n"), want: []string{field("volumes[name=data]")}},
		{name: "a host device", manifest: vm("attack", "golden/fedora", nil, "spec: {template: {spec: {domain: {devices: {hostDevices: [{name: gpu, deviceName: vendor/gpu}]}}}}}\n"), want: []string{field("domain.devices.hostDevices")}},
		{name: "a node selector", manifest: vm("attack", "golden/fedora", nil, "spec: {template: {spec: {nodeSelector: {node: master}}}}\n"), want: []string{field("nodeSelector")}},
		{name: "a network", manifest: vm("attack", "golden/fedora", nil, "spec: {template: {spec: {networks: [{name: lan, multus: {networkName: lan}}], domain: {devices: {interfaces: [{name: lan, bridge: {}}]}}}}}\n"), want: []string{field("networks[name=lan]"), field("domain.devices.interfaces[name=lan]")}},
		{name: "another image inside an item of the template", manifest: vm("attack", "golden/fedora", nil, "spec: {template: {spec: {volumes: [{name: disk-1, containerDisk: {image: evil.example.com/rootkit}}]}}}\n"), want: []string{field("volumes[name=disk-1]")}},
		{name: "another cloud-init script", manifest: vm("attack", "golden/fedora", nil, "spec: {template: {spec: {volumes: [{name: cloudinitdisk, cloudInitNoCloud: {userData: '#!/bin/sh'}}]}}}\n"), want: []string{field("volumes[name=cloudinitdisk]")}},
		{name: "a hook sidecar by annotation", manifest: vm("attack", "golden/fedora", nil, "spec: {template: {metadata: {annotations: {hooks.kubevirt.io/hookSidecars: '[]'}}}}\n"), want: []string{"spec.template.metadata.annotations"}},
		{name: "a generated name changes nothing", manifest: strings.Replace(vm("attack-", "golden/fedora", nil, handwritten), "name: attack-", "generateName: attack-", 1), want: []string{field("volumes[name=own]")}},
		{name: "a generated name without a template", manifest: strings.Replace(plain, "name: attack", "generateName: attack-", 1), want: []string{"not approved"}},
		{name: "server-side apply", manifest: vm("attack", "golden/fedora", nil, handwritten), args: []string{"apply", "--server-side", "-f", "-"}, want: []string{field("volumes[name=own]")}},
		{name: "client-side apply", manifest: vm("attack", "golden/fedora", nil, handwritten), args: []string{"apply", "-f", "-"}, want: []string{field("volumes[name=own]")}},
		{name: "the deprecated version", manifest: strings.Replace(plain, "kubevirt.io/v1\n", "kubevirt.io/v1alpha3\n", 1), want: []string{"not approved"}},
		{name: "a service account of the namespace", manifest: plain, args: []string{"create", "--as=" + builder.Name, "-f", "-"}, want: []string{"not approved"}},
		{name: "a forged record", manifest: strings.Replace(plain, "metadata:\n", "metadata:\n  annotations: {template.kubevirt.io/rendered: '{\"namespace\":\"golden\",\"name\":\"fedora\"}'}\n  labels: {vm.kubevirt.io/template: fedora, vm.kubevirt.io/template.namespace: golden}\n", 1), want: []string{"not approved"}},
		{name: "a reference in another case", manifest: vm("attack", "golden/Fedora", nil, ""), want: []string{"not a template name"}},
		{name: "a reference that climbs", manifest: vm("attack", "../golden/fedora", nil, ""), want: []string{"template-ref"}},
		{name: "a reference with white space", manifest: vm("attack", "golden/fedora ", nil, ""), want: []string{"not a template name"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := tc.args
			if args == nil {
				args = []string{"create", "-f", "-"}
			}
			wantDenied(t, kubectl(t, mallory, tc.manifest, args...), tc.want...)
			if left := mustKubectl(t, nil, "", "get", "virtualmachines", "-o", "name").Stdout; strings.Contains(left, "attack") {
				t.Errorf("something was created: %s", left)
				mustKubectl(t, nil, "", "delete", "virtualmachines", "--all")
			}
		})
	}
}

func TestWhatIsApprovedIsCreated(t *testing.T) {
	mustKubectl(t, mallory, vm("good", "golden/fedora", map[string]string{"INSTANCETYPE": "u1.large"}, "    note: mine\n  labels: {team: v}\nspec: {runStrategy: Manual}\n"), "create", "-f", "-")
	vm := get(t, "good")
	if vm.GetLabels()["team"] != "v" || vm.GetAnnotations()["note"] != "mine" {
		t.Errorf("the overrides did not arrive: %v %v", vm.GetLabels(), vm.GetAnnotations())
	}
}

// TestTheDefaultOfAClosedParameterMayBeGiven specifies values that equal the template's defaults.
func TestTheDefaultOfAClosedParameterMayBeGiven(t *testing.T) {
	defaults := map[string]string{"DATA_SOURCE_NAME": "fedora", "DATA_SOURCE_NAMESPACE": "golden", "NAME": "plain"}
	mustKubectl(t, mallory, vm("plain", "golden/fedora", defaults, ""), "create", "-f", "-")
}

func TestADryRunTellsNothingAboutATemplateThatOneMayNotUse(t *testing.T) {
	outsider, err := gen.User(t.Context(), stencil.Plane, "outsider", gen.Role(namespaces.Of(t), "edit"))
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"golden/fedora", "golden/nowhere"} {
		out := kubectl(t, outsider, vm("attack", ref, nil, ""), "create", "--dry-run=server", "-o", "yaml", "-f", "-")
		wantDenied(t, out, `it does not exist or user "outsider" may not use it`)
		if strings.Contains(out.Stdout+out.Stderr, "cloudinit") {
			t.Errorf("content of the template is shown: %s%s", out.Stdout, out.Stderr)
		}
	}
}

func TestAPinnedTemplateThatIsEditedIsNotApprovedAnyMore(t *testing.T) {
	fedora, err := os.ReadFile(stencil.Example("golden/fedora.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pinned := strings.Replace(string(fedora), "name: fedora\n", "name: pinned\n", 1)
	mustKubectl(t, nil, pinned, "apply", "--namespace=golden", "-f", "-")
	t.Cleanup(func() {
		mustKubectl(t, nil, "", "delete", "vmt", "pinned", "--namespace=golden")
		mustKubectl(t, nil, "", "delete", "tapp", "pinned")
	})
	pin := func(digest string) string {
		return "apiVersion: stencil.kubevirt.io/v1alpha1\nkind: TemplateApproval\nmetadata: {name: pinned}\nspec:\n  namespaces: [" + namespaces.Of(t) + "]\n  templates: [{namespace: golden, name: pinned, digest: \"" + digest + "\"}]\n"
	}
	mustKubectl(t, nil, pin("sha256:"+strings.Repeat("0", 64)), "apply", "-f", "-")
	eventually(t, "the pin holds", func() string {
		out := kubectl(t, mallory, vm("pinned-1", "golden/pinned", nil, ""), "create", "--dry-run=server", "-f", "-")
		if !strings.Contains(out.Stderr, "sha256:") {
			return "the pin does not hold yet: " + out.Stdout + out.Stderr
		}
		return ""
	})
	free, err := stencil.Plane.Namespace(t.Context(), "free")
	if err != nil {
		t.Fatal(err)
	}
	admin := mustKubectl(t, nil, vm("free", "golden/pinned", nil, ""), "create", "--namespace="+free, "--dry-run=server", "-f", "-", "-o", `jsonpath={.metadata.annotations.template\.kubevirt\.io/rendered}`)
	digest := regexp.MustCompile("sha256:[0-9a-f]{64}").FindString(admin.Stdout)
	mustKubectl(t, nil, pin(digest), "apply", "-f", "-")
	eventually(t, "the right digest is approved", func() string {
		if out := kubectl(t, mallory, vm("pinned-1", "golden/pinned", nil, ""), "create", "--dry-run=server", "-f", "-"); out.Code != 0 {
			return "the right digest is not approved: " + out.Stderr
		}
		return ""
	})
	mustKubectl(t, nil, strings.Replace(pinned, "user: fedora", "user: mallory", 1), "apply", "--namespace=golden", "-f", "-")
	eventually(t, "the edited template is not approved", func() string {
		out := kubectl(t, mallory, vm("pinned-1", "golden/pinned", nil, ""), "create", "--dry-run=server", "-f", "-")
		if !strings.Contains(out.Stderr, "sha256:") {
			return "the edited template is still approved: " + out.Stdout + out.Stderr
		}
		return ""
	})
}
