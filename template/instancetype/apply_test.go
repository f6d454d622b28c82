package instancetype_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	sizing "github.com/vmstencil/stencil/template/instancetype"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestApply(t *testing.T) {
	const four = "{spec: {cpu: {guest: 4}, memory: {guest: 8Gi}}}"
	type size struct {
		Sockets, Cores, Threads any
		Guest, Requested        any
	}
	for _, tc := range []struct {
		name, template, instancetype, preference string
		want                                     size
		wantError                                string
	}{
		{name: "without a preference, sockets", instancetype: four, want: size{int64(4), int64(1), int64(1), "8Gi", "8Gi"}},
		{name: "one CPU is one of each, whatever is preferred", instancetype: "{spec: {cpu: {guest: 1}, memory: {guest: 1Gi}}}", preference: "{spec: {cpu: {preferredCPUTopology: cores}}}", want: size{int64(1), int64(1), int64(1), "1Gi", "1Gi"}},
		{name: "cores", instancetype: four, preference: "{spec: {cpu: {preferredCPUTopology: cores}}}", want: size{int64(1), int64(4), int64(1), "8Gi", "8Gi"}},
		{name: "threads, as older preferences say it", instancetype: four, preference: "{spec: {cpu: {preferredCPUTopology: preferThreads}}}", want: size{int64(1), int64(1), int64(4), "8Gi", "8Gi"}},
		{name: "spread", instancetype: four, preference: "{spec: {cpu: {preferredCPUTopology: spread}}}", want: size{int64(2), int64(2), int64(1), "8Gi", "8Gi"}},
		{name: "spread by another ratio, as older preferences say it", instancetype: four, preference: "{spec: {preferSpreadSocketToCoreRatio: 4, cpu: {preferredCPUTopology: preferSpread}}}", want: size{int64(1), int64(4), int64(1), "8Gi", "8Gi"}},
		{name: "spread across cores and threads", instancetype: four, preference: "{spec: {cpu: {preferredCPUTopology: spread, spreadOptions: {across: CoresThreads, ratio: 2}}}}", want: size{int64(1), int64(2), int64(2), "8Gi", "8Gi"}},
		{name: "spread across everything", instancetype: "{spec: {cpu: {guest: 8}, memory: {guest: 8Gi}}}", preference: "{spec: {cpu: {preferredCPUTopology: spread, spreadOptions: {across: SocketsCoresThreads}}}}", want: size{int64(2), int64(2), int64(2), "8Gi", "8Gi"}},
		{name: "memory that is overcommitted", instancetype: "{spec: {cpu: {guest: 4}, memory: {guest: 8Gi, overcommitPercent: 50}}}", want: size{int64(4), int64(1), int64(1), "8Gi", "4Gi"}},
		{name: "a request of one's own stays", template: "{spec: {domain: {resources: {requests: {memory: 1Gi}}}}}", instancetype: four, want: size{int64(4), int64(1), int64(1), "8Gi", "1Gi"}},
		{name: "an instance type that is none", instancetype: "{spec: {cpu: many}}", wantError: "reading the instance type: json: cannot unmarshal string into Go struct field VirtualMachineInstancetypeSpec.cpu of type v1beta1.CPUInstancetype"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			template := object(t, tc.template)
			before := object(t, tc.template)
			sized, err := sizing.Apply(template, object(t, tc.instancetype), object(t, tc.preference))
			if diff := cmp.Diff(before, template); diff != "" {
				t.Errorf("the template was changed (-before +after):\n%s", diff)
			}
			if tc.wantError != "" {
				if err == nil || err.Error() != tc.wantError {
					t.Fatalf("error %v, want %s", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			domain := sized["spec"].(map[string]any)["domain"].(map[string]any)
			cpu := domain["cpu"].(map[string]any)
			got := size{cpu["sockets"], cpu["cores"], cpu["threads"], domain["memory"].(map[string]any)["guest"], domain["resources"].(map[string]any)["requests"].(map[string]any)["memory"]}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSizes(t *testing.T) {
	for _, tc := range []struct {
		name, guest string
		want        sizing.Size
		wantError   string
	}{
		{name: "nothing", guest: "{domain: {}}", want: sizing.Size{CPUs: 1}},
		{name: "sockets, cores and threads", guest: "{domain: {cpu: {sockets: 2, cores: 3, threads: 2}, memory: {guest: 1Gi}}}", want: sizing.Size{CPUs: 12, Memory: 1 << 30}},
		{name: "what is 0 is 1", guest: "{domain: {cpu: {sockets: 0, cores: 4}}}", want: sizing.Size{CPUs: 4}},
		{name: "the limit of the pod, before its request", guest: "{domain: {resources: {requests: {cpu: 1, memory: 1Ki}, limits: {cpu: 2500m, memory: 2Ki}}}}", want: sizing.Size{CPUs: 3, Memory: 1024}},
		{name: "the request of the pod", guest: "{domain: {cpu: {model: host}, resources: {requests: {cpu: 2}, limits: {memory: 2Ki}}}}", want: sizing.Size{CPUs: 2, Memory: 2048}},
		{name: "a guest of its own, whatever its pod", guest: "{domain: {cpu: {cores: 2}, memory: {guest: 4Ki}, resources: {requests: {cpu: 8, memory: 8Ki}}}}", want: sizing.Size{CPUs: 2, Memory: 4096}},
		{name: "a memory that is none", guest: "{domain: {memory: {guest: lots}}}", wantError: "reading the memory lots: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := sizing.Guest(object(t, tc.guest))
			if tc.wantError != "" {
				if err == nil || err.Error() != tc.wantError {
					t.Errorf("error %v, want %s", err, tc.wantError)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
	if got, err := sizing.Instance(object(t, "{spec: {cpu: {guest: 4}, memory: {guest: 8Gi}}}")); err != nil || got != (sizing.Size{CPUs: 4, Memory: 8 << 30}) {
		t.Errorf("an instance type: %+v, %v", got, err)
	}
	if _, err := sizing.Instance(object(t, "{spec: {cpu: many}}")); err == nil || err.Error() != "reading the instance type: json: cannot unmarshal string into Go struct field VirtualMachineInstancetypeSpec.cpu of type v1beta1.CPUInstancetype" {
		t.Errorf("an instance type that is none: %v", err)
	}
}
