package rego

import (
	"context"
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
			{Entry: "deny", Row: 12, Line: `deny contains "a host disk" if {`, StoppedRow: 14, StoppedColumn: 2, StoppedAt: "volume.hostDisk"},
			{
				Entry: "warn", Row: 18, Line: `warn contains "many volumes" if count(input.object.spec.template.spec.volumes) > 20`,
				StoppedRow: 18, StoppedColumn: 33, StoppedAt: "count(input.object.spec.template.spec.volumes) > 20",
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
