package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/engine"
	"github.com/vmstencil/stencil/defaulting/supervisor"
)

var update = flag.Bool("update", false, "write the golden files")

// counting generates the same identities in each run.
type counting struct{}

func (counting) UUID() string { return "11111111-2222-4333-8444-555555555555" }
func (counting) MAC() string  { return "02:11:22:33:44:55" }

// startEngine returns an engine with a libvirt that validates every domain against its schema.
func startEngine(t testing.TB) *engine.Engine {
	t.Helper()
	return newEngine(startSupervisor(t, func(o *supervisor.Options) { o.Command.Args = append(o.Command.Args, "--validate") }))
}

func newEngine(s *supervisor.Supervisor) *engine.Engine {
	return engine.New(engine.Options{Libvirt: s, Identities: counting{}, Version: "test"})
}

// answer returns the defaults of a VirtualMachine on creation.
func answer(t testing.TB, e *engine.Engine, vm json.RawMessage) *defaulting.Response {
	t.Helper()
	response, err := e.Answer(context.Background(), &defaulting.Request{VM: vm, Cluster: shapes.Cluster})
	if err != nil {
		t.Fatalf("no answer: %v\n%s", err, vm)
	}
	return response
}

func TestLayoutsOfAllShapes(t *testing.T) {
	e := startEngine(t)
	if len(shapes.All) < 45 {
		t.Errorf("there are %d shapes, and there should be at least 45", len(shapes.All))
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(shapes.All)) {
		response := answer(t, e, encode(t, shapes.New(shapes.All[name]...)))
		fmt.Fprintf(&text, "%s\n", name)
		for _, set := range response.Set {
			// The version of the machine type depends on QEMU.
			if strings.HasSuffix(set.Path, "ddress") {
				fmt.Fprintf(&text, "  %s = %v\n", strings.TrimPrefix(set.Path, "spec.template.spec.domain.devices."), set.Value)
			}
		}
		for _, skipped := range response.Skipped {
			fmt.Fprintf(&text, "  left out: %s: %s\n", strings.TrimPrefix(skipped.Path, "spec.template.spec.domain."), skipped.Reason)
		}
	}
	golden := "testdata/layouts.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("layouts differ from %s (-want +got):\n%s", golden, diff)
	}
}

func TestPropertiesOfAllShapes(t *testing.T) {
	e := startEngine(t)
	for _, name := range slices.Sorted(maps.Keys(shapes.All)) {
		t.Run(name, func(t *testing.T) { checkProperties(t, e, shapes.New(shapes.All[name]...)) })
	}
}

// checkProperties checks properties that hold for every VirtualMachine.
func checkProperties(t *testing.T, e *engine.Engine, vm *kubevirtv1.VirtualMachine) {
	t.Helper()
	sent := encode(t, vm)
	first := answer(t, e, sent)

	// The response is deterministic, also without the cache of responses.
	if diff := cmp.Diff(first.VM, answer(t, e, sent).VM); diff != "" {
		t.Errorf("the same request is answered differently:\n%s", diff)
	}
	// The part that the webhook sends has the same result.
	var whole map[string]any
	decodeInto(t, sent, &whole)
	part := answer(t, e, encode(t, defaulting.Relevant(whole)))
	if diff := cmp.Diff(first.Patch, part.Patch); diff != "" {
		t.Errorf("what defaults depend on is patched otherwise (-whole +part):\n%s", diff)
	}
	if diff := cmp.Diff(first.Skipped, part.Skipped); diff != "" {
		t.Errorf("of what defaults depend on something else is skipped (-whole +part):\n%s", diff)
	}
	// The result is a fixed point.
	second := answer(t, e, first.VM)
	if len(second.Set) > 0 {
		t.Errorf("the defaults of the result are not empty: %v", second.Set)
	}
	// Existing values do not change.
	var before, after any
	decodeInto(t, sent, &before)
	decodeInto(t, first.VM, &after)
	if path := changed("", before, after); path != "" && !strings.HasSuffix(path, "machine.type") {
		t.Errorf("%s was changed", path)
	}
	// No value contains a part of a source.
	for _, set := range first.Set {
		if text := fmt.Sprint(set.Value); strings.Contains(text, "/mock") || strings.Contains(text, "secret-") {
			t.Errorf("%s has something of a source: %s", set.Path, text)
		}
	}
	// An added device does not change the addresses of existing ones.
	var grown kubevirtv1.VirtualMachine
	decodeInto(t, first.VM, &grown)
	shapes.AddDisk(&grown, kubevirtv1.DiskDevice{Disk: &kubevirtv1.DiskTarget{Bus: kubevirtv1.DiskBusVirtio}})
	third := answer(t, e, encode(t, &grown))
	for _, set := range third.Set {
		last := fmt.Sprintf("disks[%d]", len(shapes.DevicesOf(&grown).Disks)-1)
		// A device without an address, because a hotpluggable disk requests the one that it would have, can have another one now.
		skipped := slices.ContainsFunc(first.Skipped, func(skipped defaulting.Skipped) bool { return skipped.Path == set.Path })
		if strings.HasSuffix(set.Path, "pciAddress") && !strings.Contains(set.Path, last) && !skipped {
			t.Errorf("adding a disk makes %s %v", set.Path, set.Value)
		}
	}
	where := addresses(first)
	for path, address := range addresses(third) {
		if was, ok := where[path]; ok && was != address && written(&grown, path) {
			t.Errorf("adding a disk moves %s from %s to %s", path, was, address)
		}
	}
}

// encode returns a VirtualMachine as JSON.
func encode(t testing.TB, vm any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(vm)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decodeInto(t testing.TB, text json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// changed returns the first path where an existing value is missing or different.
func changed(path string, before, after any) string {
	switch before := before.(type) {
	case map[string]any:
		object, _ := after.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(before)) {
			if at := changed(path+"."+key, before[key], object[key]); at != "" {
				return at
			}
		}
		return ""
	case []any:
		list, _ := after.([]any)
		if len(list) < len(before) {
			return path
		}
		for i := range before {
			if at := changed(fmt.Sprintf("%s[%d]", path, i), before[i], list[i]); at != "" {
				return at
			}
		}
		return ""
	case nil:
		return ""
	}
	if before != after && before != "" {
		return path
	}
	return ""
}

// addresses returns the addresses of the devices that the VirtualMachine requests.
func addresses(response *defaulting.Response) map[string]string {
	list := map[string]string{}
	for _, device := range response.Devices {
		if device.Path != "" {
			list[device.Path] = device.Address
		}
	}
	return list
}

// written reports whether the VirtualMachine contains the address of a device.
func written(vm *kubevirtv1.VirtualMachine, path string) bool {
	devices := shapes.DevicesOf(vm)
	for i := range devices.Disks {
		if path == fmt.Sprintf("spec.template.spec.domain.devices.disks[%d]", i) {
			return devices.Disks[i].Disk != nil && devices.Disks[i].Disk.PciAddress != ""
		}
	}
	for i := range devices.Interfaces {
		if path == fmt.Sprintf("spec.template.spec.domain.devices.interfaces[%d]", i) {
			return devices.Interfaces[i].PciAddress != ""
		}
	}
	return false
}
