package attacks_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestUnapprovedMachinesAreNotCreated tests every way to create a VirtualMachine that is not approved.
func TestUnapprovedMachinesAreNotCreated(t *testing.T) {
	handwritten := gen.Spec(`{runStrategy: Always, template: {spec: {domain: {memory: {guest: 64Gi}, devices: {disks: [{name: own, disk: {bus: virtio}}]}},
		volumes: [{name: own, containerDisk: {image: "evil.example.com/rootkit:latest"}}]}}}`)
	without := func(name string, modifiers ...gen.Modifier) string {
		return gen.Manifest(gen.VM(name, append(modifiers, handwritten)...))
	}
	plain := without("attack")
	field := func(path string) string { return "spec.template.spec." + path }
	space := namespaces.Of(t)
	builder := harness.User(t, stencil.Plane, "system:serviceaccount:"+space+":builder", gen.Role(space, "edit"), gen.UsesTemplates("golden"))
	for _, tc := range []struct {
		name, manifest string
		args           []string
		want           []string
	}{
		{
			name: "without a template, and told which templates may be used", manifest: plain,
			want: []string{fmt.Sprintf("not approved in namespace %q", space), "you may use: golden/fedora"},
		},
		{name: "a template that is not approved", manifest: vm("attack", "golden/windows", gen.Parameter("ANSWERS", "a")), want: []string{"golden/fedora"}},
		{name: "a hand-written VM behind an approved reference", manifest: vm("attack", "golden/fedora", handwritten), want: []string{field("volumes[name=own]"), field("domain.memory.guest")}},
		{name: "a value that is not approved", manifest: vm("attack", "golden/fedora", gen.Parameter("INSTANCETYPE", "u1.2xlarge")), want: []string{"INSTANCETYPE"}},
		{
			name: "a parameter that the approval does not list", manifest: vm("attack", "golden/fedora", gen.Parameter("DATA_SOURCE_NAME", "rootkit")),
			want: []string{`parameters[DATA_SOURCE_NAME]: Invalid value: "rootkit": must be "fedora", the default of the template, because the approval does not list this parameter`},
		},
		{
			name: "a password where the template generates it, which is not told", manifest: vm("attack", "golden/fedora", gen.Parameter("CLOUD_USER_PASSWORD", "open-sesame")),
			want: []string{`parameters[CLOUD_USER_PASSWORD]: Invalid value: must be left to the template, which generates it, because the approval does not list this parameter`},
		},
		{name: "an extra volume", manifest: vm("attack", "golden/fedora", gen.Spec("template: {spec: {volumes: [{name: data, emptyDisk: {capacity: 1Gi}}]}}")), want: []string{field("volumes[name=data]")}},
		{name: "a host device", manifest: vm("attack", "golden/fedora", gen.Spec("template: {spec: {domain: {devices: {hostDevices: [{name: gpu, deviceName: vendor/gpu}]}}}}")), want: []string{field("domain.devices.hostDevices")}},
		{name: "a node selector", manifest: vm("attack", "golden/fedora", gen.Spec("template: {spec: {nodeSelector: {node: master}}}")), want: []string{field("nodeSelector")}},
		{name: "a network", manifest: vm("attack", "golden/fedora", gen.Spec("template: {spec: {networks: [{name: lan, multus: {networkName: lan}}], domain: {devices: {interfaces: [{name: lan, bridge: {}}]}}}}")), want: []string{field("networks[name=lan]"), field("domain.devices.interfaces[name=lan]")}},
		{name: "another image inside an item of the template", manifest: vm("attack", "golden/fedora", gen.Spec("template: {spec: {volumes: [{name: disk-1, containerDisk: {image: evil.example.com/rootkit}}]}}")), want: []string{field("volumes[name=disk-1]")}},
		{name: "another cloud-init script", manifest: vm("attack", "golden/fedora", gen.Spec("template: {spec: {volumes: [{name: cloudinitdisk, cloudInitNoCloud: {userData: '#!/bin/sh'}}]}}")), want: []string{field("volumes[name=cloudinitdisk]")}},
		{name: "a hook sidecar by annotation", manifest: vm("attack", "golden/fedora", gen.Spec("template: {metadata: {annotations: {hooks.kubevirt.io/hookSidecars: '[]'}}}")), want: []string{"spec.template.metadata.annotations"}},
		{name: "a generated name changes nothing", manifest: vm("", "golden/fedora", handwritten, gen.GenerateName("attack-")), want: []string{field("volumes[name=own]")}},
		{name: "a generated name without a template", manifest: without("", gen.GenerateName("attack-")), want: []string{"not approved"}},
		{name: "server-side apply", manifest: vm("attack", "golden/fedora", handwritten), args: []string{"apply", "--server-side", "-f", "-"}, want: []string{field("volumes[name=own]")}},
		{name: "client-side apply", manifest: vm("attack", "golden/fedora", handwritten), args: []string{"apply", "-f", "-"}, want: []string{field("volumes[name=own]")}},
		{name: "the deprecated version", manifest: without("attack", gen.APIVersion("kubevirt.io/v1alpha3")), want: []string{"not approved"}},
		{name: "a service account of the namespace", manifest: plain, args: []string{"create", "--as=" + builder.Name, "-f", "-"}, want: []string{"not approved"}},
		{name: "a forged record", manifest: without("attack", gen.Annotation("template.kubevirt.io/rendered", `{"namespace":"golden","name":"fedora"}`), gen.Fields("metadata: {labels: {vm.kubevirt.io/template: fedora, vm.kubevirt.io/template.namespace: golden}}")), want: []string{"not approved"}},
		{name: "a reference in another case", manifest: vm("attack", "golden/Fedora"), want: []string{"not a template name"}},
		{name: "a reference that climbs", manifest: vm("attack", "../golden/fedora"), want: []string{"template-ref"}},
		{name: "a reference with white space", manifest: vm("attack", "golden/fedora "), want: []string{"not a template name"}},
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
	mustKubectl(t, mallory, vm("good", "golden/fedora", gen.Parameter("INSTANCETYPE", "u1.large"), gen.Annotation("note", "mine"), gen.Label("team", "v"), gen.RunStrategy("Manual")), "create", "-f", "-")
	vm := get(t, "good")
	if vm.GetLabels()["team"] != "v" || vm.GetAnnotations()["note"] != "mine" {
		t.Errorf("the overrides did not arrive: %v %v", vm.GetLabels(), vm.GetAnnotations())
	}
}

// TestTheDefaultOfAClosedParameterMayBeGiven specifies values that equal the template's defaults.
func TestTheDefaultOfAClosedParameterMayBeGiven(t *testing.T) {
	defaults := map[string]string{"DATA_SOURCE_NAME": "fedora", "DATA_SOURCE_NAMESPACE": "golden", "NAME": "plain"}
	mustKubectl(t, mallory, vm("plain", "golden/fedora", gen.Parameters(defaults)), "create", "-f", "-")
}

func TestADryRunTellsNothingAboutATemplateThatOneMayNotUse(t *testing.T) {
	outsider := harness.User(t, stencil.Plane, "outsider", gen.Role(namespaces.Of(t), "edit"))
	for _, ref := range []string{"golden/fedora", "golden/nowhere"} {
		out := kubectl(t, outsider, vm("attack", ref), "create", "--dry-run=server", "-o", "yaml", "-f", "-")
		wantDenied(t, out, `it does not exist or user "outsider" may not use it`)
		if strings.Contains(out.Stdout+out.Stderr, "cloudinit") {
			t.Errorf("content of the template is shown: %s%s", out.Stdout, out.Stderr)
		}
	}
}

func TestAPinnedTemplateThatIsEditedIsNotApprovedAnyMore(t *testing.T) {
	fedora := testfile.Read(t, stencil.Example("golden/fedora.yaml"))
	pinned := strings.Replace(string(fedora), "name: fedora\n", "name: pinned\n", 1)
	mustKubectl(t, nil, pinned, "apply", "--namespace=golden", "-f", "-")
	t.Cleanup(func() {
		mustKubectl(t, nil, "", "delete", "vmt", "pinned", "--namespace=golden")
		mustKubectl(t, nil, "", "delete", "tapp", "pinned")
	})
	pin := func(digest string) string {
		return gen.Manifest(gen.Approval("pinned", gen.Governs(namespaces.Of(t)), gen.Spec("templates: [{namespace: golden, name: pinned, digest: '"+digest+"'}]")))
	}
	mustKubectl(t, nil, pin("sha256:"+strings.Repeat("0", 64)), "apply", "-f", "-")
	eventually(t, "the pin holds", func() string {
		out := kubectl(t, mallory, vm("pinned-1", "golden/pinned"), "create", "--dry-run=server", "-f", "-")
		if !strings.Contains(out.Stderr, "sha256:") {
			return "the pin does not hold yet: " + out.Stdout + out.Stderr
		}
		return ""
	})
	free := harness.Namespace(t, stencil.Plane, "free")
	admin := mustKubectl(t, nil, vm("free", "golden/pinned"), "create", "--namespace="+free, "--dry-run=server", "-f", "-", "-o", `jsonpath={.metadata.annotations.template\.kubevirt\.io/rendered}`)
	digest := regexp.MustCompile("sha256:[0-9a-f]{64}").FindString(admin.Stdout)
	mustKubectl(t, nil, pin(digest), "apply", "-f", "-")
	eventually(t, "the right digest is approved", func() string {
		if out := kubectl(t, mallory, vm("pinned-1", "golden/pinned"), "create", "--dry-run=server", "-f", "-"); out.Code != 0 {
			return "the right digest is not approved: " + out.Stderr
		}
		return ""
	})
	mustKubectl(t, nil, strings.Replace(pinned, "user: fedora", "user: mallory", 1), "apply", "--namespace=golden", "-f", "-")
	eventually(t, "the edited template is not approved", func() string {
		out := kubectl(t, mallory, vm("pinned-1", "golden/pinned"), "create", "--dry-run=server", "-f", "-")
		if !strings.Contains(out.Stderr, "sha256:") {
			return "the edited template is still approved: " + out.Stdout + out.Stderr
		}
		return ""
	})
}
