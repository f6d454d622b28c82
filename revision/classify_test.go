package revision_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/revision"
)

func TestDecide(t *testing.T) {
	// One for all, as in a pass: what it stores of one copy must not change the decision about another.
	decider := revision.NewDecider()
	const name = "web-six-" + uid + "-2"
	type decision struct {
		Class   revision.Class
		Action  revision.Action
		Message string
		Data    string
		Labels  map[string]string
	}
	synthesized := func(namespace string) string {
		if namespace != "" {
			namespace = `"namespace":"` + namespace + `",`
		}
		return `{"name":"six",` + namespace + `"uid":"` + uid + `","generation":2}`
	}
	target := func(kind, metadata, spec string) string {
		return `{"apiVersion":"instancetype.kubevirt.io/v1beta1","kind":"` + kind + `","metadata":` + metadata + `,"spec":` + spec + `}`
	}
	named := func(name string) func(*revision.Reference) {
		return func(r *revision.Reference) { r.ObjectName = name }
	}
	for _, tc := range []struct {
		name, revision, data string
		labels               map[string]string
		references           []revision.Reference
		want                 decision
	}{
		{name: "a current copy stays", data: whole("v1beta1", clusterType, sixSpec), labels: labels(clusterType), want: decision{Class: revision.Current, Action: revision.Retain}},
		{name: "every field of the target version", data: whole("v1beta1", clusterType, betaSpec), labels: labels(clusterType), want: decision{Class: revision.Current, Action: revision.Retain}},
		{name: "without labels, it is relabelled", data: whole("v1beta1", clusterType, sixSpec), want: decision{Class: revision.Unlabelled, Action: revision.Relabel, Data: target(clusterType, metadata, sixSpec), Labels: labels(clusterType)}},
		{name: "with a wrong version, it is relabelled", data: whole("v1beta1", clusterType, sixSpec), labels: labels(clusterType, revision.LabelVersion, "v1alpha2"), want: decision{Class: revision.Unlabelled, Action: revision.Relabel, Data: target(clusterType, metadata, sixSpec), Labels: labels(clusterType)}},
		{name: "without the name, it is relabelled", data: whole("v1beta1", clusterType, sixSpec), labels: labels(clusterType, revision.LabelName, ""), want: decision{Class: revision.Unlabelled, Action: revision.Relabel, Data: target(clusterType, metadata, sixSpec), Labels: labels(clusterType)}},
		{name: "v1alpha2", data: whole("v1alpha2", clusterType, fullSpec), want: decision{Class: revision.OldObject, Action: revision.Replace, Data: target(clusterType, metadata, fullSpec), Labels: labels(clusterType)}},
		{name: "a label that claims the target version does not make it current", data: whole("v1alpha2", clusterType, sixSpec), labels: labels(clusterType), want: decision{Class: revision.OldObject, Action: revision.Replace, Data: target(clusterType, metadata, sixSpec), Labels: labels(clusterType)}},
		{name: "v1alpha1, whole", data: whole("v1alpha1", clusterType, sixSpec), want: decision{Class: revision.OldObject, Action: revision.Replace, Data: target(clusterType, metadata, sixSpec), Labels: labels(clusterType)}},
		{name: "a preference with volumes", data: whole("v1alpha2", clusterPreference, coresVolumesSpec), want: decision{Class: revision.OldObject, Action: revision.Replace, Data: target(clusterPreference, metadata, coresVolumesSpec), Labels: labels(clusterPreference)}},
		{name: "v1alpha1 has no volumes", data: whole("v1alpha1", clusterPreference, coresVolumesSpec), want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: `spec: unknown field "volumes"`}},
		{name: "a SpecRevision gets the name of its reference", data: specRevision(sixSpec), references: []revision.Reference{reference(clusterType)}, want: decision{Class: revision.OldSpec, Action: revision.Replace, Data: target(clusterType, synthesized(""), sixSpec), Labels: labels(clusterType)}},
		{name: "of a namespaced kind, with the namespace", data: specRevision(sixSpec), references: []revision.Reference{reference(namespacedType)}, want: decision{Class: revision.OldSpec, Action: revision.Replace, Data: target(namespacedType, synthesized("team-a"), sixSpec), Labels: labels(namespacedType)}},
		{name: "of a preference", data: specRevision(coresSpec), references: []revision.Reference{reference(clusterPreference)}, want: decision{Class: revision.OldSpec, Action: revision.Replace, Data: target(clusterPreference, synthesized(""), coresSpec), Labels: labels(clusterPreference)}},
		{name: "an empty preference", data: specRevision(`{}`), references: []revision.Reference{reference(clusterPreference)}, want: decision{Class: revision.OldSpec, Action: revision.Replace, Data: target(clusterPreference, synthesized(""), `{}`), Labels: labels(clusterPreference)}},
		{name: "an instance type that is no preference", data: specRevision(sixSpec), references: []revision.Reference{reference(clusterPreference)}, want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: "spec: unknown field \"cpu.guest\"\nunknown field \"memory\""}},
		{name: "a SpecRevision without a reference has no name", data: specRevision(sixSpec), want: decision{Class: revision.OldSpec, Action: revision.Skip, Message: "no VirtualMachine, snapshot or start revision refers to it, so the name of its instance type or preference is not known"}},
		{name: "two names", data: specRevision(sixSpec), references: []revision.Reference{reference(clusterType), reference(clusterType, named("eight"))}, want: decision{Class: revision.OldSpec, Action: revision.Skip, Message: "it is referred to as VirtualMachineClusterInstancetype eight (VirtualMachine web) and VirtualMachineClusterInstancetype six (VirtualMachine web)"}},
		{name: "a VM that has another instance type now", data: specRevision(sixSpec), references: []revision.Reference{reference(clusterType, named("eight"))}, want: decision{Class: revision.OldSpec, Action: revision.Skip, Message: "its name does not contain that of VirtualMachineClusterInstancetype eight, which refers to it"}},
		{name: "a name of one's own", revision: "mine", data: specRevision(sixSpec), references: []revision.Reference{reference(clusterType)}, want: decision{Class: revision.OldSpec, Action: revision.Skip, Message: "its name does not end in the uid and the generation of VirtualMachineClusterInstancetype six"}},
		{name: "both families", data: specRevision(`{}`), references: []revision.Reference{reference(clusterType), reference(clusterPreference)}, want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: "it is referred to as an instance type and as a preference"}},
		{name: "an unknown field", data: whole("v1alpha2", clusterType, `{"cpu":{"guest":1,"sockets":2},"memory":{"guest":"1Gi"}}`), want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: `spec: unknown field "cpu.sockets"`}},
		{name: "a field of a later version", data: whole("v1alpha2", clusterType, betaSpec), want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: "spec: unknown field \"annotations\"\nunknown field \"cpu.maxSockets\"\nunknown field \"memory.overcommitPercent\"\nunknown field \"memory.maxGuest\"\nunknown field \"nodeSelector\"\nunknown field \"schedulerName\"\nunknown field \"ioThreads\""}},
		{name: "another case of a field", data: whole("v1alpha2", clusterType, `{"CPU":{"guest":1},"memory":{"guest":"1Gi"}}`), want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: `spec: unknown field "CPU"`}},
		{name: "a field twice", data: whole("v1alpha2", clusterType, `{"cpu":{"guest":1,"guest":2},"memory":{"guest":"1Gi"}}`), want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: `spec: duplicate field "cpu.guest"`}},
		{name: "a later topology in an old preference", data: whole("v1alpha2", clusterPreference, `{"cpu":{"preferredCPUTopology":"spread"}}`), want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: `spec: cpu.preferredCPUTopology: "spread" is not known`}},
		{name: "without a size", data: whole("v1alpha2", clusterType, `{}`), want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: "spec: cpu and memory are required"}},
		{name: "without a spec", data: `{"apiVersion":"instancetype.kubevirt.io/v1beta1","kind":"` + clusterType + `","metadata":{"name":"x"}}`, want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: "spec: is missing"}},
		{name: "a later version", data: whole("v1", clusterType, sixSpec), want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: `apiVersion "instancetype.kubevirt.io/v1" is not known`}},
		{name: "another kind", data: whole("v1beta1", "VirtualMachine", sixSpec), want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: `kind "VirtualMachine" is not known`}},
		{name: "referred to as the other family", data: whole("v1beta1", clusterType, sixSpec), references: []revision.Reference{reference(clusterPreference)}, want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: "kind VirtualMachineClusterInstancetype is referred to as a preference"}},
		{name: "no base64", data: `{"apiVersion":"instancetype.kubevirt.io/v1alpha1","spec":{"cpu":{}}}`, want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: "there is no kind, and spec is not base64"}},
		{name: "a copy that is larger than what is stored", data: whole("v1beta1", clusterType, largeSpec), want: decision{Class: revision.Unlabelled, Action: revision.Relabel, Data: target(clusterType, metadata, largeSpec), Labels: labels(clusterType)}},
		{name: "no JSON", data: `null`, want: decision{Class: revision.Undecodable, Action: revision.Skip, Message: `apiVersion "" is not known`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.revision == "" {
				tc.revision = name
			}
			for _, attempt := range []string{"first", "second"} {
				d := decider.Decide(revision.Revision{Name: tc.revision, Labels: tc.labels, Data: []byte(tc.data)}, tc.references)
				got := decision{Class: d.Class, Action: d.Action, Message: d.Message}
				if d.Converted != nil {
					got.Data, got.Labels = string(d.Converted.Data), d.Converted.Labels
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s decision (-want +got):\n%s", attempt, diff)
				}
			}
		})
	}
}

// A conversion of a conversion changes nothing, so that a repetition after a crash is harmless.
func TestConvertedCopiesAreCurrent(t *testing.T) {
	decider := revision.NewDecider()
	for name, data := range map[string]string{"SpecRevision": specRevision(fullSpec), "v1alpha1": whole("v1alpha1", clusterType, fullSpec), "v1alpha2": whole("v1alpha2", clusterType, fullSpec)} {
		one := revision.Revision{Name: "web-six-" + uid + "-2", Data: []byte(data)}
		references := []revision.Reference{reference(clusterType)}
		d := decider.Decide(one, references)
		if d.Converted == nil {
			t.Fatalf("%s: %s", name, d.Message)
		}
		if again := decider.Decide(revision.Revision{Name: one.Name, Labels: d.Converted.Labels, Data: d.Converted.Data}, references); again.Class != revision.Current {
			t.Errorf("%s is %s (%s) after the conversion, want Current", name, again.Class, again.Message)
		}
	}
}

func TestConcerns(t *testing.T) {
	for _, tc := range []struct {
		name, data string
		labels     map[string]string
		want       bool
	}{
		{"a SpecRevision", specRevision(sixSpec), nil, true},
		{"an object", whole("v1beta1", clusterType, sixSpec), nil, true},
		{"a later version", whole("v7", clusterType, sixSpec), nil, true},
		{"a label alone", `{}`, labels(clusterType), true},
		{"a start revision that mentions the group", `{"spec":{"x":"instancetype.kubevirt.io/v1beta1"}}`, nil, false},
		{"that of a DaemonSet", `{"spec":{"template":{}}}`, nil, false},
	} {
		if got := revision.Concerns(tc.labels, []byte(tc.data)); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestProveFindsEveryDifference(t *testing.T) {
	for _, tc := range []struct{ name, before, after, want string }{
		{"a larger size", sixSpec, `{"cpu":{"guest":8},"memory":{"guest":"6Gi"}}`, "the spec differs"},
		{"an added empty field", sixSpec, `{"cpu":{"guest":6,"model":""},"memory":{"guest":"6Gi"}}`, "the spec differs"},
		{"a false pointer", sixSpec, `{"cpu":{"guest":6,"dedicatedCPUPlacement":false},"memory":{"guest":"6Gi"}}`, "the spec differs"},
		{"the same number written otherwise", sixSpec, `{"cpu":{"guest":6.0},"memory":{"guest":"6Gi"}}`, "spec: json: cannot unmarshal number 6.0 into Go struct field cpuV1beta1.cpu.cpuV1alpha.guest of type uint32"},
		{"nothing", sixSpec, sixSpec, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := revision.Decode([]byte(whole("v1alpha2", clusterType, tc.before)), revision.UnknownFamily)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := s.Prove([]byte(whole("v1beta1", clusterType, tc.after))); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	s, err := revision.Decode([]byte(whole("v1alpha2", clusterType, sixSpec)), revision.UnknownFamily)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Prove([]byte(whole("v1alpha2", clusterType, sixSpec))); err == nil || err.Error() != "it has the version v1alpha2" {
		t.Errorf("a copy in an old version: %v", err)
	}
}

func TestReferencesOf(t *testing.T) {
	holder := revision.Holder{Kind: revision.VirtualMachine, Name: "web"}
	one := func(changes ...func(*revision.Reference)) revision.Reference {
		r := revision.Reference{Holder: holder, Family: revision.Instancetype, ObjectKind: clusterType, ObjectName: "six", Revision: "r1"}
		for _, change := range changes {
			change(&r)
		}
		return r
	}
	fromStatus := func(name string) func(*revision.Reference) {
		return func(r *revision.Reference) { r.Revision, r.FromStatus = name, true }
	}
	for _, tc := range []struct {
		name, vm  string
		want      revision.References
		wantError string
	}{
		{name: "none", vm: `{"spec":{}}`},
		{name: "the spec", vm: `{"spec":{"instancetype":{"name":"six","revisionName":"r1"}}}`, want: revision.References{References: []revision.Reference{one()}}},
		{name: "the status", vm: `{"spec":{"instancetype":{"name":"six"}},"status":{"instancetypeRef":{"controllerRevisionRef":{"name":"r2"}}}}`, want: revision.References{References: []revision.Reference{one(fromStatus("r2"))}}},
		{name: "both, equal", vm: `{"spec":{"instancetype":{"name":"six","revisionName":"r1"}},"status":{"instancetypeRef":{"controllerRevisionRef":{"name":"r1"}}}}`, want: revision.References{References: []revision.Reference{one()}}},
		{name: "both, different", vm: `{"spec":{"instancetype":{"name":"six","revisionName":"r1"}},"status":{"instancetypeRef":{"controllerRevisionRef":{"name":"r2"}}}}`, want: revision.References{References: []revision.Reference{one(), one(fromStatus("r2"))}, Mismatched: []string{"spec.instancetype"}}},
		{name: "a live object", vm: `{"spec":{"instancetype":{"name":"six"},"preference":{"name":"p"}}}`, want: revision.References{Unpinned: []string{"spec.instancetype", "spec.preference"}}},
		{name: "a namespaced preference", vm: `{"spec":{"preference":{"kind":"virtualmachinepreferences","name":"p","revisionName":"r1"}}}`, want: revision.References{References: []revision.Reference{one(func(r *revision.Reference) {
			r.Family, r.ObjectKind, r.ObjectName, r.ObjectNamespace = revision.Preference, "VirtualMachinePreference", "p", "team-a"
		})}}},
		{name: "another kind", vm: `{"spec":{"instancetype":{"kind":"Pod","name":"six"}}}`, wantError: `VirtualMachine web: spec.instancetype.kind: Unsupported value: "Pod": supported values: "VirtualMachineClusterInstancetype", "VirtualMachineInstancetype"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var vm map[string]any
			if err := json.Unmarshal([]byte(tc.vm), &vm); err != nil {
				t.Fatal(err)
			}
			got, err := revision.ReferencesOf(holder, "team-a", vm)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tc.wantError {
				t.Errorf("error %q, want %q", text, tc.wantError)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
