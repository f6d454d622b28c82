package policies_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/test/controlplane"
)

// entry is what virt-api appends to status.volumeRequests for `virtctl addvolume`.
func entry(name string) object {
	return object{"addVolumeOptions": object{
		"name": name, "disk": object{"name": name, "disk": object{"bus": "scsi"}},
		"volumeSource": object{"persistentVolumeClaim": object{"claimName": name, "hotpluggable": true}},
	}}
}

// plug requests a volume as virt-api does, for the VirtualMachine stored.
func plug(t *testing.T, space string) controlplane.Result {
	t.Helper()
	return dry(t, virtAPI, space).patch(vms, "stored", encode(object{"status": object{"volumeRequests": []any{entry("data")}}}), "status")
}

// unplugged is the denial of plugging a volume in or unplugging it.
func unplugged(approval string) denial {
	return denial{"hotplug", "volumes cannot be plugged in or unplugged in a namespace that TemplateApproval " + approval +
		" governs: change volumes in spec of the VirtualMachine, if an approval lists them as overrides; " +
		"a cluster admin can allow it with the chart value entryPoints.hotplug"}
}

func TestVolumesAreNotPluggedIntoGovernedMachines(t *testing.T) {
	t.Parallel()
	space, free := namespace(t), namespace(t)
	volume := func(name string) object {
		return object{"name": name, "persistentVolumeClaim": object{"claimName": name}}
	}
	disk := func(name string) object { return object{"name": name, "disk": object{"bus": "scsi"}} }
	instance := encode(object{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": object{"name": "stored"}, "spec": object{
		"domain": object{"devices": object{"disks": []any{disk("root")}}}, "volumes": []any{volume("root")},
	}})
	for _, space := range []string{space, free} {
		admin := acting(t, nil, space)
		mustPass(t, admin.create(plain("stored")))
		mustPass(t, admin.create(templated("rendered", "golden/fedora")))
		mustPass(t, admin.create(instance))
		for _, name := range []string{"stored", "rendered"} {
			mustPass(t, admin.patch(vms, name, encode(object{"status": object{"volumeRequests": []any{entry("old"), entry("done")}}}), "status"))
		}
	}
	handyman := newOwner(t, "handyman")
	approve(t, "unplugs", object{"namespaces": []any{space}, "exemptSubjects": []any{object{"kind": "User", "name": handyman.Name}}})

	requests := func(entries ...any) object { return object{"status": object{"volumeRequests": entries}} }
	removal := object{"removeVolumeOptions": object{"name": "root"}}
	other := entry("old")
	other["addVolumeOptions"].(object)["volumeSource"] = object{"persistentVolumeClaim": object{"claimName": "another", "hotpluggable": true}}
	template := func(spec object) object { return object{"spec": object{"template": object{"spec": spec}}} }
	plugged := object{"volumes": []any{volume("root"), volume("data")}, "domain": object{"devices": object{"disks": []any{disk("root"), disk("data")}}}}

	const vms, instances = "virtualmachines", "virtualmachineinstances"
	cases := map[string]struct {
		as       *controlplane.User // virt-api when nil
		resource string
		status   bool
		change   object
		refused  bool
	}{
		"virt-api appends a request to plug a volume in":          {resource: vms, status: true, change: requests(entry("old"), entry("done"), entry("data")), refused: true},
		"virt-api appends a request to unplug one":                {resource: vms, status: true, change: requests(entry("old"), entry("done"), removal), refused: true},
		"virt-api replaces all requests":                          {resource: vms, status: true, change: requests(entry("data")), refused: true},
		"virt-api has a request ask for another claim":            {resource: vms, status: true, change: requests(other, entry("done")), refused: true},
		"the controller appends one":                              {as: controller, resource: vms, status: true, change: requests(entry("old"), entry("data")), refused: true},
		"somebody exempt appends one":                             {as: handyman, resource: vms, status: true, change: requests(entry("data"))},
		"the controller takes one away that is done":              {as: controller, resource: vms, status: true, change: requests(entry("old"))},
		"the controller takes all away":                           {as: controller, resource: vms, status: true, change: requests()},
		"the controller writes other things":                      {as: controller, resource: vms, status: true, change: object{"status": object{"created": true, "ready": true}}},
		"virt-api asks for a restart":                             {resource: vms, status: true, change: object{"status": object{"stateChangeRequests": []any{object{"action": "Stop"}}}}},
		"virt-api plugs a volume into spec":                       {resource: vms, change: template(plugged), refused: true},
		"virt-api starts a machine":                               {resource: vms, change: object{"spec": object{"runStrategy": "Always"}}},
		"virt-api fills in defaults when it starts a machine":     {resource: vms, change: object{"spec": object{"runStrategy": "Always", "template": object{"spec": object{"domain": object{"machine": object{"type": "q35"}}}}}}},
		"the controller plugs a volume into spec":                 {as: controller, resource: vms, change: template(plugged)},
		"virt-api plugs a volume into an instance":                {resource: instances, change: object{"spec": plugged}, refused: true},
		"virt-api unplugs one from an instance":                   {resource: instances, change: object{"spec": object{"volumes": []any{}}}, refused: true},
		"virt-api puts another claim under a volume":              {resource: instances, change: object{"spec": object{"volumes": []any{object{"name": "root", "persistentVolumeClaim": object{"claimName": "another"}}}}}, refused: true},
		"virt-api shortens the grace period of an instance":       {resource: instances, change: object{"spec": object{"terminationGracePeriodSeconds": 0}}},
		"the controller plugs a volume into an instance":          {as: controller, resource: instances, change: object{"spec": plugged}},
		"the controller writes the status of an instance":         {as: controller, resource: instances, change: object{"status": object{"phase": "Running"}}},
		"virt-api writes the status of an instance with its spec": {resource: instances, change: object{"status": object{"phase": "Running"}, "spec": plugged}, refused: true},
		"a machine without requests gets none":                    {resource: vms, status: true, change: object{"metadata": object{"labels": object{"a": "b"}}}},
		"virt-api labels an instance":                             {resource: instances, change: object{"metadata": object{"labels": object{"a": "b"}}}},
		"virt-api labels a machine":                               {resource: vms, change: object{"metadata": object{"labels": object{"a": "b"}}}},
		"virt-api sends the volumes that an instance has":         {resource: instances, change: object{"spec": object{"volumes": []any{volume("root")}}}},
		"virt-api sends the requests that there are":              {resource: vms, status: true, change: requests(entry("done"), entry("old"))},
		"the requests are sent again beside a change of status":   {as: controller, resource: vms, status: true, change: object{"status": object{"created": true, "volumeRequests": []any{entry("old"), entry("done")}}}},
	}
	t.Run("each", func(t *testing.T) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				as := tc.as
				if as == nil {
					as = virtAPI
				}
				names := []string{"stored"}
				// A template makes no difference here; for other fields, the spec of a VirtualMachine without one is frozen.
				if tc.resource == vms {
					names = []string{"rendered"}
					if tc.status {
						names = []string{"rendered", "stored"}
					}
				}
				for _, name := range names {
					for _, version := range []string{"v1", "v1alpha3"} {
						patch := func(space string) controlplane.Result {
							var subresources []string
							if tc.status {
								subresources = []string{"status"}
							}
							resource := schema.GroupVersionResource{Group: "kubevirt.io", Version: version, Resource: tc.resource}
							return dry(t, as, space).patch(resource, name, encode(tc.change), subresources...)
						}
						want := denial{}
						if tc.refused {
							want = unplugged("unplugs")
						}
						want.check(t, patch(space))
						if tc.refused {
							denial{}.check(t, patch(free))
						}
					}
				}
			})
		}
	})
	t.Run("an approval that exempts virt-api lets it plug", func(t *testing.T) {
		mustPass(t, acting(t, nil, "").patch(allApprovals, "unplugs", encode(object{"spec": object{"exemptSubjects": []any{
			object{"kind": "ServiceAccount", "namespace": "kubevirt", "name": "kubevirt-apiserver"},
		}}})))
		eventually(t, "virt-api is exempt", func() string { return denial{}.complaint(plug(t, space)) })
	})
}
