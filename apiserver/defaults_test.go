package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/internal/guestdefaults"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// fakeDefaulter pins the machine type of every VM, and returns failure if there is one.
type fakeDefaulter struct {
	failure error
	skipped []defaulting.Skipped
	asked   []*defaulting.Request
}

func (d *fakeDefaulter) Defaults(_ context.Context, request *defaulting.Request) (*defaulting.Response, error) {
	d.asked = append(d.asked, request)
	if d.failure != nil {
		return nil, d.failure
	}
	return &defaulting.Response{
		Environment: defaulting.Environment{Defaulter: "v1", Libvirt: "11.3.0", QEMU: "9.2.0", KubeVirt: "v1.8.2"},
		Set:         []defaulting.Set{{Path: "spec.template.spec.domain.machine.type", Value: "pc-q35-9.2", Source: defaulting.FromLibvirt}},
		Patch:       []defaulting.PatchOperation{{Op: "replace", Path: "/spec/template/spec/domain/machine/type", Value: "pc-q35-9.2"}},
		Skipped:     d.skipped,
	}, nil
}

type fakeCluster struct{ unsynced bool }

func (c fakeCluster) Synced() bool              { return !c.unsynced }
func (fakeCluster) Cluster() defaulting.Cluster { return defaulting.Cluster{KubeVirt: "v1.8.2"} }

// fakeSizes has a preference of every name but gone.
type fakeSizes struct{}

func (fakeSizes) Resolve(_ context.Context, r sizing.Reference) (map[string]any, error) {
	if r.Name == "gone" {
		return nil, errors.New("it does not exist")
	}
	return map[string]any{"spec": map[string]any{"devices": map[string]any{"preferredDiskBus": "sata"}}}, nil
}

// fakeAddresses is a pool manager for namespaces with the label pool.
type fakeAddresses struct{}

func (fakeAddresses) Synced() bool                         { return true }
func (fakeAddresses) Taken(string, string, string) bool    { return false }
func (fakeAddresses) Pooled(labels map[string]string) bool { return labels["pool"] != "" }
func labels(of map[string]string) func(*Defaults) {
	return func(d *Defaults) { d.Labels = labelsOf(of, nil) }
}
func labelsOf(of map[string]string, err error) func(context.Context, string) (map[string]string, error) {
	return func(context.Context, string) (map[string]string, error) { return of, err }
}

func withDefaults(d *fakeDefaulter, changes ...func(*Defaults)) fixture {
	found := &Defaults{
		Filler: guestdefaults.Filler{Defaulter: d, Cluster: fakeCluster{}, Instancetypes: fakeSizes{}},
		Labels: labelsOf(nil, nil), Logger: logr.Discard(),
	}
	for _, change := range changes {
		change(found)
	}
	return fixture{defaults: found}
}

const (
	sentVM = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web-1, labels: {kept: "1.10"}}
spec: {template: {spec: {domain: {machine: {type: q35}, cpu: {cores: 2}, devices: {}}, volumes: [{name: seed, cloudInitNoCloud: {userData: secret-password}}]}}}
`
	appliedNote = `"defaults.template.kubevirt.io/applied":"{\"defaulter\":\"v1\",\"libvirt\":\"11.3.0\",\"qemu\":\"9.2.0\",\"kubevirt\":\"v1.8.2\",\"machine\":\"pc-q35-9.2\",\"alias\":\"q35\"}"`
)

func TestDefaultsAreFilledInAsTheWebhookDoes(t *testing.T) {
	want := `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"annotations":{` + appliedNote + `},"labels":{"kept":"1.10"},"name":"web-1"},` +
		`"spec":{"template":{"spec":{"domain":{"cpu":{"cores":2},"devices":{},"machine":{"type":"pc-q35-9.2"}},"volumes":[{"cloudInitNoCloud":{"userData":"secret-password"},"name":"seed"}]}}}}`
	asJSON := `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"web-1","labels":{"kept":"1.10"}},"spec":{"template":{"spec":{"domain":{"machine":{"type":"q35"},"cpu":{"cores":2},"devices":{}},"volumes":[{"name":"seed","cloudInitNoCloud":{"userData":"secret-password"}}]}}}}`
	for _, sent := range []string{sentVM, asJSON} {
		for _, version := range []string{"v1beta1", "v1alpha1"} {
			d := &fakeDefaulter{}
			f := withDefaults(d)
			got := f.do(t, "POST", strings.Replace(base, "v1beta1", version, 1)+"defaults", "", sent)
			if got.Code != http.StatusCreated {
				t.Fatalf("%d %s", got.Code, got.Body)
			}
			if diff := cmp.Diff(want, got.Body.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(f.warnings) > 0 || len(d.asked) != 1 || d.asked[0].Operation != defaulting.Create || !d.asked[0].PatchOnly || strings.Contains(string(d.asked[0].VM), "secret-password") {
				t.Errorf("warnings %q, requests %+v", f.warnings, d.asked)
			}
		}
	}
}

func TestDefaultsInYAML(t *testing.T) {
	f := withDefaults(&fakeDefaulter{})
	got := f.do(t, "POST", base+"defaults", "application/yaml", sentVM)
	if got.Code != http.StatusCreated || got.Header().Get("Content-Type") != "application/yaml" || !strings.Contains(got.Body.String(), "type: pc-q35-9.2\n") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestWarningsAboutDefaults(t *testing.T) {
	const without = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\n"
	skip := strings.Replace(sentVM, "labels:", `annotations: {defaults.template.kubevirt.io/skip: "true", defaults.template.kubevirt.io/applied: forged}, labels:`, 1)
	with := func(spec string) string {
		return strings.Replace(sentVM, "spec: {template", "spec: {"+spec+", template", 1)
	}
	foreign := defaulting.Skipped{Path: "spec.template.spec.domain.machine.type", Reason: defaulting.RejectedByLibvirt + "no emulator"}
	mayGet := func(resource, namespace string) func(authorizer.Attributes) bool {
		return func(a authorizer.Attributes) bool {
			return a.GetVerb() == "get" && a.GetUser().GetName() == "ada" && a.GetAPIGroup() == "instancetype.kubevirt.io" && a.GetResource() == resource && a.GetNamespace() == namespace && a.IsResourceRequest()
		}
	}
	for _, tc := range []struct {
		name    string
		sent    string
		skipped []defaulting.Skipped
		change  func(*Defaults)
		allow   func(authorizer.Attributes) bool
		want    []string
		// wantBody and wantNot are in the response.
		wantBody, wantNot string
		// preferred reports that the defaulter receives the preference.
		preferred, unasked bool
	}{
		{name: "none", sent: sentVM, wantBody: appliedNote},
		{name: "a VirtualMachine without metadata", sent: without + "spec: {template: {spec: {domain: {machine: {type: q35}}}}}", wantBody: appliedNote},
		{name: "an unknown field stays", sent: with("tempalte: {}"), want: []string{`unknown field "spec.tempalte"`}, wantBody: `"tempalte":{}`},
		{name: "the annotation skip", sent: skip, unasked: true, wantBody: `"type":"q35"`, wantNot: "forged",
			want: []string{"annotation defaults.template.kubevirt.io/skip excludes it from defaults, and nothing was filled in"}},
		{name: "the label skip of the namespace", sent: sentVM, change: labels(map[string]string{"defaults.template.kubevirt.io/skip": "true"}), unasked: true, wantBody: `"type":"q35"`, wantNot: "annotations",
			want: []string{"label defaults.template.kubevirt.io/skip of the namespace excludes it from defaults, and nothing was filled in"}},
		{name: "what is left open, once for each reason", sent: sentVM, wantBody: appliedNote,
			skipped: []defaulting.Skipped{{Path: "a", Reason: "it is late"}, {Path: "b", Reason: "it is early"}, {Path: "c", Reason: "it is late"}},
			want:    []string{"left open: a, c: it is late", "left open: b: it is early"}},
		{name: "what libvirt rejects, as the webhook reports it", sent: sentVM, skipped: []defaulting.Skipped{{Path: "a", Reason: "of another kind"}, foreign}, wantBody: `"defaults.template.kubevirt.io/failed":"libvirt rejects the VM: no emulator"`,
			want: []string{"not all defaults that the guest sees were filled in: libvirt rejects the VM: no emulator; the VM gets the others when it is started, as without Stencil"}},
		{name: "a preference that the user may get", sent: with("preference: {name: linux}"), allow: mayGet("virtualmachineclusterpreferences", ""), preferred: true, wantBody: appliedNote},
		{name: "one of the namespace", sent: with("preference: {kind: VirtualMachinePreference, name: linux}"), allow: mayGet("virtualmachinepreferences", "shop"), preferred: true, wantBody: appliedNote},
		{name: "one that the user may not get", sent: with("preference: {name: linux}"), wantBody: appliedNote,
			want: []string{`spec.preference: Not found: "VirtualMachineClusterPreference linux": user "ada" may not get it`}},
		{name: "one that is missing, to a user who may not get it", sent: with("preference: {name: gone}"), wantBody: appliedNote,
			want: []string{`spec.preference: Not found: "VirtualMachineClusterPreference gone": user "ada" may not get it`}},
		{name: "one that is missing", sent: with("preference: {name: gone}"), allow: mayGet("virtualmachineclusterpreferences", ""), wantBody: appliedNote,
			want: []string{`spec.preference: Not found: "VirtualMachineClusterPreference gone": it does not exist`}},
		{name: "a revision", sent: with("preference: {name: linux, revisionName: old}"), allow: mayGet("virtualmachineclusterpreferences", ""), wantBody: appliedNote,
			want: []string{`spec.preference: Not found: "ControllerRevision shop/old": revisions are not read for defaults: leave out revisionName`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &fakeDefaulter{skipped: tc.skipped}
			f := withDefaults(d)
			f.allow = tc.allow
			if tc.change != nil {
				tc.change(f.defaults)
			}
			got := f.do(t, "POST", base+"defaults", "", tc.sent)
			if got.Code != http.StatusCreated || !strings.Contains(got.Body.String(), tc.wantBody) || tc.wantNot != "" && strings.Contains(got.Body.String(), tc.wantNot) {
				t.Errorf("%d %s", got.Code, got.Body)
			}
			if !slices.Equal(tc.want, f.warnings) {
				t.Errorf("warnings (-want +got):\n%s", cmp.Diff(tc.want, []string(f.warnings)))
			}
			if tc.unasked {
				if len(d.asked) > 0 {
					t.Error("the defaulter was called")
				}
				return
			}
			if got := d.asked[0].Preference != nil; got != tc.preferred {
				t.Errorf("the request has a preference: %v", got)
			}
		})
	}
}

func TestMACAddressesAreLeftToAPoolManager(t *testing.T) {
	for _, tc := range []struct {
		labels map[string]string
		want   defaulting.MACPolicy
	}{{nil, defaulting.MACGenerate}, {map[string]string{"pool": "here"}, defaulting.MACNever}} {
		d := &fakeDefaulter{}
		f := withDefaults(d, labels(tc.labels), func(d *Defaults) {
			d.Policy.MAC, d.Addresses = defaulting.MACGenerate, fakeAddresses{}
		})
		if got := f.do(t, "POST", base+"defaults", "", sentVM); got.Code != http.StatusCreated || d.asked[0].Policy.MAC != tc.want {
			t.Errorf("labels %v: %d, %v", tc.labels, got.Code, d.asked[0].Policy)
		}
	}
}

func TestDefaultsThatAreNotFilledIn(t *testing.T) {
	failing := func(err error) fixture { return withDefaults(&fakeDefaulter{failure: err}) }
	with := func(old, new string) string { return strings.Replace(sentVM, old, new, 1) }
	invalid := defaulting.Invalid([]defaulting.Cause{{Path: "spec.template.spec.domain.devices.disks[1].disk.pciAddress", Value: "0000:09:00.0", Detail: "it is taken"}, {Path: "spec.template.spec.architecture", Value: "riscv64", Detail: "unknown"}})
	for _, tc := range []struct {
		name        string
		fixture     fixture
		method      string
		accept      string
		sent        string
		wantCode    int
		wantReason  metav1.StatusReason
		wantMessage string
		wantFields  []string
		wantRetry   string
	}{
		{name: "switched off", fixture: fixture{}, sent: sentVM, wantCode: 404, wantReason: metav1.StatusReasonNotFound,
			wantMessage: "defaults are not filled in on this cluster: its administrator has to set defaulting.enabled of the chart, which gives stencil-apiserver the flag --defaulting-socket"},
		{name: "an empty body", fixture: failing(nil), wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
			wantMessage: "the body is no VirtualMachine: apiVersion must be kubevirt.io/v1 and kind VirtualMachine"},
		{name: "a list", fixture: failing(nil), sent: "[]", wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
			wantMessage: "the body is malformed at line 1, column 1: it must be an object, not a list"},
		{name: "null", fixture: failing(nil), sent: "null", wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
			wantMessage: "the body is malformed at line 1, column 1: it must be an object, not null"},
		{name: "half an object", fixture: failing(nil), sent: `{"kind": "VirtualMachine"`, wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
			wantMessage: "the body is malformed at line 1, column 26: it ends too early"},
		{name: "YAML that is none", fixture: failing(nil), sent: "kind: VirtualMachine\n\tspec: x", wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
			wantMessage: "the body is malformed at line 2, column 2: found a tab character that violates indentation"},
		{name: "a field twice", fixture: failing(nil), sent: with("metadata:", "metadata: {name: a}\nmetadata:"), wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
			wantMessage: `the body is malformed at line 4, column 1: "metadata" is there twice`},
		{name: "two objects", fixture: failing(nil), sent: sentVM + "---\n" + sentVM, wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
			wantMessage: "the body is malformed at line 5, column 1: something follows the object"},
		{name: "protobuf", fixture: failing(nil), sent: "k8s\x00\n\x0c\n\x02v1", wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
			wantMessage: "the body is malformed at line 1, column 1: control characters are not allowed"},
		{name: "another kind", fixture: failing(nil), sent: with("kind: VirtualMachine", "kind: VirtualMachineInstance"), wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
			wantMessage: "the body is no VirtualMachine: apiVersion must be kubevirt.io/v1 and kind VirtualMachine"},
		{name: "another version", fixture: failing(nil), sent: with("kubevirt.io/v1", "kubevirt.io/v1alpha3"), wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
			wantMessage: "the body is no VirtualMachine: apiVersion must be kubevirt.io/v1 and kind VirtualMachine"},
		{name: "another namespace", fixture: failing(nil), sent: with("name: web-1", "name: web-1, namespace: other"), wantCode: 400, wantReason: metav1.StatusReasonBadRequest,
			wantMessage: `the body is no VirtualMachine: it names namespace "other" and is sent to "shop"`},
		{name: "a field of another type", fixture: failing(nil), sent: with("cores: 2", "cores: many"), wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantMessage: `VirtualMachine.kubevirt.io "web-1" is invalid: spec.template.spec.domain.cpu.cores: Invalid value: must be a positive integer, not string`, wantFields: []string{"spec.template.spec.domain.cpu.cores"}},
		{name: "a negative number", fixture: failing(nil), sent: with("cores: 2", "cores: -2"), wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantMessage: `VirtualMachine.kubevirt.io "web-1" is invalid: spec.template.spec.domain.cpu.cores: Invalid value: must be a positive integer, not number -2`, wantFields: []string{"spec.template.spec.domain.cpu.cores"}},
		{name: "one in a list", fixture: failing(nil), sent: with("name: seed", "name: other}, {name: [seed]"), wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantMessage: `VirtualMachine.kubevirt.io "web-1" is invalid: spec.template.spec.volumes[1].name: Invalid value: must be a string, not array`, wantFields: []string{"spec.template.spec.volumes[1].name"}},
		{name: "a list that is none", fixture: failing(nil), sent: with("devices: {}", "devices: {disks: {}}"), wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantMessage: `VirtualMachine.kubevirt.io "web-1" is invalid: spec.template.spec.domain.devices.disks: Invalid value: must be a list, not object`, wantFields: []string{"spec.template.spec.domain.devices.disks"}},
		{name: "a quantity that is none", fixture: failing(nil), sent: with("devices: {}", "devices: {}, memory: {guest: lots}"), wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantMessage: `VirtualMachine.kubevirt.io "web-1" is invalid: spec.template.spec.domain.memory.guest: Invalid value: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`, wantFields: []string{"spec.template.spec.domain.memory.guest"}},
		{name: "labels that are none", fixture: failing(nil), sent: with("metadata: {name: web-1, labels: {", "metadata: {name: web-1, labels: {x: {}, "), wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantMessage: `VirtualMachine.kubevirt.io "web-1" is invalid: metadata.labels.x: Invalid value: must be a string, not object`, wantFields: []string{"metadata.labels.x"}},
		{name: "no spec", fixture: failing(nil), sent: "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: web-1}", wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantMessage: `VirtualMachine.kubevirt.io "web-1" is invalid: spec.template: Required value: there is nothing to fill in`, wantFields: []string{"spec.template"}},
		{name: "a template that is not rendered", fixture: failing(nil), wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			sent:        "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: web-1, annotations: {template.kubevirt.io/template-ref: golden/fedora}}",
			wantMessage: `VirtualMachine.kubevirt.io "web-1" is invalid: spec.template: Required value: the template golden/fedora is not rendered here: send what process returns`, wantFields: []string{"spec.template"}},
		{name: "too large", fixture: failing(nil), sent: sentVM + strings.Repeat(" ", maximumBody), wantCode: 413, wantReason: metav1.StatusReasonRequestEntityTooLarge,
			wantMessage: "Request entity too large: the body may have 1 MiB at most"},
		{name: "a namespace that does not exist", fixture: withDefaults(&fakeDefaulter{}, func(d *Defaults) {
			d.Labels = labelsOf(nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"))
		}), sent: sentVM, wantCode: 404, wantReason: metav1.StatusReasonNotFound, wantMessage: `namespaces "shop" not found`},
		{name: "what can never be defined", fixture: failing(invalid), sent: sentVM, wantCode: 422, wantReason: metav1.StatusReasonInvalid,
			wantMessage: `VirtualMachine.kubevirt.io "web-1" is invalid: [spec.template.spec.domain.devices.disks[1].disk.pciAddress: Invalid value: "0000:09:00.0": it is taken, spec.template.spec.architecture: Invalid value: "riscv64": unknown]`,
			wantFields:  []string{"spec.template.spec.domain.devices.disks[1].disk.pciAddress", "spec.template.spec.architecture"}},
		{name: "what the defaulter cannot read", fixture: failing(defaulting.Malformed("reading the VirtualMachine: no")), sent: sentVM, wantCode: 400, wantReason: metav1.StatusReasonBadRequest, wantMessage: "reading the VirtualMachine: no"},
		{name: "what is too large for the defaulter", fixture: failing(defaulting.NewProblem(413, "a request has at most 3 bytes")), sent: sentVM, wantCode: 413, wantReason: metav1.StatusReasonRequestEntityTooLarge, wantMessage: "Request entity too large: a request has at most 3 bytes"},
		{name: "a busy defaulter", fixture: failing(defaulting.Busy(1500 * time.Millisecond)), sent: sentVM, wantCode: 429, wantReason: metav1.StatusReasonTooManyRequests, wantRetry: "2",
			wantMessage: "too many requests wait for libvirt; try again in 2 s"},
		{name: "a VM in quarantine", fixture: failing(&defaulting.Problem{Status: 503, Detail: "it is in quarantine", RetryAfter: time.Minute}), sent: sentVM, wantCode: 503, wantReason: metav1.StatusReasonServiceUnavailable, wantRetry: "60",
			wantMessage: "it is in quarantine; try again in 60 s"},
		{name: "libvirt is late", fixture: failing(defaulting.Late("the answer took too long")), sent: sentVM, wantCode: 504, wantReason: metav1.StatusReasonTimeout, wantMessage: "Timeout: the answer took too long; try again in a moment"},
		{name: "no defaulter", fixture: failing(errors.New("dial unix /run: no such file")), sent: sentVM, wantCode: 503, wantReason: metav1.StatusReasonServiceUnavailable,
			wantMessage: "the defaulter does not answer; if this remains, see the container defaulter of stencil-apiserver; try again in a moment"},
		{name: "a defaulter that does not answer in time", fixture: failing(context.DeadlineExceeded), sent: sentVM, wantCode: 504, wantReason: metav1.StatusReasonTimeout,
			wantMessage: "Timeout: the defaulter does not answer; if this remains, see the container defaulter of stencil-apiserver; try again in a moment"},
		{name: "before KubeVirt's configuration is read", fixture: withDefaults(&fakeDefaulter{}, func(d *Defaults) { d.Cluster = fakeCluster{unsynced: true} }), sent: sentVM, wantCode: 503, wantReason: metav1.StatusReasonServiceUnavailable,
			wantMessage: "the configuration of KubeVirt is not synced; try again in a moment"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.fixture.do(t, "POST", base+"defaults", tc.accept, tc.sent)
			var status metav1.Status
			if err := json.Unmarshal(got.Body.Bytes(), &status); err != nil {
				t.Fatalf("%d %s: %v", got.Code, got.Body, err)
			}
			if got.Code != tc.wantCode || status.Reason != tc.wantReason || status.Message != tc.wantMessage || got.Header().Get("Retry-After") != tc.wantRetry {
				t.Errorf("%d %s, retry after %q: %s\nwant %d %s %q: %s", got.Code, status.Reason, got.Header().Get("Retry-After"), status.Message, tc.wantCode, tc.wantReason, tc.wantRetry, tc.wantMessage)
			}
			if status.Details == nil && tc.wantFields != nil {
				t.Fatalf("no details: %s", got.Body)
			}
			for i, want := range tc.wantFields {
				if status.Details.Causes[i].Field != want {
					t.Errorf("cause %d is about %s, want %s", i, status.Details.Causes[i].Field, want)
				}
			}
			if strings.Contains(got.Body.String(), "secret-password") {
				t.Errorf("the response shows user data: %s", got.Body)
			}
		})
	}
}
