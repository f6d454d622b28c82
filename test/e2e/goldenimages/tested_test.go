package goldenimages_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

// TestAChannelTakesWhatItsTestAccepts tests images with a template whose VM infers its instance type from the image, as a user with the role edit.
func TestAChannelTakesWhatItsTestAccepts(t *testing.T) {
	own := namespace(t)
	must(t, own, gen.Manifest(gen.Template("smoke", gen.Declares("NAME"), gen.Renders("${NAME}",
		gen.Spec("{runStrategy: Halted, instancetype: {inferFromVolume: root}, template: {spec: {domain: {devices: {}}}}}"),
		gen.DataVolumeDisk("root", "${NAME}-root", "sourceRef: {kind: DataSource, name: fedora-stable}")))), "create", "-f", "-")
	first := push(t, "tested/fedora", "latest")
	must(t, own, manifest("fedora", "tested/fedora", `, defaults: {instancetype: u1.medium}, channels: [{name: stable, promote: {test: {templateRef: {name: smoke}}}}]`), "create", "-f", "-")
	standsFor(t, own, "fedora-stable", first)
	becomes(t, own, "fedora", "UpToDate", "True Latest")

	// Nothing that is created in a dry run is stored.
	if got := asAdmin(t, own, "", "get", "vm", "-o", "name"); got != "" {
		t.Errorf("VMs %s", got)
	}

	// An image from which no VM can be made is not taken: KubeVirt infers an instance type from it, and it has none.
	patch(t, own, "fedora", `{"defaults": null}`)
	second := push(t, "tested/fedora", "latest")
	refresh(t, own, "fedora", "1")
	image := becomes(t, own, "fedora", "UpToDate", "False ChannelTestFailed: channel stable: the test of "+second+" failed: the VirtualMachine of VirtualMachineTemplate "+own+"/smoke is denied: admission webhook")
	if c := image.Status.Channels[0]; c.Digest != first || c.Next != second || !strings.Contains(c.Problem, "default-instancetype") {
		t.Errorf("channel %+v", c)
	}
	standsFor(t, own, "fedora", second)
	standsFor(t, own, "fedora-stable", first)
	eventually(t, "there is an event", func() error {
		events := must(t, own, "", "get", "events", "--field-selector=involvedObject.kind=GoldenImage,reason=ChannelTestFailed", "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(events, "channel stable: the test of "+second+" failed") {
			return errors.New(events)
		}
		return nil
	})
	patch(t, own, "fedora", `{"defaults": {"instancetype": "u1.medium"}}`)
	standsFor(t, own, "fedora-stable", second)
	becomes(t, own, "fedora", "UpToDate", "True Latest")

	// A test that cannot be made is not passed either.
	for _, tc := range [][2]string{
		{"missing", "VirtualMachineTemplate " + own + "/missing does not exist"},
		{"other", "VirtualMachineTemplate " + own + "/other has no disk from a DataSource of this GoldenImage"},
	} {
		template, want := tc[0], tc[1]
		if template == "other" {
			must(t, own, gen.Manifest(gen.Template("other", gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec()))), "create", "-f", "-")
		}
		patch(t, own, "fedora", `{"channels": [{"name": "stable", "promote": {"test": {"templateRef": {"name": "`+template+`"}}}}]}`)
		third := push(t, "tested/fedora", "latest")
		refresh(t, own, "fedora", template)
		becomes(t, own, "fedora", "UpToDate", "False ChannelTestFailed: channel stable: the test of "+third+" failed: "+want)
		standsFor(t, own, "fedora-stable", second)
	}

	// A template that is changed is tried again at once, not only after its time.
	must(t, own, gen.Manifest(gen.Template("other", gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(),
		gen.DataVolumeDisk("root", "${NAME}-root", "sourceRef: {kind: DataSource, name: fedora}")))), "replace", "-f", "-")
	becomes(t, own, "fedora", "UpToDate", "True Latest")
}
