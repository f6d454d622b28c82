package policies_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
)

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	migrations = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstancemigrations"}

	managesPods = rbacv1.PolicyRule{
		APIGroups: []string{""}, Verbs: []string{"*"}, Resources: []string{"pods", "pods/ephemeralcontainers", "pods/resize", "pods/exec", "pods/attach"},
	}
)

// metadata is a change of labels or annotations, or of another field of metadata.
func metadata(field string, value any) object { return object{"metadata": object{field: value}} }

func closedKey(key, approval string) denial {
	return denial{"running-machines", "labels and annotations of a running VirtualMachineInstance reach its pod, so " + key +
		" cannot be changed in a namespace that TemplateApproval " + approval + " governs: a cluster admin can permit the key with the chart value writableInstanceKeys"}
}

var (
	instanceClosed = denial{"running-machines", "KubeVirt alone writes spec and status of a VirtualMachineInstance in a governed namespace: " +
		"change the VirtualMachine, where its template and the approvals permit it"}
	statusClosed = denial{"running-machines", "KubeVirt alone writes the status of a VirtualMachine in a governed namespace: " +
		"use virtctl or the subresources to start, stop and restart it"}
	ownershipAtCreation = denial{"running-machines", "a VirtualMachine in a governed namespace is created without ownerReferences and without finalizers of others than KubeVirt: " +
		"remove them, or a cluster admin can exempt the controller that needs them with exemptSubjects of the TemplateApproval"}
	ownershipClosed = denial{"running-machines", "finalizers and ownerReferences of virtual machines cannot be changed in a governed namespace: " +
		"a cluster admin can exempt the controller that needs to with exemptSubjects of the TemplateApproval"}
)

func TestRunningMachinesStayAsTheyWereApproved(t *testing.T) {
	t.Parallel()
	space, free := namespace(t), namespace(t)
	const image = `[{"args": ["--version", "v1alpha2"], "image": "registry.example/attack"}]`
	for _, space := range []string{space, free} {
		admin := acting(t, nil, space)
		mustPass(t, admin.create(encode(object{
			"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
			"metadata": object{"name": "stored", "labels": object{"team": "a", "velero.io/backup-name": "b"}, "annotations": object{"note": "n"}},
			"spec":     object{"domain": object{"devices": object{}}}, "status": object{"phase": "Running"},
		})))
		mustPass(t, admin.create(templated("stored", "golden/fedora")))
		mustPass(t, admin.create(vm("v1", object{"name": "held", "finalizers": []any{"example.com/hold", "example.com/other"}}, "golden/fedora")))
		mustPass(t, admin.create(plain("plain")))
	}
	handyman := newOwner(t, "running-handyman")
	approve(t, "running", object{"namespaces": []any{space}, "exemptSubjects": []any{object{"kind": "User", "name": handyman.Name}}})
	owners := []any{object{"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "11111111-2222-3333-4444-555555555555"}}
	reference := object{"status": object{"instancetypeRef": object{"name": "u1.small", "kind": "virtualmachineclusterinstancetype",
		"controllerRevisionRef": object{"name": "forged"}}}}

	type write struct {
		resource     schema.GroupVersionResource
		names        []string
		change       object
		subresources []string
		want         denial // the zero value for what everybody may do
	}
	vms, both := []string{"stored", "plain"}, vms
	cases := map[string]write{
		"a hook sidecar":              {resource: instances, change: metadata("annotations", object{"hooks.kubevirt.io/hookSidecars": image}), want: closedKey("hooks.kubevirt.io/hookSidecars", "running")},
		"another network":             {resource: instances, change: metadata("annotations", object{"v1.multus-cni.io/default-network": "other/net"}), want: closedKey("v1.multus-cni.io/default-network", "running")},
		"a command of a backup tool":  {resource: instances, change: metadata("annotations", object{"pre.hook.backup.velero.io/command": `["/bin/sh"]`}), want: closedKey("pre.hook.backup.velero.io/command", "running")},
		"a proxy image":               {resource: instances, change: metadata("annotations", object{"sidecar.istio.io/proxyImage": "attack"}), want: closedKey("sidecar.istio.io/proxyImage", "running")},
		"a prefix is no key of it":    {resource: instances, change: metadata("annotations", object{"velero.iox": "a"}), want: closedKey("velero.iox", "running")},
		"a label is added":            {resource: instances, change: metadata("labels", object{"role": "db"}), want: closedKey("role", "running")},
		"a label is changed":          {resource: instances, change: metadata("labels", object{"team": "b"}), want: closedKey("team", "running")},
		"a label is taken away":       {resource: instances, change: metadata("labels", object{"team": nil}), want: closedKey("team", "running")},
		"an annotation is taken away": {resource: instances, change: metadata("annotations", object{"note": nil}), want: closedKey("note", "running")},
		"a closed key beside an open one": {
			resource: instances, want: closedKey("role", "running"),
			change: object{"metadata": object{"labels": object{"velero.io/backup-name": "c", "role": "db"}}},
		},
		"finalizers of an instance": {resource: instances, change: metadata("finalizers", []any{"example.com/a"}), want: ownershipClosed},
		"owners of an instance":     {resource: instances, change: metadata("ownerReferences", owners), want: ownershipClosed},
		"status of an instance":     {resource: instances, change: object{"status": object{"phase": "Failed"}}, want: instanceClosed},
		"spec of an instance":       {resource: instances, change: object{"spec": object{"nodeSelector": object{"a": "b"}}}, want: instanceClosed},
		"finalizers of a VM":        {resource: both, names: vms, change: metadata("finalizers", []any{"example.com/a"}), want: ownershipClosed},
		"owners of a VM":            {resource: both, names: vms, change: metadata("ownerReferences", owners), want: ownershipClosed},
		"an instance type of one's own": {
			resource: both, names: vms, change: reference, subresources: []string{"status"}, want: statusClosed,
		},
		"any status of a VM": {resource: both, names: vms, change: object{"status": object{"ready": true}}, subresources: []string{"status"}, want: statusClosed},

		"what kubectl apply writes":          {resource: instances, change: metadata("annotations", object{"kubectl.kubernetes.io/last-applied-configuration": "{}"})},
		"what Velero marks":                  {resource: instances, change: metadata("labels", object{"velero.io/backup-name": "nightly", "velero.io/restore-name": "r"})},
		"what Kasten marks":                  {resource: instances, change: metadata("annotations", object{"k10.kasten.io/freezeVM": "true"})},
		"what is said to a descheduler":      {resource: instances, change: metadata("annotations", object{"descheduler.alpha.kubernetes.io/evict": "true", "descheduler.alpha.kubernetes.io/prefer-no-eviction": "true"})},
		"what Prometheus reads":              {resource: instances, change: metadata("annotations", object{"prometheus.io/scrape": "true", "prometheus.io/port": "9100"})},
		"a label of the ambient mesh":        {resource: instances, change: metadata("labels", object{"istio.io/dataplane-mode": "ambient", "istio.io/use-waypoint": "w"})},
		"the name of an application":         {resource: instances, change: metadata("labels", object{"app.kubernetes.io/part-of": "shop"})},
		"an open key is taken away":          {resource: instances, change: metadata("labels", object{"velero.io/backup-name": nil})},
		"what is stored":                     {resource: instances, change: object{"metadata": object{"labels": object{"team": "a"}}, "status": object{"phase": "Running"}}},
		"a finalizer of a VM is removed":     {resource: both, names: []string{"held"}, change: metadata("finalizers", []any{"example.com/hold"})},
		"all finalizers of a VM are removed": {resource: both, names: []string{"held"}, change: metadata("finalizers", nil)},
		"a label of a VM":                    {resource: both, names: vms, change: metadata("labels", object{"role": "db"})},
	}
	t.Run("each", func(t *testing.T) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if tc.names == nil {
					tc.names = []string{"stored"}
				}
				for _, name := range tc.names {
					for _, version := range []string{"v1", "v1alpha3"} {
						resource := tc.resource.GroupResource().WithVersion(version)
						patch := func(as *controlplane.User, space string) controlplane.Result {
							return dry(t, as, space).patch(resource, name, encode(tc.change), tc.subresources...)
						}
						tc.want.check(t, patch(owner, space))
						tc.want.check(t, patch(nil, space))
						denial{}.check(t, patch(controller, space))
						denial{}.check(t, patch(handyman, space))
						denial{}.check(t, patch(owner, free))
					}
				}
			})
		}
		t.Run("a VM is created", func(t *testing.T) {
			t.Parallel()
			for name, tc := range map[string]struct {
				field string
				value []any
				want  denial
			}{
				"with a foreign finalizer":  {"finalizers", []any{"example.com/hold"}, ownershipAtCreation},
				"with an owner":             {"ownerReferences", owners, ownershipAtCreation},
				"with KubeVirt's finalizer": {"finalizers", []any{"kubevirt.io/virtualMachineControllerFinalize"}, denial{}},
			} {
				created := vm("v1", object{"name": "created", tc.field: tc.value}, "golden/fedora")
				t.Run(name, func(t *testing.T) {
					tc.want.check(t, dry(t, nil, space).create(created))
					denial{}.check(t, dry(t, nil, free).create(created))
				})
			}
		})
		t.Run("an instance is replaced", func(t *testing.T) {
			t.Parallel()
			replacement := encode(object{
				"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": object{"name": "stored"},
				"spec": object{"domain": object{"devices": object{}}}, "status": object{"phase": "Running"},
			})
			closedKey("team", "running").check(t, dry(t, owner, space).replace(replacement))
			denial{}.check(t, dry(t, owner, free).replace(replacement))
		})
		t.Run("an instance is deleted", func(t *testing.T) {
			t.Parallel()
			denial{}.check(t, dry(t, owner, space).delete(instances, "stored"))
		})
	})
}

func TestMigrationsSayNothingAboutTheirPod(t *testing.T) {
	t.Parallel()
	space, free := namespace(t), namespace(t)
	migration := func(annotations, spec object) string {
		spec["vmiName"] = "web"
		return encode(object{
			"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
			"metadata": object{"name": "move", "annotations": annotations, "labels": object{"kubevirt.io/vmi-name": "web"}}, "spec": spec,
		})
	}
	for _, space := range []string{space, free} {
		mustPass(t, acting(t, nil, space).create(migration(object{}, object{})))
		mustPass(t, acting(t, nil, space).delete(migrations, "move"))
		stored := unstructuredOf(t, migration(object{}, object{}))
		stored.SetName("stored")
		mustPass(t, acting(t, nil, space).create(encode(stored.Object)))
	}
	handyman := newOwner(t, "migrations-handyman")
	approve(t, "migrates", object{"namespaces": []any{space}, "exemptSubjects": []any{object{"kind": "User", "name": handyman.Name}}})

	annotation := func(key string) denial {
		return denial{"migrations", "annotation " + key + " of a VirtualMachineInstanceMigration is denied in a namespace that TemplateApproval migrates governs: leave it out"}
	}
	field := func(name string) denial {
		return denial{"migrations", "spec." + name + " of a VirtualMachineInstanceMigration is denied in a namespace that TemplateApproval migrates governs: leave it out"}
	}
	changed := denial{"migrations", "KubeVirt alone changes a VirtualMachineInstanceMigration in a governed namespace: delete it and create another one"}
	node := denial{"migrations", "the target node of a migration cannot be chosen in a governed namespace: migrate without addedNodeSelector; " +
		"a cluster admin can permit it with the chart value entryPoints.migrationNodeSelector"}
	selector := object{"addedNodeSelector": object{"kubernetes.io/hostname": "node-1"}}

	for name, tc := range map[string]struct {
		manifest string
		want     denial
	}{
		"another image":             {migration(object{"kubevirt.io/func-test-migration-target-image-override": "attack"}, object{}), annotation("kubevirt.io/func-test-migration-target-image-override")},
		"any annotation":            {migration(object{"a": "b"}, object{}), annotation("a")},
		"a node":                    {migration(object{}, object{"addedNodeSelector": object{"kubernetes.io/hostname": "node-1"}}), field("addedNodeSelector")},
		"another cluster":           {migration(object{}, object{"sendTo": object{"migrationID": "a", "connectURL": "https://attack.example"}}), field("sendTo")},
		"a VM from another cluster": {migration(object{}, object{"receive": object{"migrationID": "a"}}), field("receive")},
		"what kubectl apply adds":   {manifest: migration(object{"kubectl.kubernetes.io/last-applied-configuration": "{}"}, object{})},
		"a priority":                {manifest: migration(object{}, object{"priority": "user-triggered"})},
		"nothing":                   {manifest: migration(object{}, object{})},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"kubevirt.io/v1", "kubevirt.io/v1alpha3"} {
				manifest := strings.Replace(tc.manifest, `"kubevirt.io/v1"`, `"`+version+`"`, 1)
				tc.want.check(t, dry(t, owner, space).create(manifest))
				denial{}.check(t, dry(t, controller, space).create(manifest))
				denial{}.check(t, dry(t, handyman, space).create(manifest))
				denial{}.check(t, dry(t, owner, free).create(manifest))
			}
		})
	}
	t.Run("changes", func(t *testing.T) {
		for name, change := range map[string]object{
			"an annotation":  metadata("annotations", object{"kubevirt.io/func-test-migration-target-image-override": "attack"}),
			"a finalizer":    metadata("finalizers", []any{}),
			"spec":           {"spec": selector},
			"status.phase":   {"status": object{"phase": "Failed"}},
			"a false target": {"status": object{"migrationState": object{"targetPod": "attack"}}},
		} {
			t.Run(name, func(t *testing.T) {
				var subresources []string
				if change["status"] != nil {
					subresources = []string{"status"}
				}
				patch := func(as *controlplane.User, space string) controlplane.Result {
					return dry(t, as, space).patch(migrations, "stored", encode(change), subresources...)
				}
				if name != "a finalizer" { // it has none
					changed.check(t, patch(owner, space))
				}
				denial{}.check(t, patch(controller, space))
				denial{}.check(t, patch(handyman, space))
				denial{}.check(t, patch(owner, free))
			})
		}
		denial{}.check(t, dry(t, owner, space).patch(migrations, "stored", encode(metadata("labels", object{"a": "b"}))))
		denial{}.check(t, dry(t, owner, space).delete(migrations, "stored"))
	})
	t.Run("virt-api creates migrations for users", func(t *testing.T) {
		denial{}.check(t, dry(t, virtAPI, space).create(migration(object{}, object{})))
		node.check(t, dry(t, virtAPI, space).create(migration(object{}, selector)))
		denial{}.check(t, dry(t, virtAPI, free).create(migration(object{}, selector)))
	})
	t.Run("an approval that exempts virt-api lets it choose the node", func(t *testing.T) {
		mustPass(t, acting(t, nil, "").patch(allApprovals, "migrates", encode(object{"spec": object{"exemptSubjects": []any{
			object{"kind": "ServiceAccount", "namespace": "kubevirt", "name": "kubevirt-apiserver"},
		}}})))
		eventually(t, "virt-api is exempt", func() string {
			return denial{}.complaint(dry(t, virtAPI, space).create(migration(object{}, selector)))
		})
	})
}

func TestPodsOfMachinesAreKubeVirts(t *testing.T) {
	t.Parallel()
	space, free := namespace(t), namespace(t)
	compute := func(image, cpu string) []any {
		resources := object{"requests": object{"cpu": cpu}, "limits": object{"cpu": "4"}}
		return []any{object{"name": "compute", "image": "registry.example/" + image, "resources": resources}}
	}
	pod := func(name string, metadata object) string {
		metadata["name"] = name
		return encode(object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": object{
			"containers": compute("virt-launcher", "1"), "schedulingGates": []any{object{"name": "example.com/gate"}}, "automountServiceAccountToken": false,
		}})
	}
	launcher := object{"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": "11111111-2222-3333-4444-555555555555"}
	for _, space := range []string{space, free} {
		admin := acting(t, nil, space)
		mustPass(t, admin.create(encode(object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": "default"}})))
		mustPass(t, admin.create(pod("virt-launcher-web-abcde", object{"labels": launcher})))
		mustPass(t, admin.create(pod("hp-volume-abcde", object{"labels": object{"kubevirt.io": "hotplug-disk"}})))
		mustPass(t, admin.create(pod("plain", object{})))
	}
	podManager := newOwner(t, "pods-keeper", managesPods)
	handyman := newOwner(t, "pods-handyman", managesPods)
	harness.Grant(t, shared.Plane(t), controller, "", managesPods)
	approve(t, "pods", object{"namespaces": []any{space}, "exemptSubjects": []any{object{"kind": "User", "name": handyman.Name}}})

	created := denial{"launcher-pods", "KubeVirt alone creates pods of virtual machines in a governed namespace: create a VirtualMachine from an approved template, or " +
		"leave out the labels and the owner that belong to KubeVirt"}
	entered := denial{"launcher-pods", "commands cannot be run in the pod of a virtual machine in a governed namespace, because they control the virtual machine: use its " +
		"console; a cluster admin can permit it to a backup tool with exemptSubjects of the TemplateApproval"}
	changed := denial{"launcher-pods", "KubeVirt alone changes the pod of a virtual machine in a governed namespace: change the VirtualMachine, where its template and the approvals permit it"}

	for name, tc := range map[string]struct {
		metadata object
		want     denial
	}{
		"a launcher":               {object{"labels": object{"kubevirt.io": "virt-launcher"}}, created},
		"a pod that plugs volumes": {object{"labels": object{"kubevirt.io": "hotplug-disk"}}, created},
		"a pod of some VM":         {object{"labels": object{"kubevirt.io/created-by": "11111111-2222-3333-4444-555555555555"}}, created},
		"a pod that a VirtualMachineInstance owns": {object{"ownerReferences": []any{object{
			"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "uid": "11111111-2222-3333-4444-555555555555", "controller": true,
		}}}, created},
		"any other pod":                    {metadata: object{"labels": object{"app": "web"}}},
		"another process of KubeVirt":      {metadata: object{"labels": object{"kubevirt.io": "virt-api"}}},
		"a pod that something else owns":   {metadata: object{"ownerReferences": []any{object{"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "11111111-2222-3333-4444-555555555555"}}}},
		"a pod with an annotation instead": {metadata: object{"annotations": object{"kubevirt.io/domain": "web"}}},
	} {
		t.Run("creating "+name, func(t *testing.T) {
			tc.want.check(t, dry(t, podManager, space).create(pod("attack", tc.metadata)))
			denial{}.check(t, dry(t, controller, space).create(pod("attack", tc.metadata)))
			denial{}.check(t, dry(t, handyman, space).create(pod("attack", tc.metadata)))
			denial{}.check(t, dry(t, podManager, free).create(pod("attack", tc.metadata)))
		})
	}
	for name, tc := range map[string]struct {
		change      object
		subresource string
		want        denial
	}{
		"the image":        {change: object{"spec": object{"containers": compute("attack", "1")}}, want: changed},
		"the deadline":     {change: object{"spec": object{"activeDeadlineSeconds": 10}}, want: changed},
		"the node":         {change: object{"spec": object{"nodeSelector": object{"a": "b"}}}, want: changed},
		"the label":        {change: metadata("labels", object{"kubevirt.io": nil}), want: changed},
		"the domain":       {change: metadata("annotations", object{"kubevirt.io/domain": "other"}), want: changed},
		"hooks":            {change: metadata("annotations", object{"hooks.kubevirt.io/hookSidecars": "[]"}), want: changed},
		"the networks":     {change: metadata("annotations", object{"k8s.v1.cni.cncf.io/networks": "other/net"}), want: changed},
		"a finalizer":      {change: metadata("finalizers", []any{"example.com/a"}), want: changed},
		"the resources":    {change: object{"spec": object{"containers": compute("virt-launcher", "2")}}, subresource: "resize", want: changed},
		"a debugger":       {change: object{"spec": object{"ephemeralContainers": []any{object{"name": "debug", "image": "attack"}}}}, subresource: "ephemeralcontainers", want: changed},
		"a toleration":     {change: object{"spec": object{"tolerations": []any{object{"key": "a", "operator": "Exists"}}}}},
		"the gates":        {change: object{"spec": object{"schedulingGates": []any{}}}},
		"another label":    {change: metadata("labels", object{"app": "b"})},
		"a mark of evict":  {change: metadata("annotations", object{"descheduler.alpha.kubernetes.io/eviction-in-progress": "true"})},
		"what a mesh adds": {change: metadata("annotations", object{"ambient.istio.io/redirection": "enabled"})},
	} {
		t.Run("changing "+name, func(t *testing.T) {
			patch := func(as *controlplane.User, space, name string) controlplane.Result {
				var subresources []string
				if tc.subresource != "" {
					subresources = []string{tc.subresource}
				}
				return dry(t, as, space).patch(pods, name, encode(tc.change), subresources...)
			}
			tc.want.check(t, patch(podManager, space, "virt-launcher-web-abcde"))
			denial{}.check(t, patch(controller, space, "virt-launcher-web-abcde"))
			denial{}.check(t, patch(handyman, space, "virt-launcher-web-abcde"))
			denial{}.check(t, patch(podManager, free, "virt-launcher-web-abcde"))
			denial{}.check(t, patch(podManager, space, "plain"))
		})
	}
	t.Run("a pod becomes a launcher", func(t *testing.T) {
		changed.check(t, dry(t, podManager, space).patch(pods, "plain", encode(metadata("labels", object{"kubevirt.io": "virt-launcher"}))))
	})
	for _, command := range [][]string{{"exec"}, {"attach"}} {
		t.Run(command[0], func(t *testing.T) {
			enter := func(as *controlplane.User, space, name string) controlplane.Result {
				arguments := []string{command[0], name, "--namespace=" + space}
				if command[0] == "exec" {
					arguments = append(arguments, "--", "true")
				}
				return kubectl(t, as, "", arguments...)
			}
			// No node runs the pods, so permitted requests fail later.
			passed := func(result controlplane.Result) {
				t.Helper()
				if result.Code == 0 || strings.Contains(result.Stderr, "launcher-pods") {
					t.Errorf("want an error about the pod, which does not run, got %s", result.Stderr)
				}
			}
			entered.check(t, enter(podManager, space, "virt-launcher-web-abcde"))
			entered.check(t, enter(podManager, space, "hp-volume-abcde"))
			passed(enter(handyman, space, "virt-launcher-web-abcde"))
			passed(enter(podManager, space, "plain"))
			passed(enter(podManager, free, "virt-launcher-web-abcde"))
		})
	}
	t.Run("a pod is deleted", func(t *testing.T) {
		denial{}.check(t, dry(t, podManager, space).delete(pods, "virt-launcher-web-abcde"))
	})
}
