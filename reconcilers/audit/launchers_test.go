package audit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/reconcilers/audit/observed"
)

// fakeObserved is an Observed in memory.
type fakeObserved struct {
	unsynced             bool
	vms, instances, pods []observed.Object
	changed              []string
}

func (s *fakeObserved) Synced() bool                 { return !s.unsynced }
func (s *fakeObserved) Changed() <-chan struct{}     { return nil }
func (s *fakeObserved) VMs(string) []observed.Object { return s.vms }

func (s *fakeObserved) Instances(string) []observed.Object { return s.instances }
func (s *fakeObserved) Pods(string) []observed.Object      { return s.pods }

func (s *fakeObserved) Take() []string {
	taken := s.changed
	s.changed = nil
	return taken
}

func kubevirtImages(t *testing.T, text string) images {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	from := images{others: []string{"mesh.example.com/proxy"}}
	from.addKubeVirt(object)
	return from
}

func TestFromWhereKubeVirtTakesImages(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want images
	}{
		"of a registry": {
			`{status: {observedDeploymentConfig: '{"registry":"quay.io/kubevirt","imagePrefix":"pre-","kubeVirtVersion":"v1"}'}}`,
			images{launchers: []string{"quay.io/kubevirt/pre-virt-launcher"}, shims: []string{"quay.io/kubevirt/pre-sidecar-shim"}},
		},
		"of their own, during an upgrade": {
			`{status: {observedDeploymentConfig: '{"virtLauncherImage":"a:5000/l@sha256:1","SidecarShimImage":"a:5000/s:v1"}', targetDeploymentConfig: '{"virtLauncherImage":"b/l","SidecarShimImage":"b/s"}'}}`,
			images{launchers: []string{"a:5000/l", "b/l"}, shims: []string{"a:5000/s", "b/s"}},
		},
		"of network bindings": {
			`{spec: {configuration: {network: {binding: {passt: {sidecarImage: "q/passt:v1"}, other: {}}}}}}`, images{bindings: []string{"q/passt"}},
		},
		"not known":        {`{status: {}}`, images{}},
		"cannot be parsed": {`{status: {observedDeploymentConfig: "{"}}`, images{}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.others = []string{"mesh.example.com/proxy"}
			if diff := cmp.Diff(tc.want, kubevirtImages(t, tc.text), cmp.AllowUnexported(images{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for image, want := range map[string]string{
		"a": "a", "a:v1": "a", "h:5000/a": "h:5000/a", "h:5000/a:v1": "h:5000/a", "h/a@sha256:1": "h/a", "h/a:v1@sha256:1": "h/a",
	} {
		if got := repository(image); got != want {
			t.Errorf("repository of %s: got %s, want %s", image, got, want)
		}
	}
}

const deployed = `{status: {observedDeploymentConfig: '{"registry":"quay.io/kubevirt","kubeVirtVersion":"v1"}'}, spec: {configuration: {network: {binding: {passt: {sidecarImage: "q/passt:v1"}}}}}}`

func TestWhatRunsInLauncherPods(t *testing.T) {
	const launcher = "quay.io/kubevirt/virt-launcher"
	instance := observed.Object{Disks: []string{"disks/fedora:41", "disks/kernel"}, Sidecars: `[{"image":"side/car:v1"},{}]`}
	for name, tc := range map[string]struct {
		kubevirt   string
		containers []observed.Container
		want       []string
	}{
		"what KubeVirt makes": {kubevirt: deployed, containers: []observed.Container{
			{Name: "container-disk-binary", Image: launcher + ":v1"}, {Name: "guest-console-log", Image: launcher + ":v1"}, {Name: "volumeroot-init", Image: "disks/fedora:41"},
			{Name: "compute", Image: launcher + ":v1"}, {Name: "volumeroot", Image: "disks/fedora@sha256:1"}, {Name: "volumekernel-boot-volume", Image: "disks/kernel"}, {Name: "virtiofs-share", Image: launcher},
			{Name: "hook-sidecar-0", Image: "side/car:v1"}, {Name: "hook-sidecar-1", Image: "quay.io/kubevirt/sidecar-shim:v1"}, {Name: "hook-sidecar-2", Image: "q/passt:v1"}, {Name: "hotplug-disk", Image: launcher},
		}},
		"an older KubeVirt after an upgrade": {kubevirt: deployed, containers: []observed.Container{{Name: "compute", Image: launcher + ":v0.9"}}},
		"what a cluster admin permits":       {kubevirt: deployed, containers: []observed.Container{{Name: "istio-proxy", Image: "mesh.example.com/proxy:1.2"}}},
		"another launcher": {kubevirt: deployed, containers: []observed.Container{{Name: "compute", Image: "evil.example.com/virt-launcher:v1"}},
			want: []string{"image of container compute of pod p, which is from evil.example.com/virt-launcher"}},
		"the image of a disk as launcher": {kubevirt: deployed, containers: []observed.Container{{Name: "compute", Image: "disks/fedora:41"}},
			want: []string{"image of container compute of pod p, which is from disks/fedora"}},
		"another disk": {kubevirt: deployed, containers: []observed.Container{{Name: "volumeroot", Image: "disks/rootkit"}},
			want: []string{"image of container volumeroot of pod p, which is from disks/rootkit"}},
		"another sidecar": {kubevirt: deployed, containers: []observed.Container{{Name: "hook-sidecar-0", Image: "evil/car"}},
			want: []string{"image of container hook-sidecar-0 of pod p, which is from evil/car"}},
		"a container that KubeVirt does not add": {kubevirt: deployed, containers: []observed.Container{{Name: "debugger-x", Image: launcher}, {Name: "istio-proxy", Image: "evil/proxy"}},
			want: []string{"container debugger-x of pod p, which KubeVirt does not add", "container istio-proxy of pod p, which KubeVirt does not add"}},
		"where it is not known what KubeVirt uses": {kubevirt: "{}", containers: []observed.Container{{Name: "compute", Image: "any/launcher"}, {Name: "hook-sidecar-0", Image: "any/car"}, {Name: "volumeroot", Image: "disks/rootkit"}},
			want: []string{"image of container volumeroot of pod p, which is from disks/rootkit"}},
	} {
		t.Run(name, func(t *testing.T) {
			from := kubevirtImages(t, tc.kubevirt)
			if diff := cmp.Diff(tc.want, from.foreign(observed.Object{Name: "p", Containers: tc.containers}, instance)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodsAreComparedOfTheMachineThatTheyRun(t *testing.T) {
	evil := []observed.Container{{Name: "compute", Image: "evil/l"}}
	seen := &fakeObserved{
		instances: []observed.Object{
			{Name: "web", UID: "i-web", OwnerKind: "VirtualMachine", OwnerUID: "web"},
			{Name: "passes", UID: "i-passes", OwnerKind: "VirtualMachine", OwnerUID: "other"},
			{Name: "ended", UID: "i-ended", OwnerKind: "VirtualMachine", OwnerUID: "ended"},
			{Name: "plugged", UID: "i-plugged", OwnerKind: "VirtualMachine", OwnerUID: "plugged"},
		},
		pods: []observed.Object{
			{Name: "p-web", UID: "p-1", OwnerUID: "i-web", Containers: evil},
			{Name: "p-passes", UID: "p-2", OwnerUID: "i-passes", Containers: evil},
			{Name: "p-ended", UID: "p-3", OwnerUID: "i-ended", Containers: evil, Ended: true},
			{Name: "p-plugged", UID: "p-4", OwnerUID: "i-plugged"},
			{Name: "hp", UID: "p-5", OwnerUID: "p-4", Containers: []observed.Container{{Name: "hotplug-disk", Image: "evil/l"}}},
		},
	}
	satisfied := evaluation{satisfied: []*approval.Approval{approve("one")}}
	audited := func() (causes []string) {
		check := &launcherCheck{observed: seen, images: kubevirtImages(t, deployed)}
		var page []found
		for _, name := range []string{"web", "other", "ended", "plugged", "stopped"} {
			page = append(page, found{subject: subject{"n", name, types.UID(name)}, evaluation: satisfied})
		}
		page = append(page, found{subject: subject{"n", "web", "web"}, evaluation: evaluation{cause: &cause{message: "its own"}}})
		check.apply(page)
		for i := range page {
			if why := page[i].evaluation.cause; why != nil {
				causes = append(causes, page[i].subject.name+" "+why.rule+": "+why.message)
			}
		}
		return causes
	}
	want := []string{
		"web LauncherDifferent: what runs it is not what KubeVirt makes of it: image of container compute of pod p-web, which is from evil/l",
		"plugged LauncherDifferent: what runs it is not what KubeVirt makes of it: image of container hotplug-disk of pod hp, which is from evil/l",
		"web : its own",
	}
	if diff := cmp.Diff(want, audited()); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	seen.unsynced = true
	if diff := cmp.Diff([]string{"web : its own"}, audited()); diff != "" {
		t.Errorf("causes before the lists have arrived (-want +got):\n%s", diff)
	}
}

func TestWhatBelongsToNoMachine(t *testing.T) {
	seen := &fakeObserved{
		vms: []observed.Object{{Name: "fresh", UID: "fresh"}},
		instances: []observed.Object{
			{Name: "web", UID: "i-web", OwnerKind: "VirtualMachine", OwnerUID: "web"},
			{Name: "fresh", UID: "i-fresh", OwnerKind: "VirtualMachine", OwnerUID: "fresh"},
			{Name: "free", UID: "i-free"},
			{Name: "deleted", UID: "i-deleted", Ended: true},
			{Name: "orphan", UID: "i-orphan", OwnerKind: "VirtualMachine", OwnerUID: "gone"},
			{Name: "passes", UID: "i-passes", OwnerKind: "VirtualMachine", OwnerUID: "web"},
			{Name: "replica", UID: "i-replica", OwnerKind: "VirtualMachineInstanceReplicaSet", OwnerUID: "r"},
		},
		pods: []observed.Object{
			{Name: "launcher", UID: "p-1", OwnerKind: "VirtualMachineInstance", OwnerUID: "i-web"},
			{Name: "hp", UID: "p-2", OwnerKind: "Pod", OwnerUID: "p-1"},
			{Name: "attack", UID: "p-3"},
			{Name: "ended", UID: "p-4", Ended: true},
			{Name: "stale", UID: "p-5", OwnerKind: "VirtualMachineInstance", OwnerUID: "i-gone"},
		},
	}
	const none = "a VirtualMachineInstance that belongs to no VirtualMachine"
	const label = "a Pod with the label of pods of virtual machines that belongs to no VirtualMachineInstance"
	free, replica := stray{"VirtualMachineInstance", "free", "i-free", none}, stray{"VirtualMachineInstance", "replica", "i-replica", none}
	orphan := stray{"VirtualMachineInstance", "orphan", "i-orphan", none}
	passes := stray{"VirtualMachineInstance", "passes", "i-passes", "a VirtualMachineInstance that names VirtualMachine web, of which KubeVirt has not made it"}
	attack, stale := stray{"Pod", "attack", "p-3", label}, stray{"Pod", "stale", "p-5", label}
	for name, tc := range map[string]struct {
		open     []string
		unsynced bool
		want     []stray
	}{
		"where entry points are closed":         {want: []stray{free, orphan, passes, replica, attack, stale}},
		"where instances may be created":        {open: []string{"clone", "virtualMachineInstance"}, want: []stray{orphan, passes, replica, attack, stale}},
		"where replica sets may be created":     {open: []string{"replicaSet"}, want: []stray{free, orphan, passes, attack, stale}},
		"before the lists of them have arrived": {unsynced: true},
	} {
		t.Run(name, func(t *testing.T) {
			seen.unsynced = tc.unsynced
			check := &launcherCheck{observed: seen, entryPoints: tc.open}
			got := check.strays("n", map[types.UID]string{"web": "web"})
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(stray{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAScanReportsWhatBelongsToNoMachine also checks a namespace without VMs.
func TestAScanReportsWhatBelongsToNoMachine(t *testing.T) {
	source := &fakePager{vms: []string{"free/x", "team-a/1"}}
	s, finished := scanOf(source, 3, "team-a", "team-b")
	seen := &fakeObserved{pods: []observed.Object{{Name: "attack", UID: "p"}}}
	s.launchers = func() *launcherCheck { return &launcherCheck{observed: seen} }
	all, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total := all.total()
	if got := total.approvals["a"]; got.violating != 3 || total.vms != 1 || got.violations[2].Namespace != "team-b" || got.violations[2].Name != "attack" || got.violations[2].Kind != "Pod" || got.violations[0].Kind != "" && got.violations[1].Kind != "" {
		t.Errorf("%d machines, %+v", total.vms, got)
	}
	for namespace, want := range map[string]int{"team-a": 2, "team-b": 1} {
		if got, _ := finished.Load(namespace); got != want {
			t.Errorf("%v violations are reported in %s, want %d", got, namespace, want)
		}
	}
	seen.pods = nil
	if all, err = s.run(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
