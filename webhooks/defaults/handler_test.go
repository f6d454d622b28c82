package defaults

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/guestdefaults"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// environment is the environment of the fake defaulter.
var environment = defaulting.Environment{Defaulter: "v1", Libvirt: "11.3.0", QEMU: "9.2.0", KubeVirt: "v1.8.2", Image: "v1.8.2", Reproduces: []string{"v1.8.2", "v1.9.0"}}

// stamped is the record that the fake defaulter produces.
const stamped = `{"defaulter":"v1","libvirt":"11.3.0","qemu":"9.2.0","kubevirt":"v1.8.2","machine":"pc-q35-9.2"}`

// wrote is the record after the defaulter versioned the machine type and assigned an address to the disk.
var wrote = strings.TrimSuffix(stamped, "}") + `,"alias":"q35","addresses":{"disks/root":"0000:01:00.0"}}`

// unpinned is the record after stencilctl removed these defaults.
const unpinned = `{"defaulter":"v1","libvirt":"11.3.0","qemu":"9.2.0","kubevirt":"v1.8.2","unpinned":true}`

// defaulter is a fake that pins the machine type and assigns an address to each virtio disk.
type defaulter struct {
	err error
	// rejection is a reason for defaults that are left open.
	rejection string
	asked     []*defaulting.Request
}

func (d *defaulter) Defaults(_ context.Context, request *defaulting.Request) (*defaulting.Response, error) {
	d.asked = append(d.asked, request)
	if d.err != nil {
		return nil, d.err
	}
	response := &defaulting.Response{Environment: environment, Skipped: []defaulting.Skipped{{Path: "spec", Reason: "none"}}}
	if d.rejection != "" {
		response.Skipped = append(response.Skipped, defaulting.Skipped{Path: "spec.template.spec.domain.machine.type", Reason: d.rejection})
	}
	var object map[string]any
	if err := json.Unmarshal(request.VM, &object); err != nil {
		return nil, err
	}
	set := func(path, pointer string, value any) {
		response.Set = append(response.Set, defaulting.Set{Path: path, Value: value, Source: defaulting.FromLibvirt})
		response.Patch = append(response.Patch, defaulting.PatchOperation{Op: "add", Path: pointer, Value: value})
	}
	domain := machine.MapAt(object, guestdefaults.Domain...)
	if machine := machine.MapAt(domain, "machine"); machine["type"] == "q35" && !request.Running {
		set("spec.template.spec.domain.machine.type", "/spec/template/spec/domain/machine/type", "pc-q35-9.2")
	}
	disks, _ := machine.MapAt(domain, "devices")["disks"].([]any)
	for i, item := range disks {
		if target := machine.MapAt(item.(map[string]any), "disk"); target != nil && target["pciAddress"] == nil && !request.Running {
			index := string(rune('0' + i))
			set("spec.template.spec.domain.devices.disks["+index+"].disk.pciAddress", "/spec/template/spec/domain/devices/disks/"+index+"/disk/pciAddress", "0000:0"+string(rune('1'+i))+":00.0")
		}
	}
	if !request.PatchOnly {
		operations, err := json.Marshal(response.Patch)
		if err != nil {
			return nil, err
		}
		decoded, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			return nil, err
		}
		if response.VM, err = decoded.Apply(request.VM); err != nil {
			return nil, err
		}
	}
	return response, nil
}

type cluster struct{ unsynced bool }

func (c cluster) Synced() bool              { return !c.unsynced }
func (cluster) Cluster() defaulting.Cluster { return defaulting.Cluster{KubeVirt: "v1.8.2"} }

// governed lists the namespaces with an approval.
type governed []string

func (c governed) ApprovalsFor(namespace string) []*approval.Approval {
	if slices.Contains(c, namespace) {
		return []*approval.Approval{nil}
	}
	return nil
}

type sizes map[string]map[string]any

func (s sizes) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	if object, found := s[r.Name]; found {
		return object, nil
	}
	return nil, errors.New("it does not exist")
}

func newHandler(d *defaulter, change func(*Options)) *Handler {
	o := Options{
		Filler: guestdefaults.Filler{
			Defaulter: d, Cluster: cluster{},
			Instancetypes: sizes{"u1.small": {"spec": map[string]any{"cpu": map[string]any{"guest": 1}, "memory": map[string]any{"guest": "2Gi"}}}},
		},
		Approvals: governed{"vault"},
		Exempt:    exemption.Users{"kubevirt"},
	}
	if change != nil {
		change(&o)
	}
	return New(o)
}

func requestOf(t *testing.T, namespace, object, stored string) admission.Request {
	t.Helper()
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: namespace,
		Resource: metav1.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"},
		UserInfo: authenticationv1.UserInfo{Username: "ada"},
		Object:   runtime.RawExtension{Raw: fixture.JSON(t, object)},
	}}
	if stored != "" {
		request.Operation = admissionv1.Update
		request.OldObject.Raw = fixture.JSON(t, stored)
	}
	return request
}

// patched returns the object of a request after the patch of the response.
func patched(t *testing.T, request admission.Request, response admission.Response) string {
	t.Helper()
	if !response.Allowed {
		t.Fatalf("it is denied: %v", response.Result)
	}
	return string(fixture.Patched(t, request.Object.Raw, response.Patch))
}

// vm returns a VM with one disk, from the fields of its domain, of its disk, and its annotations.
func vm(machine, disk, annotations string) string {
	return `{metadata: {name: a` + annotations + `}, spec: {template: {spec: {domain: {` + machine + `devices: {disks: [{name: root, ` + disk + `}]}}}}}}`
}

func notes(applied string) string {
	if applied == "" {
		return ""
	}
	return `, annotations: {` + contract.AnnotationDefaultsApplied + `: '` + applied + `'}`
}

const (
	alias     = "machine: {type: q35}, "
	versioned = "machine: {type: pc-q35-9.2}, "
	older     = "machine: {type: pc-q35-8.0}, "
	open      = "disk: {bus: virtio}"
	placed    = `disk: {bus: virtio, pciAddress: "0000:01:00.0"}`
	further   = `disk: {bus: virtio, pciAddress: "0000:07:00.0"}`
)

func running(vm string) string { return strings.TrimSuffix(vm, "}") + ", status: {created: true}}" }

// TestTheDefaulterIsToldWhatDefaultsDependOn checks that the requests for two VMs of one template are identical.
func TestTheDefaulterIsToldWhatDefaultsDependOn(t *testing.T) {
	one := `{metadata: {name: a}, spec: {template: {metadata: {labels: {vm: a}}, spec: {hostname: a, domain: {devices: {disks: [{name: init, disk: {bus: virtio}}]}},
		volumes: [{name: init, cloudInitNoCloud: {userData: "password: secret"}}]}}}}`
	d := &defaulter{}
	for _, machine := range []string{one, strings.NewReplacer("name: a", "name: b", "vm: a", "vm: b", "secret", "another").Replace(one)} {
		request := requestOf(t, "team-a", machine, "")
		if response := newHandler(d, nil).Handle(t.Context(), request); !strings.Contains(patched(t, request, response), "0000:01:00.0") {
			t.Errorf("it was not filled: %s", response.Patch)
		}
	}
	const want = `{"spec":{"template":{"metadata":{},"spec":{"domain":{"devices":{"disks":[{"disk":{"bus":"virtio"},"name":"init"}]}},"volumes":[{"name":"init"}]}}}}`
	for _, asked := range d.asked {
		if diff := cmp.Diff(want, string(asked.VM)); diff != "" {
			t.Errorf("what was asked (-want +got):\n%s", diff)
		}
	}
}

func TestWhatIsStored(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, sent, stored, want string
		asked                         int
	}{
		"a new machine is filled":             {sent: vm(alias, open, ""), want: vm(versioned, placed, notes(wrote)), asked: 1},
		"its own result changes nothing":      {sent: vm(versioned, placed, notes(stamped)), want: vm(versioned, placed, notes(stamped)), asked: 1},
		"a record that a user sent is none":   {sent: vm(alias, open, notes("{}")), want: vm(versioned, placed, notes(wrote)), asked: 1},
		"in a governed namespace as well":     {namespace: "vault", sent: vm(alias, open, ""), want: vm(versioned, placed, notes(wrote)), asked: 1},
		"its record neither":                  {sent: vm(versioned, placed, notes(wrote)), want: vm(versioned, placed, notes(wrote)), asked: 1},
		"but for what it cannot have written": {sent: vm(versioned, further, notes(wrote)), want: vm(versioned, further, notes(strings.Replace(stamped, "}", `,"alias":"q35"}`, 1))), asked: 1},
		"or that it never writes":             {sent: vm(versioned, placed, notes(strings.Replace(wrote, `"q35"`, `"odd"`, 1))), want: vm(versioned, placed, notes(strings.Replace(wrote, `"alias":"q35",`, "", 1))), asked: 1},
		"a machine that is not to be left alone any more": {
			sent: vm(alias, open, notes(unpinned)), stored: vm(alias, open, strings.Replace(notes(unpinned), "{", `{defaults.template.kubevirt.io/skip: "true", `, 1)),
			want: vm(versioned, placed, notes(wrote)), asked: 1,
		},
		"a machine that wants none": {
			sent: vm(alias, open, `, annotations: {defaults.template.kubevirt.io/skip: "true", defaults.template.kubevirt.io/applied: x}`),
			want: vm(alias, open, `, annotations: {defaults.template.kubevirt.io/skip: "true"}`),
		},
		"a machine without a template": {sent: `{metadata: {name: a}, spec: {}}`, want: `{metadata: {name: a}, spec: {}}`},
		"a stopped machine that has none yet": {
			sent: vm(alias, open, ", labels: {a: b}"), stored: vm(alias, "disk: {}", ""), want: vm(versioned, placed, `, labels: {a: b}`+notes(wrote)), asked: 1,
		},
		"the same manifest again, also of an alias that means another version now": {
			sent: vm(alias, open, notes("")), stored: vm(older, further, notes("then")), want: vm(older, further, notes("then")),
		},
		"the same manifest while it runs": {
			sent: vm(alias, open, ""), stored: running(vm(older, further, notes("then"))), want: vm(older, further, notes("then")),
		},
		"a disk that says nothing keeps what it was given": {
			sent: vm(versioned, "bootOrder: 1", ""), stored: vm(versioned, placed, notes(stamped)), want: vm(versioned, "bootOrder: 1, "+placed, notes(stamped)), asked: 1,
		},
		"a disk on another bus has not the address of the old one": {
			sent: vm(versioned, "disk: {bus: scsi, pciAddress: x}", ""), stored: vm(versioned, placed, notes(stamped)), want: vm(versioned, "disk: {bus: scsi, pciAddress: x}", notes(stamped)), asked: 1,
		},
		"another machine type is another one": {
			sent: vm("machine: {type: pc-q35-9.0}, ", open, ""), stored: vm(older, further, notes("then")), want: vm("machine: {type: pc-q35-9.0}, ", further, notes("then")), asked: 1,
		},
		"the identity of the firmware stays": {
			sent:   vm(versioned+"firmware: {serial: s}, ", placed, ""),
			stored: vm(versioned+"firmware: {uuid: u, serial: r}, ", placed, notes("then")),
			want:   vm(versioned+"firmware: {uuid: u, serial: s}, ", placed, notes("then")), asked: 1,
		},
		"a record that is taken away comes back": {
			sent: vm(versioned, placed, ""), stored: vm(versioned, placed, notes("then")), want: vm(versioned, placed, notes("then")),
		},
		"in a governed namespace an update gets nothing that it did not touch": {
			namespace: "vault", sent: vm(alias+"cpu: {cores: 2}, ", open, ""), stored: vm(alias, open, ""), want: vm(alias+"cpu: {cores: 2}, ", open, ""), asked: 1,
		},
		"and what it did touch is filled": {
			namespace: "vault",
			sent:      `{metadata: {name: a}, spec: {template: {spec: {domain: {machine: {type: pc-q35-9.2}, devices: {disks: [{name: root, ` + placed + `}, {name: data, ` + open + `}]}}}}}}`,
			stored:    vm(versioned, placed, notes(stamped)),
			want:      `{metadata: {name: a` + notes(strings.Replace(stamped, "}", `,"addresses":{"disks/data":"0000:02:00.0"}}`, 1)) + `}, spec: {template: {spec: {domain: {machine: {type: pc-q35-9.2}, devices: {disks: [{name: root, ` + placed + `}, {name: data, disk: {bus: virtio, pciAddress: "0000:02:00.0"}}]}}}}}}`,
			asked:     1,
		},
		"a machine that is being deleted": {
			sent: vm(alias, open, ", deletionTimestamp: now"), stored: vm(alias, "disk: {}", ""), want: vm(alias, open, ", deletionTimestamp: now"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := "team-a"
			if tc.namespace != "" {
				namespace = tc.namespace
			}
			d := &defaulter{}
			request := requestOf(t, namespace, tc.sent, tc.stored)
			response := newHandler(d, nil).Handle(t.Context(), request)
			var want, got any
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(patched(t, request, response)), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the machine (-want +got):\n%s", diff)
			}
			if len(d.asked) != tc.asked {
				t.Errorf("the defaulter was asked %d times, want %d", len(d.asked), tc.asked)
			}
		})
	}
}

func TestWhatTheDefaulterIsAsked(t *testing.T) {
	d := &defaulter{}
	object := `{metadata: {name: a, labels: {secret: s}}, spec: {instancetype: {name: u1.small}, preference: {name: unknown}, template: {spec: {domain: {devices: {}}}}}}`
	newHandler(d, func(o *Options) { o.Policy.MachineType = defaulting.MachineTypeKeep }).Handle(t.Context(), requestOf(t, "team-a", object, ""))
	newHandler(d, nil).Handle(t.Context(), requestOf(t, "team-a", object, running(`{metadata: {name: a}, spec: {template: {spec: {}}}}`)))
	if len(d.asked) != 2 {
		t.Fatalf("the defaulter was asked %d times", len(d.asked))
	}
	created, updated := d.asked[0], d.asked[1]
	if strings.Contains(string(created.VM), "secret") {
		t.Errorf("more than the spec is sent: %s", created.VM)
	}
	if created.Instancetype == nil || created.Instancetype.CPU.Guest != 1 || created.Preference != nil {
		t.Errorf("instance type %v, preference %v", created.Instancetype, created.Preference)
	}
	if created.Operation != defaulting.Create || created.Running || created.OldVM != nil || created.Cluster.KubeVirt != "v1.8.2" || created.Policy.MachineType != defaulting.MachineTypeKeep {
		t.Errorf("on creation: %+v", created)
	}
	if updated.Operation != defaulting.Update || !updated.Running || updated.OldVM == nil {
		t.Errorf("on update: %+v", updated)
	}
}

func TestWhenTheDefaulterCannotAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		err      error
		unsynced bool
		want     string
	}{
		"nobody is there":                     {err: errors.New("dial unix /run/x: no such file"), want: "the defaulter does not answer"},
		"too many ask":                        {err: defaulting.Busy(0), want: "429 Too Many Requests"},
		"libvirt dies":                        {err: defaulting.Unavailable("libvirt has died"), want: "libvirt has died"},
		"KubeVirt's configuration is unknown": {unsynced: true, want: "the defaulter does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			metrics, err := NewMetrics(prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			request := requestOf(t, "team-a", vm(alias, open, notes("forged")), "")
			options := func(o *Options) { o.Cluster, o.Metrics = cluster{tc.unsynced}, metrics }

			open := newHandler(&defaulter{err: tc.err}, options).Handle(t.Context(), request)
			if result := patched(t, request, open); !strings.Contains(result, tc.want) || strings.Contains(result, "forged") || strings.Contains(result, "/run/x") {
				t.Errorf("let through as %s", result)
			}
			if len(open.Warnings) != 1 || !strings.Contains(open.Warnings[0], tc.want) {
				t.Errorf("warnings: %q", open.Warnings)
			}

			closed := newHandler(&defaulter{err: tc.err}, func(o *Options) { options(o); o.FailClosed = true }).Handle(t.Context(), request)
			if closed.Allowed || closed.Result.Code != 503 || !strings.Contains(closed.Result.Message, tc.want) || !strings.Contains(closed.Result.Message, contract.AnnotationDefaultsSkip) {
				t.Errorf("denied with %v", closed.Result)
			}
			if got := testutil.ToFloat64(metrics.requests.WithLabelValues("CREATE", resultUnavailable)); got != 2 {
				t.Errorf("counted %v times", got)
			}
		})
	}
}

func TestAFailureIsForgottenOnceTheDefaultsAreThere(t *testing.T) {
	failed := `, annotations: {defaults.template.kubevirt.io/failed: then}`
	request := requestOf(t, "team-a", vm(alias, open, failed), vm(alias, "disk: {}", failed))
	result := patched(t, request, newHandler(&defaulter{}, nil).Handle(t.Context(), request))
	if strings.Contains(result, contract.AnnotationDefaultsFailed) || !strings.Contains(result, contract.AnnotationDefaultsApplied) {
		t.Errorf("got %s", result)
	}
}

func TestAForeignArchitectureIsReported(t *testing.T) {
	request := requestOf(t, "team-a", vm(alias, open, ""), "")
	for reason, reported := range map[string]bool{
		defaulting.RejectedByLibvirt + "could not find an emulator": true, "the cluster runs KubeVirt v1.9.0": false, "": false,
	} {
		response := newHandler(&defaulter{rejection: reason}, nil).Handle(t.Context(), request)
		result := patched(t, request, response)
		if warned := len(response.Warnings) == 1 && strings.Contains(response.Warnings[0], reason); warned != reported {
			t.Errorf("%q: warnings %q", reason, response.Warnings)
		}
		if strings.Contains(result, contract.AnnotationDefaultsFailed+`":"`+reason) != reported || !strings.Contains(result, contract.AnnotationDefaultsApplied) {
			t.Errorf("%q: %s", reason, result)
		}
	}
}

func TestAVMThatCannotBeDefinedIsDeniedUnderEitherPolicy(t *testing.T) {
	const path = "spec.template.spec.domain.devices.disks[0].disk.pciAddress"
	problem := defaulting.Invalid([]defaulting.Cause{{Path: path, Value: "0000:09:00.0", Detail: "taken"}})
	for _, closed := range []bool{false, true} {
		handler := newHandler(&defaulter{err: problem}, func(o *Options) { o.FailClosed = closed })
		response := handler.Handle(t.Context(), requestOf(t, "team-a", vm(alias, open, ""), ""))
		if response.Allowed || response.Result.Reason != metav1.StatusReasonInvalid {
			t.Fatalf("got %v", response.Result)
		}
		causes := response.Result.Details.Causes
		if len(causes) != 1 || causes[0].Field != path || !strings.Contains(causes[0].Message, "taken") || !strings.Contains(causes[0].Message, "0000:09:00.0") {
			t.Errorf("causes: %+v", causes)
		}
	}
}

func TestOtherRequestsPass(t *testing.T) {
	d := &defaulter{}
	for _, change := range []func(*admission.Request){
		func(r *admission.Request) { r.Operation = admissionv1.Delete },
		func(r *admission.Request) { r.SubResource = "status" },
		func(r *admission.Request) { r.Resource.Resource = "virtualmachineinstances" },
	} {
		request := requestOf(t, "team-a", vm(alias, open, ""), "")
		change(&request)
		if response := newHandler(d, nil).Handle(t.Context(), request); !response.Allowed || response.Patch != nil {
			t.Errorf("got %v", response)
		}
	}
	if len(d.asked) != 0 {
		t.Errorf("the defaulter was asked %d times", len(d.asked))
	}
}
