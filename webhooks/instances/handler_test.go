package instances_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/webhooks/instances"
)

// cluster holds approvals, VirtualMachines and claims.
type cluster struct {
	approvals []*approval.Approval
	unsynced  bool
	vms       map[string]map[string]any
	claims    map[string]map[string]string
	err       error

	mutex  sync.Mutex
	looked int
}

func (c *cluster) Synced() bool                             { return !c.unsynced }
func (c *cluster) ApprovalsFor(string) []*approval.Approval { return c.approvals }

func (c *cluster) VirtualMachine(_ context.Context, _, name string) (map[string]any, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.looked++
	return c.vms[name], nil
}

func (c *cluster) Claim(_ context.Context, _, name string) (*metav1.ObjectMeta, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.looked++
	labels, found := c.claims[name]
	if !found || c.err != nil {
		return nil, c.err
	}
	return &metav1.ObjectMeta{Name: name, Labels: labels}, nil
}

func compile(t *testing.T, specs ...string) (approvals []*approval.Approval) {
	t.Helper()
	for i, spec := range specs {
		approvals = append(approvals, fixture.Approval(t, fmt.Sprintf("team-%d", i), "{namespaces: [team-a], templates: [{namespace: golden, name: box}], "+spec+"}"))
	}
	return approvals
}

const (
	owner   = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","name":"web","uid":"u","controller":true}`
	volumes = `[{"name":"root","dataVolume":{"name":"web-root"}},{"name":"data","persistentVolumeClaim":{"claimName":"web-data"}},{"name":"shared","persistentVolumeClaim":{"claimName":"shared"}}]`
)

func vmi(owners, volumes string) string {
	return `{"metadata":{"name":"web","ownerReferences":[` + owners + `]},"spec":{"volumes":` + volumes + `}}`
}

func vm(uid string, templates ...string) map[string]any {
	var list []any
	for _, name := range templates {
		list = append(list, map[string]any{"metadata": map[string]any{"name": name}})
	}
	return map[string]any{"metadata": map[string]any{"uid": uid}, "spec": map[string]any{"dataVolumeTemplates": list}}
}

func TestInstances(t *testing.T) {
	own := map[string]string{"kubevirt.io/created-by": "u"}
	other := map[string]string{"kubevirt.io/created-by": "another", "restored": "yes"}
	const lacks = "it lacks the label kubevirt.io/created-by, which KubeVirt gives to disks that it creates"
	const fix = "delete the claim and the DataVolume of this name, so that KubeVirt creates them, or ask a cluster admin to allow it with existingDisks"
	const forbidden = `virtualmachineinstances.kubevirt.io "web" is forbidden: `
	var manyNames []string
	var manyVolumes strings.Builder
	for i := range 257 {
		name := fmt.Sprintf("d%d", i)
		manyNames = append(manyNames, name)
		fmt.Fprintf(&manyVolumes, `{"name":%q,"dataVolume":{"name":%q}},`, name, name)
	}
	for _, tc := range []struct {
		name      string
		approvals []string
		object    string // vmi(owner, volumes) unless given
		vm        map[string]any
		claims    map[string]map[string]string
		err       error
		unsynced  bool
		edit      func(*admission.Request)
		want      string // the whole message
		code      int32
		looked    int
	}{
		{name: "disks that KubeVirt created", approvals: []string{""}, vm: vm("u", "web-root", "web-data"), claims: map[string]map[string]string{"web-root": own, "web-data": own}, looked: 3},
		{name: "a claim that no dataVolumeTemplate names is the template's", approvals: []string{""}, vm: vm("u", "web-root"), claims: map[string]map[string]string{"web-root": own, "shared": nil}, looked: 2},
		{name: "a dataVolumeTemplate that no volume names", approvals: []string{""}, vm: vm("u", "web-root", "unused"), claims: map[string]map[string]string{"web-root": own}, looked: 2},
		{
			name: "a disk of a volume and one of a claim that were there before", approvals: []string{""}, vm: vm("u", "web-root", "web-data"),
			claims: map[string]map[string]string{"web-root": nil, "web-data": other}, looked: 3, code: 403,
			want: forbidden + `spec.volumes[name=root]: claim "web-root" was not created for VirtualMachine "web": ` + lacks + `; ` + fix + ` (approval "team-0"); ` +
				`spec.volumes[name=data]: claim "web-data" was not created for VirtualMachine "web": its label kubevirt.io/created-by names another VirtualMachine; ` + fix + ` (approval "team-0")`,
		},
		{
			name: "a claim that does not exist", approvals: []string{""}, vm: vm("u", "web-root"), looked: 2, code: 403,
			want: forbidden + `spec.volumes[name=root]: claim "web-root" does not exist, so the owner of its disk is unknown: it is evaluated again when CDI has created it (approval "team-0")`,
		},
		{name: "the approval allows existing disks", approvals: []string{"existingDisks: {policy: Allow}"}},
		{
			name: "the approval allows those with a label", approvals: []string{"existingDisks: {policy: Allow, selector: {matchLabels: {restored: 'yes'}}}"},
			vm: vm("u", "web-data"), claims: map[string]map[string]string{"web-data": other}, looked: 2,
		},
		{
			name: "one of two approvals does not allow it", approvals: []string{"existingDisks: {policy: Allow}", ""}, vm: vm("u", "web-root"),
			claims: map[string]map[string]string{"web-root": nil}, looked: 2, code: 403,
			want: forbidden + `spec.volumes[name=root]: claim "web-root" was not created for VirtualMachine "web": ` + lacks + `; ` + fix + ` (approval "team-1")`,
		},
		{
			name: "a VirtualMachine of the same name that is another one", approvals: []string{""}, vm: vm("later", "web-root"), looked: 1, code: 403,
			want: forbidden + `metadata.ownerReferences: there is no VirtualMachine "web" with UID u, so it is not known which disks are its own: start a VirtualMachine that exists`,
		},
		{
			name: "a VirtualMachine that does not exist", approvals: []string{""}, looked: 1, code: 403,
			want: forbidden + `metadata.ownerReferences: there is no VirtualMachine "web" with UID u, so it is not known which disks are its own: start a VirtualMachine that exists`,
		},
		{
			name: "more disks than KubeVirt permits", approvals: []string{""}, object: vmi(owner, "["+strings.TrimSuffix(manyVolumes.String(), ",")+"]"), vm: vm("u", manyNames...), looked: 1, code: 403,
			want: forbidden + "spec.volumes: 257 of them name dataVolumeTemplates, and at most 256 are permitted",
		},
		{name: "an instance without an owner", approvals: []string{""}, object: vmi("", volumes)},
		{name: "an instance of another kind of owner", approvals: []string{""}, object: vmi(strings.Replace(owner, "VirtualMachine", "VirtualMachineInstanceReplicaSet", 1), volumes)},
		{name: "nothing governs the namespace"},
		{name: "the approval warns", approvals: []string{"enforcement: Warn"}},
		{name: "an update", approvals: []string{""}, edit: func(r *admission.Request) { r.Operation = admissionv1.Update }},
		{
			name: "an error of the API server", approvals: []string{""}, vm: vm("u", "web-root"), err: errors.New("looking for PersistentVolumeClaim team-a/web-root: gone away"), looked: 2, code: 503,
			want: "looking for PersistentVolumeClaim team-a/web-root: gone away; try again in a moment",
		},
		{name: "the approvals are not read yet", unsynced: true, code: 503, want: "the approval cache is not synced; try again in a moment"},
		{name: "what cannot be decoded", approvals: []string{""}, object: `{"metadata":[]}`, code: 400, want: "decoding the VirtualMachineInstance: json: cannot unmarshal array into Go struct field instance.metadata of type v1.ObjectMeta"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &cluster{approvals: compile(t, tc.approvals...), unsynced: tc.unsynced, vms: map[string]map[string]any{}, claims: tc.claims, err: tc.err}
			if tc.vm != nil {
				c.vms["web"] = tc.vm
			}
			if tc.object == "" {
				tc.object = vmi(owner, volumes)
			}
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: "team-a", Name: "web",
				Resource: metav1.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"},
				Object:   runtime.RawExtension{Raw: []byte(tc.object)},
			}}
			if tc.edit != nil {
				tc.edit(&request)
			}
			response := instances.New(instances.Options{Approvals: c, Disks: c}).Handle(t.Context(), request)
			var message string
			var code int32
			if !response.Allowed {
				message, code = response.Result.Message, response.Result.Code
			}
			if diff := cmp.Diff(tc.want, message); diff != "" || code != tc.code {
				t.Errorf("code %d, want %d; message (-want +got):\n%s", code, tc.code, diff)
			}
			if c.looked != tc.looked {
				t.Errorf("%d lookups, want %d", c.looked, tc.looked)
			}
		})
	}
}
