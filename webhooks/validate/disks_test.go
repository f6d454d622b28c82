package validate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/webhooks/validate"
)

// storage holds DataVolumes, claims and VirtualMachines.
type storage struct {
	volumes, claims map[string]map[string]string
	deleted         bool
	vms             map[string]bool
	// uids are the UIDs of the sources of DataSources.
	uids map[string]string
	err  error

	mutex  *sync.Mutex
	looked int
}

func (s *storage) find(in map[string]map[string]string, name string) (*metav1.ObjectMeta, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.looked++
	labels, found := in[name]
	if !found || s.err != nil {
		return nil, s.err
	}
	object := &metav1.ObjectMeta{Name: name, Labels: labels}
	if s.deleted {
		object.DeletionTimestamp = &metav1.Time{}
	}
	return object, nil
}

func (s *storage) DataVolume(_ context.Context, _, name string) (*metav1.ObjectMeta, error) {
	return s.find(s.volumes, name)
}

func (s *storage) Claim(_ context.Context, _, name string) (*metav1.ObjectMeta, error) {
	return s.find(s.claims, name)
}

func (s *storage) VirtualMachine(_ context.Context, _, name string) (map[string]any, error) {
	if s.vms[name] {
		return map[string]any{}, nil
	}
	return nil, nil
}

func (s *storage) Identity(_ context.Context, source disks.Source) (uid, description string, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.looked++
	return s.uids[source.Name], source.Kind + " " + source.Namespace + "/" + source.Name, s.err
}

// disked adds dataVolumeTemplates with these names to a VM.
func disked(names ...string) func(metadata, spec map[string]any) {
	return func(_, spec map[string]any) {
		var list []any
		for _, name := range names {
			list = append(list, map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"source": map[string]any{"blank": map[string]any{}}}})
		}
		spec["dataVolumeTemplates"] = list
	}
}

// diskApproval permits users to set dataVolumeTemplates. Those of a template are evaluated alike.
const diskApproval = "{namespaces: [team-a], templates: [{namespace: golden, name: box}], overrides: [spec.runStrategy, spec.dataVolumeTemplates]%s}"

func TestDisksThatExist(t *testing.T) {
	one := map[string]map[string]string{"web-root": nil}
	restored := map[string]map[string]string{"web-root": {"restored": "yes"}}
	strict := fmt.Sprintf(diskApproval, "")
	message := func(index int, kind, name string) string {
		return fmt.Sprintf(`spec.dataVolumeTemplates[%d].metadata.name: %s "%s" exists already, and the VirtualMachine would start from it: `+
			`delete it or choose another name, or ask a cluster admin to allow it with existingDisks (approval "team")`, index, kind, name)
	}
	var many []string
	for i := range 257 {
		many = append(many, fmt.Sprint("d", i))
	}
	for _, tc := range []struct {
		name     string
		approval string // strict unless given
		names    []string
		storage  storage
		user     string
		edit     func(metadata, spec map[string]any)
		want     []string
		warns    bool
		looked   int
	}{
		{name: "none of them exists", names: []string{"web-root", "web-data"}, looked: 4},
		{name: "a DataVolume", names: []string{"web-data", "web-root"}, storage: storage{volumes: one}, looked: 4, want: []string{message(1, "DataVolume", "web-root")}},
		{name: "a claim", names: []string{"web-root"}, storage: storage{claims: one}, looked: 2, want: []string{message(0, "PersistentVolumeClaim", "web-root")}},
		{name: "both are named once", names: []string{"web-root"}, storage: storage{volumes: one, claims: one}, looked: 2, want: []string{message(0, "DataVolume", "web-root")}},
		{
			name: "each is named", names: []string{"web-root", "web-data"}, storage: storage{volumes: one, claims: map[string]map[string]string{"web-data": nil}}, looked: 4,
			want: []string{message(0, "DataVolume", "web-root"), message(1, "PersistentVolumeClaim", "web-data")},
		},
		{name: "one that is being deleted does not count", names: []string{"web-root"}, storage: storage{volumes: one, deleted: true}, looked: 2},
		{name: "the VM exists, which the API server answers", names: []string{"web-root"}, storage: storage{volumes: one, vms: map[string]bool{"web-1": true}}, looked: 2},
		{name: "existing disks are allowed", approval: fmt.Sprintf(diskApproval, ", existingDisks: {policy: Allow}"), names: []string{"web-root"}, storage: storage{volumes: one}},
		{
			name: "those with a label are allowed", approval: fmt.Sprintf(diskApproval, ", existingDisks: {policy: Allow, selector: {matchLabels: {restored: 'yes'}}}"),
			names: []string{"web-root"}, storage: storage{volumes: restored, claims: restored}, looked: 2,
		},
		{
			name: "the DataVolume has the label, its claim lacks it", approval: fmt.Sprintf(diskApproval, ", existingDisks: {policy: Allow, selector: {matchLabels: {restored: 'yes'}}}"),
			names: []string{"web-root"}, storage: storage{volumes: restored, claims: one}, looked: 2, want: []string{message(0, "PersistentVolumeClaim", "web-root")},
		},
		{name: "where the approval warns", approval: fmt.Sprintf(diskApproval, ", enforcement: Warn"), names: []string{"web-root"}, storage: storage{volumes: one}, looked: 2, want: []string{message(0, "DataVolume", "web-root")}, warns: true},
		{name: "where the approval audits nothing is looked up", approval: fmt.Sprintf(diskApproval, ", enforcement: Audit"), names: []string{"web-root"}, storage: storage{volumes: one}},
		{name: "an exempt user", user: "kubevirt", names: []string{"web-root"}, storage: storage{volumes: one}},
		{name: "an exempt subject", approval: fmt.Sprintf(diskApproval, ", exemptSubjects: [{kind: User, name: mallory}]"), names: []string{"web-root"}, storage: storage{volumes: one}},
		{name: "a VM without such disks", storage: storage{volumes: one}},
		{
			name: "what is not approved anyway is denied without a look", names: []string{"web-root"}, storage: storage{volumes: one},
			edit: func(_, spec map[string]any) {
				podSpec(spec)["volumes"] = []any{map[string]any{"name": "init", "containerDisk": map[string]any{"image": "evil"}}}
			},
		},
		{name: "an error of the API server", names: []string{"web-root"}, storage: storage{err: errors.New("looking for DataVolume team-a/web-root: gone away")}, want: []string{"looking for DataVolume team-a/web-root: gone away; try again in a moment"}},
		{name: "more than KubeVirt permits", names: many, want: []string{"spec.dataVolumeTemplates: Too many: 257: must have at most 256 items"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fakeTemplates, found := templates(t)
			if tc.approval == "" {
				tc.approval = strict
			}
			tc.storage.mutex = &sync.Mutex{}
			edits := []func(metadata, spec map[string]any){}
			if tc.names != nil {
				edits = append(edits, disked(tc.names...))
			}
			if tc.edit != nil {
				edits = append(edits, tc.edit)
				tc.want = []string{"spec.template.spec.volumes[name=init]"}
			}
			asked := request(admissionv1.Create, stored(t, found, edits...), nil)
			if tc.user != "" {
				asked.UserInfo.Username = tc.user
			}
			h := validate.New(validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: approve(t, tc.approval)}, Disks: &tc.storage, Exempt: exemption.Users{"kubevirt"}})
			response := h.Handle(t.Context(), asked)
			if tc.warns {
				if !response.Allowed || strings.Join(response.Warnings, "\n") != "not approved: "+tc.want[0] {
					t.Errorf("allowed %v, warnings %q", response.Allowed, response.Warnings)
				}
			} else {
				check(t, response, tc.want, "")
			}
			if tc.storage.looked != tc.looked && tc.storage.err == nil {
				t.Errorf("%d lookups, want %d", tc.storage.looked, tc.looked)
			}
		})
	}
}

func TestExistingDisksHaveToBeAllowedByEachApproval(t *testing.T) {
	fakeTemplates, found := templates(t)
	approvals := append(approve(t, fmt.Sprintf(diskApproval, ", existingDisks: {policy: Allow}")), approve(t, fmt.Sprintf(diskApproval, ""))...)
	shelved := &storage{mutex: &sync.Mutex{}, claims: map[string]map[string]string{"web-root": nil}}
	h := validate.New(validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: approvals}, Disks: shelved})
	check(t, h.Handle(t.Context(), request(admissionv1.Create, stored(t, found, disked("web-root")), nil)), []string{`"web-root" exists already`}, "")
	h = validate.New(validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: []*approval.Approval{approvals[0]}}, Disks: shelved})
	check(t, h.Handle(t.Context(), request(admissionv1.Create, stored(t, found, disked("web-root")), nil)), nil, "")
}

// An update reads no disks: without an override dataVolumeTemplates are frozen, and with one the disk is evaluated
// when the VM starts.
func TestAnUpdateOfDataVolumeTemplates(t *testing.T) {
	fakeTemplates, found := templates(t)
	shelved := &storage{mutex: &sync.Mutex{}, claims: map[string]map[string]string{"other": nil}}
	for approval, want := range map[string][]string{
		strings.Replace(approved, "%s", "", 1): {"spec.dataVolumeTemplates"},
		fmt.Sprintf(diskApproval, ""):          nil,
	} {
		h := validate.New(validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: approve(t, approval)}, Disks: shelved})
		response := h.Handle(t.Context(), request(admissionv1.Update, stored(t, found, disked("other")), stored(t, found, disked("web-root"))))
		check(t, response, want, "")
	}
	if shelved.looked > 0 {
		t.Errorf("%d lookups", shelved.looked)
	}
}

// copied adds a disk to a VM that is a copy of the source of a DataSource.
func copied(name string) func(metadata, spec map[string]any) {
	return func(_, spec map[string]any) {
		spec["dataVolumeTemplates"] = []any{map[string]any{"metadata": map[string]any{"name": "web-root"}, "spec": map[string]any{
			"sourceRef": map[string]any{"kind": "DataSource", "namespace": "golden", "name": name},
		}}}
	}
}

func TestPinnedSources(t *testing.T) {
	fakeTemplates, found := templates(t)
	const objection = `spec.dataVolumeTemplates[0].spec.sourceRef: the content of the disk is none that is approved with template golden/box: DataSource golden/%s (approval "team")`
	const pinned = "{namespaces: [team-a], templates: [{namespace: golden, name: box, sources: [{uid: u1}]}], overrides: [spec.runStrategy, spec.dataVolumeTemplates]%s}"
	for _, tc := range []struct {
		name     string
		approval string
		source   string
		before   string
		user     string
		err      error
		want     []string
		looked   int
	}{
		{name: "what is pinned", source: "fedora", looked: 3},
		{name: "another content", source: "moved", want: []string{fmt.Sprintf(objection, "moved")}, looked: 1},
		{name: "an approval that pins nothing looks up nothing", approval: diskApproval, source: "moved", looked: 2},
		{name: "an exempt subject", approval: strings.Replace(pinned, "%s", ", exemptSubjects: [{kind: User, name: mallory}]%s", 1), source: "moved"},
		{name: "an exempt user", user: "kubevirt", source: "moved"},
		{name: "an error of the API server", source: "fedora", err: errors.New("looking for DataSource golden/fedora: gone away"), want: []string{"looking for DataSource golden/fedora: gone away; try again in a moment"}, looked: 1},
		{name: "an update to what is pinned", before: "moved", source: "fedora", looked: 1},
		{name: "an update to another content", before: "fedora", source: "moved", want: []string{fmt.Sprintf(objection, "moved")}, looked: 1},
		{name: "an update of something else, after the content moved on", before: "moved", source: "moved"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.approval == "" {
				tc.approval = pinned
			}
			shelved := &storage{mutex: &sync.Mutex{}, uids: map[string]string{"fedora": "u1", "moved": "u2"}, err: tc.err}
			asked := request(admissionv1.Create, stored(t, found, copied(tc.source)), nil)
			if tc.before != "" {
				asked = request(admissionv1.Update, stored(t, found, copied(tc.source), func(_, spec map[string]any) { spec["runStrategy"] = "Manual" }), stored(t, found, copied(tc.before)))
			}
			if tc.user != "" {
				asked.UserInfo.Username = tc.user
			}
			h := validate.New(validate.Options{Templates: fakeTemplates, Approvals: govern{approvals: approve(t, fmt.Sprintf(tc.approval, ""))}, Disks: shelved, Exempt: exemption.Users{"kubevirt"}})
			check(t, h.Handle(t.Context(), asked), tc.want, "")
			if shelved.looked != tc.looked {
				t.Errorf("%d lookups, want %d", shelved.looked, tc.looked)
			}
		})
	}
}

// The sources of at most disks.Maximum disks are read: the others are denied.
func TestNotAllDisksOfAVMAreLookedUp(t *testing.T) {
	fakeTemplates, found := templates(t)
	shelved := &storage{mutex: &sync.Mutex{}, uids: map[string]string{"fedora": "u1"}}
	many := func(_, spec map[string]any) {
		var volumes []any
		for i := range 257 {
			volumes = append(volumes, map[string]any{"name": fmt.Sprint("v", i), "persistentVolumeClaim": map[string]any{"claimName": "fedora"}})
		}
		podSpec(spec)["volumes"] = volumes
	}
	h := validate.New(validate.Options{Templates: fakeTemplates, Disks: shelved, Approvals: govern{approvals: approve(t,
		"{namespaces: [team-a], templates: [{namespace: golden, name: box, sources: [{uid: u1}]}], overrides: [spec.runStrategy, spec.template.spec.volumes]}")}})
	check(t, h.Handle(t.Context(), request(admissionv1.Create, stored(t, found, many), nil)),
		[]string{`spec.template.spec.volumes[256].persistentVolumeClaim.claimName: the content of the disk is none that is approved with template golden/box: only the first 256 are looked up (approval "team")`}, "")
	if shelved.looked != 256 {
		t.Errorf("%d lookups", shelved.looked)
	}
}
