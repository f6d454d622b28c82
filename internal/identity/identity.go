package identity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// fields are the fields that identify one VM; * is each item of a list. An object that is empty without them is removed, too.
var fields = []string{
	"spec.template.spec.hostname",
	"spec.template.spec.domain.firmware.uuid",
	"spec.template.spec.domain.firmware.serial",
	"spec.template.spec.domain.chassis.serial",
	"spec.template.spec.domain.chassis.asset",
	"spec.template.spec.domain.devices.disks.*.serial",
	"spec.template.spec.domain.devices.interfaces.*.macAddress",
}

const (
	hostLabel = "kubernetes.io/hostname"
	guestPath = "spec.template.spec"
)

// Identity is the name, the UIDs, the hosts and the addresses of one VM.
type Identity struct {
	name string
	// own are its UIDs, hosts and addresses, in lower case.
	own map[string]string
	// rename returns the value for a text with the VM's name between the parts.
	rename func(parts ...string) any
	report Report
}

// Report lists the findings, by path and reason and without values, in the order of the VirtualMachine.
type Report struct {
	// Removed is no longer in the VirtualMachine.
	Removed []string
	// Renamed has the new name in place of the VM's.
	Renamed []string
	// Kept still identifies the VM, or may do so.
	Kept []string
}

// Of collects the identity of a VirtualMachine. rename returns the value for a text in which the name of the VM was between the parts.
func Of(vm map[string]any, rename func(parts ...string) any) *Identity {
	i := &Identity{own: map[string]string{}, rename: rename}
	metadata, guest := machine.MapAt(vm, "metadata"), guestOf(vm)
	i.name = machine.StringAt(metadata, "name")
	// Only what has the right form is looked for in texts: anything else may be there by chance.
	i.add("its UID", uuid.FindString(machine.StringAt(metadata, "uid")), uuid.FindString(machine.StringAt(machine.MapAt(guest, "domain", "firmware"), "uuid")))
	i.add("its host", machine.StringAt(machine.MapAt(guest, "nodeSelector"), hostLabel))
	for _, one := range machine.MapsAt(machine.MapAt(guest, "domain", "devices"), "interfaces") {
		i.add(aMAC, macs(machine.StringAt(one, "macAddress"))...)
	}
	for _, of := range []map[string]any{metadata, machine.MapAt(vm, "spec", "template", "metadata")} {
		for key, value := range machine.MapAt(of, "annotations") {
			if text, _ := value.(string); isWritten(key) {
				i.add(aMAC, macs(text)...)
				i.add(anIP, ips(text)...)
			}
		}
	}
	i.eachDocument(guest, func(_, text string, network bool) {
		if network {
			i.add(aMAC, macs(text)...)
			for _, found := range staticAddresses(text) {
				i.add(anIP, ips(found.value)...)
			}
		}
	})
	return i
}

func guestOf(vm map[string]any) map[string]any { return machine.MapAt(vm, "spec", "template", "spec") }

func (i *Identity) add(what string, values ...string) {
	for _, value := range values {
		if value != "" {
			i.own[strings.ToLower(value)] = what
		}
	}
}

// Strip removes the identity from the VirtualMachine, and returns the report. Of its metadata, and of those of spec.template, only labels and
// annotations remain, and the name.
func (i *Identity) Strip(vm map[string]any) Report {
	i.report = Report{}
	metadata := i.Metadata("metadata", machine.MapAt(vm, "metadata"))
	metadata["name"] = i.rename("", "")
	vm["metadata"] = metadata
	template := machine.MapAt(vm, "spec", "template")
	if kept := i.Metadata("spec.template.metadata", machine.MapAt(template, "metadata")); len(kept) > 0 {
		template["metadata"] = kept
	} else {
		delete(template, "metadata")
	}
	for _, path := range fields {
		i.removeField(vm, path, strings.Split(path, "."))
	}
	guest := guestOf(vm)
	i.nodes(guest)
	for _, key := range []string{"affinity", "topologySpreadConstraints"} {
		if value, found := guest[key]; found {
			guest[key] = i.selector(value, guestPath+"."+key)
		}
	}
	i.documents(guest)
	return i.report
}

// Metadata returns the labels and annotations of an object that belong in a template. What happens to the others is in the report of Strip, if they
// are of its VirtualMachine.
func (i *Identity) Metadata(path string, metadata map[string]any) map[string]any {
	kept := map[string]any{}
	for _, key := range []string{"labels", "annotations"} {
		entries := machine.MapAt(metadata, key)
		left := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			i.entry(fmt.Sprintf("%s.%s[%s]", path, key, name), name, entries[name], left)
		}
		if len(left) > 0 {
			kept[key] = left
		}
	}
	return kept
}

// entry decides about a label or an annotation, and adds it to those that remain.
func (i *Identity) entry(path, key string, value any, left map[string]any) {
	text, isText := value.(string)
	if !isText {
		left[key] = value
		return
	}
	own, settings := i.holds(text), isKubeVirts(key)
	renamed, named := i.Renamed(text)
	switch {
	case isTracked(key):
		i.removed(path, "state of a controller")
		return
	case named && text == i.name:
		left[key] = renamed
		i.report.Renamed = append(i.report.Renamed, path)
		return
	case isWritten(key):
		i.removed(path, "written for one VM")
		return
	case settings && (own != "" || addresses(text)):
		i.kept(path, "an address or the UID")
	case own != "":
		i.removed(path, own)
		return
	case onlyAddresses(text):
		i.removed(path, "an address")
		return
	case named && !settings:
		left[key] = renamed
		i.report.Renamed = append(i.report.Renamed, path)
		return
	case addresses(text):
		i.kept(path, "an address")
	case i.isNamed(text):
		i.kept(path, "the name of the VM")
	}
	left[key] = value
}

func (i *Identity) removed(path, why string) {
	i.report.Removed = append(i.report.Removed, fmt.Sprintf("%s (%s)", path, why))
}

func (i *Identity) kept(path, why string) {
	line := fmt.Sprintf("%s (%s)", path, why)
	if !slices.Contains(i.report.Kept, line) {
		i.report.Kept = append(i.report.Kept, line)
	}
}

// removeField removes a field, and what is then empty around it. rest is the part of the path below in.
func (i *Identity) removeField(in map[string]any, path string, rest []string) {
	key := rest[0]
	switch {
	case len(rest) == 1:
		if _, found := in[key]; found {
			delete(in, key)
			i.report.Removed = append(i.report.Removed, path)
		}
	case rest[1] == "*":
		for n, item := range machine.MapsAt(in, key) {
			i.removeField(item, strings.Replace(path, ".*", fmt.Sprintf("[%d]", n), 1), rest[2:])
		}
	default:
		below := machine.MapAt(in, key)
		if len(below) == 0 {
			return
		}
		if i.removeField(below, path, rest[1:]); len(below) == 0 {
			delete(in, key)
		}
	}
}

// nodes removes the selection of one host.
func (i *Identity) nodes(guest map[string]any) {
	selector := machine.MapAt(guest, "nodeSelector")
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		text, _ := selector[key].(string)
		own := i.holds(text)
		if key == hostLabel {
			own = "its host"
		}
		if own != "" {
			delete(selector, key)
			i.removed(guestPath+".nodeSelector["+key+"]", own)
		}
	}
	if selector != nil && len(selector) == 0 {
		delete(guest, "nodeSelector")
	}
}

// selector replaces the VM's name in selectors, and reports selectors of a host.
func (i *Identity) selector(value any, path string) any {
	switch value := value.(type) {
	case string:
		if value == i.name && i.name != "" {
			i.report.Renamed = append(i.report.Renamed, path)
			return i.rename("", "")
		}
	case []any:
		for n := range value {
			value[n] = i.selector(value[n], fmt.Sprintf("%s[%d]", path, n))
		}
	case map[string]any:
		if value["key"] == hostLabel && value["values"] != nil {
			i.kept(path, "hosts")
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			value[key] = i.selector(value[key], path+"."+key)
		}
	}
	return value
}
