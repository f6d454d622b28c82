package rego

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	policy := mustCompile(t, Definition{Source: `package p

import data.lib

deny contains {"msg": msg, "field": "spec.x"} if {
	cores := input.object.spec.template.spec.domain.cpu.cores
	cores > 1
	some image in lib.images
	msg := sprintf("%d cores, %s", [cores, image.reference])
}

deny contains "a host disk" if {
	some volume in input.object.spec.template.spec.volumes
	volume.hostDisk
	volume.name == "x"
}

warn contains "many volumes" if count(input.object.spec.template.spec.volumes) > 20

warn contains volume.name if {
	some volume in input.object.spec.template.spec.volumes
	not allowed(volume)
}

allowed(volume) if volume.name != "tools"
`})
	got, err := policy.Explain(context.Background(), mustInput(t, vmDocument(t)))
	if err != nil {
		t.Fatal(err)
	}
	denied := []Finding{{Message: "2 cores, registry.example.com/tools/fedora:42", Field: "spec.x"}}
	want := Explanation{
		Result: Result{Deny: denied, Warn: found("tools")},
		Rules: []RuleExplanation{
			{Entry: "deny", Row: 5, Line: `deny contains {"msg": msg, "field": "spec.x"} if {`, Fired: true, Findings: denied},
			{Entry: "deny", Row: 12, Line: `deny contains "a host disk" if {`, Stopped: &Stop{Row: 14, Column: 2, Expression: "volume.hostDisk"}},
			{
				Entry: "warn", Row: 18, Line: `warn contains "many volumes" if count(input.object.spec.template.spec.volumes) > 20`,
				Stopped: &Stop{Row: 18, Column: 33, Expression: "count(input.object.spec.template.spec.volumes) > 20"},
			},
			{Entry: "warn", Row: 20, Line: "warn contains volume.name if {", Fired: true, Findings: found("tools")},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
}

func TestExplainOfAFailure(t *testing.T) {
	policy := mustCompile(t, Definition{Source: "package p\n\ndeny contains \"x\" if to_number(input.object.metadata.name)\n"})
	if _, err := policy.Explain(context.Background(), mustInput(t, vmDocument(t))); err == nil {
		t.Error("no error")
	}
}

// TestExplainEntersHelpers has rules that stop because of a helper, whose own stop or values are the reason.
func TestExplainEntersHelpers(t *testing.T) {
	policy := mustCompile(t, Definition{Source: `package p

import data.lib

deny contains "large" if {
	machine := input.object.spec.template.spec
	large(machine)
}

large(machine) if {
	machine.domain.cpu.cores > limit
}

large(machine) if many(machine.volumes)

many(volumes) if count(volumes) > limit * 10

limit := 4

deny contains "not allowed" if {
	some volume in input.object.spec.template.spec.volumes
	not allowed(volume)
}

allowed(volume) := true if is_string(volume.name)

deny contains "no limit" if not limit

deny contains "other images" if {
	images := [image |
		some image in lib.images
		other(image)
	]
	count(images) > 0
}

other(image) if not startswith(image.reference, "registry.example.com/")

deny contains name(input.object)

name(object) := object.metadata.annotations.title

deny contains "another image" if {
	some image in lib.images
	image.reference == "registry.example.com/other"
}

deny contains "USB" if "usb0" in disks

disks contains disk.name if {
	some disk in input.object.spec.template.spec.domain.devices.disks
	disk.disk.bus == "usb"
}

deny contains "many" if count(lib.images) > 8

deny contains name(machine) if {
	machine := input.object
	machine.metadata.name
}
`})
	got, err := policy.Explain(context.Background(), mustInput(t, vmDocument(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(`
5 no, at 7:2 large(machine)
  large (10) undefined, at 11:2 machine.domain.cpu.cores > limit
    limit (18) 4
  large (14) undefined, at 14:19 many(machine.volumes)
    many (16) undefined, at 16:18 count(volumes) > limit * 10
      limit (18) 4
20 no, at 22:2 not allowed(volume)
  allowed (25) true
27 no, at 27:29 not limit
  limit (18) 4
29 no, at 34:2 count(images) > 0
39 no, at 39:1 deny contains name(input.object)
  name (41) undefined, at 41:17 object.metadata.annotations.title
43 no, at 45:2 image.reference == "registry.example.com/other"
48 no, at 48:24 "usb0" in disks
  disks (50) set(), at 52:2 disk.disk.bus == "usb"
55 no, at 55:25 count(lib.images) > 8
  data.lib.images {"field": "spec.template.spec.volumes[1].containerDisk.image", "reference": "registry.example.com/tools/fedora:42"}
57 no, at 57:1 deny contains name(machine) if {
  name (41) undefined, at 41:17 object.metadata.annotations.title
`)
	if diff := cmp.Diff(want, outline(got)); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
}

// outline prints an explanation with a row for each rule and helper.
func outline(e Explanation) string {
	var b strings.Builder
	var stop func(s *Stop, indent string)
	stop = func(s *Stop, indent string) {
		if s == nil {
			b.WriteString("\n")
			return
		}
		fmt.Fprintf(&b, ", at %d:%d %s\n", s.Row, s.Column, s.Expression)
		for _, h := range s.Helpers {
			b.WriteString(indent + h.Name)
			if h.Row > 0 {
				fmt.Fprintf(&b, " (%d)", h.Row)
			}
			values := h.Values
			if len(values) == 0 {
				values = []string{"undefined"}
			}
			b.WriteString(" " + strings.Join(values, " | "))
			stop(h.Stopped, indent+"  ")
		}
	}
	for _, r := range e.Rules {
		fmt.Fprintf(&b, "%d %s", r.Row, map[bool]string{true: "fired", false: "no"}[r.Fired])
		stop(r.Stopped, "  ")
	}
	return strings.TrimSpace(b.String())
}
