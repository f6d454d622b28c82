package policies_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/harness"
)

// request returns a VirtualMachineTemplateRequest of VirtualMachine web in a namespace.
func request(version, source string) string {
	return encode(object{
		"apiVersion": "template.kubevirt.io/" + version, "kind": "VirtualMachineTemplateRequest", "metadata": object{"generateName": "web-"},
		"spec": object{"virtualMachineRef": object{"namespace": source, "name": "web"}},
	})
}

func TestRequestingATemplateTakesWhatMakingItTakes(t *testing.T) {
	t.Parallel()
	target, source := namespace(t), namespace(t)
	rule := func(verb, group, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	var (
		asking       = rule("create", "template.kubevirt.io", "virtualmachinetemplaterequests")
		volumes      = rule("create", "cdi.kubevirt.io", "datavolumes")
		templates    = rule("create", "template.kubevirt.io", "virtualmachinetemplates")
		reading      = rule("get", "kubevirt.io", "virtualmachines", "web")
		readingOther = rule("get", "kubevirt.io", "virtualmachines", "db")
		snapshots    = rule("create", "snapshot.kubevirt.io", "virtualmachinesnapshots")
		lending      = rule("create", "template.kubevirt.io", "virtualmachinetemplaterequests/source", "web")
		lendingOther = rule("create", "template.kubevirt.io", "virtualmachinetemplaterequests/source", "db")
		lendingAll   = rule("create", "template.kubevirt.io", "virtualmachinetemplaterequests/source")
	)
	const ask = ": ask an administrator of "
	var (
		noSource = denial{"template-request", "User is not allowed to use VirtualMachine " + source + "/web as the source of a VirtualMachineTemplateRequest" + ask +
			"its namespace for verb create on virtualmachinetemplaterequests/source"}
		noVolumes = denial{"template-request", "User is not allowed to create DataVolumes in namespace " + target + ", which hold the disks of the template" + ask +
			"the namespace for verb create on datavolumes.cdi.kubevirt.io"}
		noTemplates = denial{"template-request", "User is not allowed to create VirtualMachineTemplates in namespace " + target + ask +
			"the namespace for verb create on virtualmachinetemplates.template.kubevirt.io"}
		noReading = denial{"template-request", "User is not allowed to read VirtualMachine " + target + "/web, which the template would show" + ask +
			"the namespace for verb get on virtualmachines.kubevirt.io"}
		noSnapshots = denial{"template-request", "User is not allowed to create VirtualMachineSnapshots in namespace " + target + ", from which the template is made" + ask +
			"the namespace for verb create on virtualmachinesnapshots.snapshot.kubevirt.io"}
	)
	type rules = []rbacv1.PolicyRule
	cases := map[string]struct {
		// target and source are the user's permissions in these namespaces.
		target, source rules
		from           string
		want           denial
	}{
		"of another namespace, with all it takes":                             {from: source, target: rules{volumes, templates}, source: rules{lending}},
		"of another namespace, all of whose machines are lent":                {from: source, target: rules{volumes, templates}, source: rules{lendingAll}},
		"of another namespace that lends nothing":                             {from: source, target: rules{volumes, templates}, want: noSource},
		"of another namespace that lends another machine":                     {from: source, target: rules{volumes, templates}, source: rules{lendingOther}, want: noSource},
		"of another namespace, by who may read and snapshot there":            {from: source, target: rules{volumes, templates}, source: rules{reading, snapshots}, want: noSource},
		"of another namespace, by whom the target lends its own machines":     {from: source, target: rules{volumes, templates, lendingAll}, want: noSource},
		"of another namespace, without disks":                                 {from: source, target: rules{templates}, source: rules{lending, volumes}, want: noVolumes},
		"of another namespace, without templates":                             {from: source, target: rules{volumes}, source: rules{lending, templates}, want: noTemplates},
		"of the same namespace, with all it takes":                            {from: target, target: rules{volumes, templates, reading, snapshots}},
		"of the same namespace, without reading the machine":                  {from: target, target: rules{volumes, templates, snapshots}, want: noReading},
		"of the same namespace, by who may read another machine":              {from: target, target: rules{volumes, templates, readingOther, snapshots}, want: noReading},
		"of the same namespace, by who may read a machine of that name there": {from: target, target: rules{volumes, templates, snapshots}, source: rules{reading}, want: noReading},
		"of the same namespace, which lends it and lets nobody read it":       {from: target, target: rules{volumes, templates, lending, snapshots}, want: noReading},
		"of the same namespace, without snapshots":                            {from: target, target: rules{volumes, templates, reading}, want: noSnapshots},
		"of the same namespace, without disks":                                {from: target, target: rules{templates, reading, snapshots}, want: noVolumes},
		"of the same namespace, without templates":                            {from: target, target: rules{volumes, reading, snapshots}, want: noTemplates},
	}
	number := 0
	t.Run("each", func(t *testing.T) {
		for name, tc := range cases {
			number++
			requester := fmt.Sprintf("requester-%d", number)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				user := harness.User(t, shared.Plane(t), requester)
				for namespace, rules := range map[string]rules{target: append(tc.target, asking), source: tc.source} {
					harness.Grant(t, shared.Plane(t), user, namespace, rules...)
				}
				for _, version := range []string{"v1alpha1", "v1beta1"} {
					tc.want.check(t, dry(t, user, target).create(request(version, tc.from)))
				}
			})
		}
	})
	t.Run("the administrator", func(t *testing.T) {
		denial{}.check(t, acting(t, nil, target).create(request("v1beta1", source)))
	})
	t.Run("the chart's role for lending", func(t *testing.T) {
		user := harness.User(t, shared.Plane(t), "borrower")
		harness.Grant(t, shared.Plane(t), user, target, volumes, templates, asking)
		noSource.check(t, acting(t, user, target).create(request("v1beta1", source)))
		harness.Bind(t, shared.Plane(t), user, source, "stencil-template-source")
		denial{}.check(t, acting(t, user, target).create(request("v1beta1", source)))
	})
}
