package vmrules_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	sizing "github.com/vmstencil/stencil/template/instancetype"
	"github.com/vmstencil/stencil/template/validations/vmrules"
)

// sizes resolves the instance type small, of one CPU and 1 GiB, and the preference linux.
type sizes struct{}

func (sizes) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	switch r.Name {
	case "small":
		return map[string]any{"spec": map[string]any{"cpu": map[string]any{"guest": 1}, "memory": map[string]any{"guest": "1Gi"}}}, nil
	case "linux":
		return map[string]any{"spec": map[string]any{}}, nil
	}
	return nil, errors.New("it does not exist")
}

func machine(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

const (
	memory   = `{"name": "memory", "rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "min": 2147483648, "message": "it needs 2 GiB"}`
	bus      = `{"name": "bus", "rule": "enum", "path": "jsonpath::.spec.domain.devices.disks[*].disk.bus", "values": ["virtio"], "message": "virtio is faster", "justWarning": true}`
	hostname = `{"name": "hostname", "rule": "string", "path": "jsonpath::.spec.hostname", "maxLength": 3, "message": "too long"}`
)

func TestEvaluate(t *testing.T) {
	own := func(rules string) string { return "annotations: {vm.kubevirt.io/validations: '[" + rules + "]'}" }
	tooSmall := vmrules.Finding{Source: "template golden/box", Rule: "memory", Field: "spec.template.spec.domain.memory.guest", Message: "it needs 2 GiB (1Gi is less than 2147483648)"}
	of := func(f vmrules.Finding, source, message string) vmrules.Finding {
		f.Source, f.Message = source, message
		return f
	}
	const annotation = "annotation vm.kubevirt.io/validations"
	for _, tc := range []struct {
		name, rules, metadata, spec string
		secret, alone               bool
		want                        vmrules.Decision
	}{
		{name: "no rules", spec: "{template: {}}"},
		{name: "what satisfies them", rules: memory, spec: "{template: {spec: {domain: {memory: {guest: 2Gi}}}}}"},
		{name: "what does not", rules: memory, spec: "{template: {spec: {domain: {memory: {guest: 1Gi}}}}}", want: vmrules.Decision{Denials: []vmrules.Finding{tooSmall}}},
		{name: "of the machine's own", metadata: own(memory), spec: "{template: {spec: {domain: {memory: {guest: 1Gi}}}}}", want: vmrules.Decision{Denials: []vmrules.Finding{of(tooSmall, annotation, tooSmall.Message)}}},
		{name: "what only warns", rules: bus, spec: "{template: {spec: {domain: {devices: {disks: [{disk: {bus: sata}}]}}}}}", want: vmrules.Decision{Warnings: []vmrules.Finding{{
			Source: "template golden/box", Rule: "bus", Field: "spec.template.spec.domain.devices.disks[*].disk.bus", Message: "virtio is faster (sata is none of virtio)",
		}}}},
		{name: "rules that are left out", rules: memory, metadata: "annotations: {vm.kubevirt.io/skip-validations: 'true'}", spec: "{template: {}}"},
		{name: "rules that cannot be read", metadata: "annotations: {vm.kubevirt.io/validations: '{}'}", spec: "{template: {}}", want: vmrules.Decision{Denials: []vmrules.Finding{{
			Source: annotation, Field: "metadata.annotations[vm.kubevirt.io/validations]", Message: "1:1: must be a list of rules",
		}}}},
		{name: "the size of an instance type", rules: memory, spec: "{instancetype: {name: small}, preference: {name: linux}, template: {}}", want: vmrules.Decision{Denials: []vmrules.Finding{tooSmall}}},
		{name: "an instance type that is not known", rules: memory, spec: "{instancetype: {name: large}, template: {}}", want: vmrules.Decision{Unevaluated: []vmrules.Finding{
			of(tooSmall, "template golden/box", `it cannot be evaluated: spec.instancetype: Not found: "VirtualMachineClusterInstancetype large": it does not exist`),
		}}},
		{name: "a preference that is not known", rules: memory, spec: "{instancetype: {name: small}, preference: {name: bsd}, template: {}}", want: vmrules.Decision{Unevaluated: []vmrules.Finding{
			of(tooSmall, "template golden/box", `it cannot be evaluated: spec.preference: Not found: "VirtualMachineClusterPreference bsd": it does not exist`),
		}}},
		{name: "where nobody knows sizes", rules: memory, alone: true, spec: "{instancetype: {name: small}, template: {}}", want: vmrules.Decision{Unevaluated: []vmrules.Finding{
			of(tooSmall, "template golden/box", "it cannot be evaluated: an instance type sets the size of the VM"),
		}}},
		{name: "an instance type is no excuse for anything but a size", rules: hostname, alone: true, spec: "{instancetype: {name: small}, template: {}}", want: vmrules.Decision{Denials: []vmrules.Finding{{
			Source: "template golden/box", Rule: "hostname", Field: "spec.template.spec.hostname", Message: "too long (there is no such field)",
		}}}},
		{name: "what may be a secret is not shown", rules: hostname, secret: true, spec: "{template: {spec: {hostname: hunter2}}}", want: vmrules.Decision{Denials: []vmrules.Finding{{
			Source: "template golden/box", Rule: "hostname", Field: "spec.template.spec.hostname", Message: "too long",
		}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := vmrules.Case{Object: machine(t, "metadata: {"+tc.metadata+"}\nspec: "+tc.spec), Namespace: "team-a", Template: "golden/box", Secret: tc.secret}
			if tc.rules != "" {
				c.Rules = "[" + tc.rules + "]"
			}
			if !tc.alone {
				c.Sizes = sizes{}
			}
			if diff := cmp.Diff(tc.want, c.Evaluate(t.Context())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSinceLeavesOutWhatWasSoBefore(t *testing.T) {
	finding := func(rule, message string) vmrules.Finding {
		return vmrules.Finding{Source: "template golden/box", Rule: rule, Message: message}
	}
	now := vmrules.Decision{Denials: []vmrules.Finding{finding("memory", "1 GiB"), finding("bus", "ide")}, Warnings: []vmrules.Finding{finding("name", "")}}
	before := vmrules.Decision{Denials: []vmrules.Finding{finding("memory", "512 MiB"), finding("name", "")}}
	want := vmrules.Decision{Denials: []vmrules.Finding{finding("bus", "ide")}, Warnings: []vmrules.Finding{}}
	if diff := cmp.Diff(want, now.Since(before)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
