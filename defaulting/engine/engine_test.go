package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/engine"
	"github.com/vmstencil/stencil/defaulting/identity"
)

// complete is a VirtualMachine with few open defaults: it has two virtio disks and four interfaces.
const complete = `{"metadata":{"name":"a"},"spec":{"unknown":{"kept":1.50},"template":{"spec":{"architecture":"amd64","domain":{"firmware":{"uuid":"u"},` +
	`"machine":{"type":"q35"},"memory":{"guest":"1Gi"},"cpu":{"cores":1},"features":{"acpi":{"enabled":true}},"devices":{` +
	`"disks":[{"name":"a","disk":{"bus":"virtio"}},{"name":"b","disk":{"bus":"virtio"}}],` +
	`"interfaces":[{"name":"n","bridge":{},"model":"virtio"},{"name":"m","bridge":{},"model":"virtio"},{"name":"o","bridge":{},"model":"virtio"},{"name":"p","bridge":{},"model":"virtio"}]}},` +
	`"volumes":[{"name":"a"},{"name":"b"}]}}}}`

func ask(t *testing.T, e *engine.Engine, request defaulting.Request) *defaulting.Response {
	t.Helper()
	if request.VM == nil {
		request.VM = json.RawMessage(complete)
	}
	response, err := e.Answer(context.Background(), &request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// repeating is a source of identities that returns each value twice.
type repeating struct{ drawn int }

func (*repeating) UUID() string { return "u" }

func (r *repeating) MAC() string {
	r.drawn++
	return fmt.Sprintf("02:00:00:00:00:%02x", (r.drawn+1)/2)
}

func TestInterfacesOfOneMachineHaveDifferentMACAddresses(t *testing.T) {
	vm := strings.NewReplacer(`"name":"n",`, `"name":"n","macAddress":"02-00-00-00-00-01",`).Replace(complete)
	e := engine.New(engine.Options{Libvirt: &fake{}, Identities: &repeating{}, Version: "test"})
	response := ask(t, e, defaulting.Request{VM: json.RawMessage(vm), Policy: defaulting.Policy{MAC: defaulting.MACGenerate}})
	var made []string
	for _, set := range response.Set {
		if strings.HasSuffix(set.Path, "macAddress") {
			made = append(made, fmt.Sprint(set.Value))
		}
	}
	if diff := gocmp.Diff([]string{"02:00:00:00:00:02", "02:00:00:00:00:03", "02:00:00:00:00:04"}, made); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

func TestThePatchMakesTheMachineOfTheAnswer(t *testing.T) {
	for name, vm := range map[string]string{
		"little is open": complete,
		"all is open":    `{"metadata":{"name":"a"},"spec":{"template":{"spec":{"domain":{"devices":{}},"volumes":[{"name":"a"}]}}}}`,
		"null fields":    `{"spec":{"template":{"spec":{"domain":{"machine":null,"cpu":null,"devices":{"disks":null}},"volumes":[{"name":"a"}]}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			response := ask(t, newEngine(&fake{}), defaulting.Request{VM: json.RawMessage(vm), Policy: defaulting.Policy{MAC: defaulting.MACGenerate}})
			text, err := json.Marshal(response.Patch)
			if err != nil {
				t.Fatal(err)
			}
			patch, err := jsonpatch.DecodePatch(text)
			if err != nil {
				t.Fatal(err)
			}
			patched, err := patch.Apply([]byte(vm))
			if err != nil {
				t.Fatalf("applying %s: %v", text, err)
			}
			if !jsonpatch.Equal(patched, response.VM) {
				t.Errorf("the patch makes\n%s\nand the answer has\n%s", patched, response.VM)
			}
		})
	}
}

func TestWhatIsWrittenFollowsThePolicy(t *testing.T) {
	no := false
	all := map[string]any{
		"domain.machine.type":                     "pc-q35-9.9",
		"domain.devices.disks[0].disk.pciAddress": "0000:01:00.0",
		"domain.devices.disks[1].disk.pciAddress": "0000:02:00.0",
		"domain.devices.interfaces[0].pciAddress": "0000:03:00.0",
		"domain.devices.interfaces[1].pciAddress": "0000:04:00.0",
		"domain.devices.interfaces[2].pciAddress": "0000:05:00.0",
		"domain.devices.interfaces[3].pciAddress": "0000:06:00.0",
	}
	moved := map[string]any{}
	for i, device := range []string{"disks[0].disk", "disks[1].disk", "interfaces[0]", "interfaces[1]", "interfaces[2]", "interfaces[3]"} {
		moved["domain.devices."+device+".pciAddress"] = fmt.Sprintf("0000:%02x:00.0", i+2)
	}
	without := func(part string) map[string]any {
		left := map[string]any{}
		for path, value := range all {
			if !strings.Contains(path, part) {
				left[path] = value
			}
		}
		return left
	}
	for _, tc := range []struct {
		name        string
		request     defaulting.Request
		libvirt     *fake
		want        map[string]any
		wantSkipped string
	}{
		{name: "everything", want: all},
		{name: "the alias stays", request: defaulting.Request{Policy: defaulting.Policy{MachineType: defaulting.MachineTypeKeep}}, want: without("machine")},
		{name: "no address", request: defaulting.Request{Policy: defaulting.Policy{PCIAddress: &no}}, want: without("pciAddress")},
		{name: "another KubeVirt", request: defaulting.Request{Cluster: defaulting.Cluster{KubeVirt: "v1.10.0"}}, want: map[string]any{},
			wantSkipped: "the cluster runs KubeVirt v1.10.0, and the defaulter reproduces 1.8 and 1.9"},
		{name: "an update to another KubeVirt", request: defaulting.Request{Cluster: defaulting.Cluster{KubeVirt: "v1.9.0", Target: "v1.10.0"}}, want: map[string]any{},
			wantSkipped: "the cluster runs KubeVirt v1.10.0"},
		{name: "the newer KubeVirt", request: defaulting.Request{Cluster: defaulting.Cluster{KubeVirt: "v1.9.3"}}, want: all},
		{name: "an update to the newer KubeVirt", request: defaulting.Request{Cluster: defaulting.Cluster{KubeVirt: "v1.8.2", Target: "v1.9.0"}}, want: all},
		{name: "plugins", request: defaulting.Request{Cluster: defaulting.Cluster{KubeVirt: "v1.9.0", Plugins: true}}, want: map[string]any{"domain.machine.type": "pc-q35-9.9"},
			wantSkipped: "plugins of KubeVirt can change the VM"},
		{name: "nodes of other architectures", request: defaulting.Request{Cluster: defaulting.Cluster{KubeVirt: "v1.9.0", CrossArchitecture: true}}, want: map[string]any{"domain.machine.type": "pc-q35-9.9"},
			wantSkipped: "without its graphics device"},
		{name: "a network from a resource claim", request: defaulting.Request{VM: json.RawMessage(strings.Replace(complete, `"domain":`, `"networks":[{"name":"n","resourceClaim":{"claimName":"c"}}],"domain":`, 1))},
			want: map[string]any{"domain.machine.type": "pc-q35-9.9"}, wantSkipped: "a resource claim"},
		{name: "a function of a node whose place depends on it", request: defaulting.Request{
			VM:      json.RawMessage(strings.NewReplacer(`"cores":1`, `"cores":1,"dedicatedCpuPlacement":true`, `"name":"n","bridge":{},"model":"virtio"`, `"name":"n","sriov":{}`).Replace(complete)),
			Cluster: defaulting.Cluster{NUMAAwarePCI: true}}, want: map[string]any{"domain.machine.type": "pc-q35-9.9"}, wantSkipped: "NUMA-aware"},
		{name: "an update between releases that differ", libvirt: &fake{moves: true}, request: defaulting.Request{
			VM: json.RawMessage(strings.Replace(complete, `"q35"`, `"pc"`, 1)), Cluster: defaulting.Cluster{KubeVirt: "v1.8.2", Target: "v1.9.0"}},
			want: map[string]any{}, wantSkipped: "while KubeVirt is updated from v1.8.2 to v1.9.0"},
		{name: "an update between releases that do not differ", libvirt: &fake{moves: true}, request: defaulting.Request{
			VM: json.RawMessage(strings.Replace(complete, `"q35"`, `"pc"`, 1)), Cluster: defaulting.Cluster{KubeVirt: "v1.8.4", Target: "v1.9.0"}},
			want: moved},
		{name: "an address of a disk that is plugged in later", request: defaulting.Request{VM: json.RawMessage(strings.NewReplacer(
			`{"name":"b","disk":{"bus":"virtio"}}`, `{"name":"b","disk":{"bus":"virtio","pciAddress":"0000:01:00.0"}}`,
			`{"name":"b"}`, `{"name":"b","dataVolume":{"name":"b","hotpluggable":true}}`).Replace(complete))},
			want: map[string]any{
				"domain.machine.type":                     "pc-q35-9.9",
				"domain.devices.interfaces[0].pciAddress": "0000:02:00.0", "domain.devices.interfaces[1].pciAddress": "0000:03:00.0",
				"domain.devices.interfaces[2].pciAddress": "0000:04:00.0", "domain.devices.interfaces[3].pciAddress": "0000:05:00.0",
			}, wantSkipped: "requests the address"},
		{name: "another patch of the same KubeVirt", request: defaulting.Request{Cluster: defaulting.Cluster{KubeVirt: "v1.8.0"}}, want: all},
		{name: "a bridge that moves nothing", libvirt: &fake{bridge: true}, want: without("interfaces"), wantSkipped: "the device is behind a bridge"},
		{name: "a bridge that moves what will be written", libvirt: &fake{bridge: true, moves: true}, want: map[string]any{"domain.machine.type": "pc-q35-9.9"},
			wantSkipped: "would be others on the next start"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			response := ask(t, newEngine(cmp.Or(tc.libvirt, &fake{})), tc.request)
			if diff := gocmp.Diff(tc.want, filled(response)); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			text, err := json.Marshal(response.Skipped)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), tc.wantSkipped) {
				t.Errorf("%s does not say %q", text, tc.wantSkipped)
			}
		})
	}
}

func TestWhichKubeVirtIsReproduced(t *testing.T) {
	for name, tc := range map[string]struct {
		image   string
		cluster defaulting.Cluster
		want    string
		// keeps is the reason why the machine type is not pinned.
		keeps string
	}{
		"the newest, if nothing is known":       {want: "v1.9.0"},
		"that of the image":                     {image: "v1.8.2", want: "v1.8.2"},
		"that of the cluster":                   {image: "v1.8.2", cluster: defaulting.Cluster{KubeVirt: "v1.8.1"}, want: "v1.8.2"},
		"the patch release of the cluster":      {cluster: defaulting.Cluster{KubeVirt: "v1.8.7"}, want: "v1.8.4"},
		"a newer one than the image":            {image: "v1.8.2", cluster: defaulting.Cluster{KubeVirt: "v1.9.0"}, want: "v1.9.0", keeps: "the libvirt and QEMU of v1.8.2"},
		"both of an update":                     {cluster: defaulting.Cluster{KubeVirt: "v1.8.2", Target: "v1.9.1"}, want: "v1.8.2,v1.9.0"},
		"both of an update, from the old image": {image: "v1.8.2", cluster: defaulting.Cluster{KubeVirt: "v1.8.2", Target: "v1.9.1"}, want: "v1.8.2,v1.9.0", keeps: "runs KubeVirt v1.9.1"},
	} {
		t.Run(name, func(t *testing.T) {
			e := engine.New(engine.Options{Libvirt: &fake{}, Identities: &counted{}, KubeVirt: tc.image})
			response := ask(t, e, defaulting.Request{Cluster: tc.cluster})
			if got := response.Environment.KubeVirt; got != tc.want {
				t.Errorf("reproduced is %s, want %s", got, tc.want)
			}
			written := filled(response)
			if pinned := written["domain.machine.type"] != nil; pinned == (tc.keeps != "") || written["domain.devices.disks[0].disk.pciAddress"] == nil {
				t.Errorf("written: %v", written)
			}
			if text := fmt.Sprint(response.Skipped); !strings.Contains(text, tc.keeps) {
				t.Errorf("%s does not contain %q", text, tc.keeps)
			}
		})
	}
}

func TestADefaulterWithAnotherQEMUDoesNotPin(t *testing.T) {
	e := engine.New(engine.Options{Libvirt: &fake{}, Identities: &counted{}, NoPins: true})
	for _, policy := range []defaulting.MachineTypePolicy{"", defaulting.MachineTypePin} {
		_, err := e.Answer(context.Background(), &defaulting.Request{VM: json.RawMessage(complete), Policy: defaulting.Policy{MachineType: policy}})
		var problem *defaulting.Problem
		if !errors.As(err, &problem) || problem.Status != http.StatusBadRequest || !strings.Contains(problem.Detail, "set defaulting.machineType of the chart to keep") {
			t.Errorf("policy %q: %v, want 400", policy, err)
		}
	}
	written := filled(ask(t, e, defaulting.Request{Policy: defaulting.Policy{MachineType: defaulting.MachineTypeKeep}}))
	if written["domain.machine.type"] != nil || written["domain.devices.disks[0].disk.pciAddress"] == nil {
		t.Errorf("written: %v", written)
	}
}

func TestAPreferenceThatIsNotKnownKeepsDefaultsOut(t *testing.T) {
	vm := `{"spec":{"preference":{"name":"fedora"},"template":{"spec":{"domain":{"devices":{"disks":[{"name":"a","disk":{}}]}}}}}}`
	response := ask(t, newEngine(&fake{}), defaulting.Request{VM: json.RawMessage(vm)})
	if diff := gocmp.Diff(map[string]any{"domain.machine.type": "pc-q35-9.9"}, filled(response)); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestARunningMachineIsGivenAddressesForNewDisksOnly(t *testing.T) {
	grown := strings.Replace(complete, `{"name":"b","disk":{"bus":"virtio"}}]`, `{"name":"b","disk":{"bus":"virtio"}},{"name":"c","disk":{"bus":"virtio"}},{"name":"d","disk":{"bus":"virtio"}}]`, 1)
	request := defaulting.Request{VM: json.RawMessage(grown), OldVM: json.RawMessage(complete), Operation: defaulting.Update, Running: true}
	want := map[string]any{"domain.devices.disks[2].disk.pciAddress": "0000:07:00.0", "domain.devices.disks[3].disk.pciAddress": "0000:08:00.0"}
	if diff := gocmp.Diff(want, filled(ask(t, newEngine(&fake{}), request))); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	request.VM = json.RawMessage(complete)
	if response := ask(t, newEngine(&fake{}), request); len(response.Patch) > 0 {
		t.Errorf("a machine without a new disk is patched: %v", response.Patch)
	}
	request.OldVM = nil
	var problem *defaulting.Problem
	if _, err := newEngine(&fake{}).Answer(context.Background(), &request); !errors.As(err, &problem) || problem.Status != 400 {
		t.Errorf("without the old machine: %v, want 400", err)
	}
}

func TestWhatIsRemembered(t *testing.T) {
	f := &fake{}
	e := newEngine(f)
	serve := func(vm string) string {
		t.Helper()
		text, err := e.Serve(context.Background(), []byte(`{"vm":`+vm+`}`))
		if err != nil {
			t.Fatal(err)
		}
		var response defaulting.Response
		if err := json.Unmarshal(text, &response); err != nil {
			t.Fatal(err)
		}
		return string(response.Cache)
	}
	renamed := strings.Replace(complete, `"name":"a"}`, `"name":"other"}`, 1)
	shared := strings.Replace(complete, `"disk":{"bus":"virtio"}`, `"shareable":true,"disk":{"bus":"virtio"}`, 1)
	larger := strings.Replace(complete, `{"name":"b","disk":{"bus":"virtio"}}`, `{"name":"b","disk":{"bus":"virtio","readonly":true}}`, 1)
	for _, step := range []struct {
		vm, want string
		defines  int64
	}{
		{complete, "miss", 1}, {complete, "hit", 1}, {renamed, "hit", 1}, {shared, "hit", 1}, {larger, "miss", 2},
	} {
		if got := serve(step.vm); got != step.want || f.defines.Load() != step.defines {
			t.Errorf("%s: %s after %d defines, want %s after %d", step.vm, got, f.defines.Load(), step.want, step.defines)
		}
	}
	f.qemu = "10"
	if got := serve(complete); got != "miss" {
		t.Errorf("with another QEMU it is a %s", got)
	}
}

// TestEachMachineOfARememberedAnswerIsItself sends one request several times, as the VirtualMachines of one
// template do.
func TestEachMachineOfARememberedAnswerIsItself(t *testing.T) {
	anonymous := `{"vm":` + strings.Replace(complete, `"firmware":{"uuid":"u"},`, "", 1)
	for name, tc := range map[string]struct {
		body string
		// random are the paths that must have a different value each time.
		random []string
		hits   int64
	}{
		"a UUID is made anew": {body: anonymous + `}`, random: []string{"domain.firmware.uuid"}, hits: 2},
		"MAC addresses are drawn by looking at the machine": {
			body: anonymous + `,"policy":{"mac":"generate"}}`,
			random: []string{
				"domain.firmware.uuid", "domain.devices.interfaces[0].macAddress", "domain.devices.interfaces[1].macAddress",
				"domain.devices.interfaces[2].macAddress", "domain.devices.interfaces[3].macAddress",
			},
		},
		"nothing is random": {body: `{"vm":` + complete + `}`, hits: 2},
	} {
		t.Run(name, func(t *testing.T) {
			e := engine.New(engine.Options{Libvirt: &fake{}, Identities: identity.Random{}, Version: "test"})
			used := map[any]bool{}
			var first map[string]any
			for range 3 {
				text, err := e.Serve(context.Background(), []byte(tc.body))
				if err != nil {
					t.Fatal(err)
				}
				var response defaulting.Response
				if err := json.Unmarshal(text, &response); err != nil {
					t.Fatal(err)
				}
				written := filled(&response)
				for _, path := range tc.random {
					value := written[path]
					if used[value] {
						t.Errorf("two machines have %v in %s", value, path)
					}
					used[value] = true
					if strings.Count(string(text), fmt.Sprint(value)) != 3 {
						t.Errorf("%s is not %v in the patch, the list and the machine: %s", path, value, text)
					}
					delete(written, path)
				}
				if first == nil {
					first = written
				}
				if diff := gocmp.Diff(first, written); diff != "" {
					t.Errorf("the rest is not the same (-first +now):\n%s", diff)
				}
			}
			if got := e.Counters().AnswerHits.Load(); got != tc.hits {
				t.Errorf("%d answers were remembered, want %d", got, tc.hits)
			}
		})
	}
}

func TestAFailureIsNotRemembered(t *testing.T) {
	f := &fake{fail: defaulting.Unavailable("libvirt is being started")}
	e := newEngine(f)
	if _, err := e.Answer(context.Background(), &defaulting.Request{VM: json.RawMessage(complete)}); err == nil {
		t.Fatal("a failure was answered")
	}
	f.fail = nil
	ask(t, e, defaulting.Request{})
}

func TestWhoeverAsksForOneShapeWaitsForOneDefine(t *testing.T) {
	f := &fake{}
	e := newEngine(f)
	var asking sync.WaitGroup
	for range 100 {
		asking.Go(func() { ask(t, e, defaulting.Request{}) })
	}
	asking.Wait()
	if got := f.defines.Load(); got != 1 {
		t.Errorf("libvirt was asked %d times", got)
	}
}

func TestAMachineWithoutTemplateIsLeftAlone(t *testing.T) {
	response := ask(t, newEngine(&fake{}), defaulting.Request{VM: json.RawMessage(`{"spec":{}}`)})
	if len(response.Patch) > 0 || response.Cache != defaulting.Unused {
		t.Errorf("got %+v", response)
	}
}
