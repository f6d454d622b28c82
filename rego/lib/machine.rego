package lib

# METADATA
# title: lib.annotations
# description: >-
#   The annotations of the VirtualMachineInstance and its pod, as {key, value, field}: those of spec.template, and those
#   that the instance type and the preference add. Policies about the effects of annotations use this rule, because
#   annotations of the VirtualMachine itself have no effect.
# scope: document
annotations contains {"key": key, "value": value, "field": sprintf("spec.template.metadata.annotations[%s]", [key])} if {
	some key, value in input.object.spec.template.metadata.annotations
}

annotations contains {"key": key, "value": value, "field": "spec.instancetype.name"} if {
	some key, value in input.instancetype.spec.annotations
}

annotations contains {"key": key, "value": value, "field": "spec.preference.name"} if {
	some key, value in input.preference.spec.annotations
}

# METADATA
# title: lib.networks
# description: >-
#   The networks that the VirtualMachine is attached to, as {network, field}: pod; NAMESPACE/NAME of a Multus network,
#   where the default namespace is the VirtualMachine's; resourceClaim. Without networks and interfaces, KubeVirt attaches
#   the pod network, unless autoattachPodInterface is false in the VirtualMachine or its preference.
# scope: document
networks contains {"network": "pod", "field": sprintf("spec.template.spec.networks[%d].pod", [i])} if {
	some i, network in input.object.spec.template.spec.networks
	network.pod
}

networks contains {
	"network": network_name(network.multus.networkName),
	"field": sprintf("spec.template.spec.networks[%d].multus.networkName", [i]),
} if {
	some i, network in input.object.spec.template.spec.networks
}

networks contains {"network": "resourceClaim", "field": sprintf("spec.template.spec.networks[%d].resourceClaim", [i])} if {
	some i, network in input.object.spec.template.spec.networks
	network.resourceClaim
}

networks contains {"network": "pod", "field": "spec.template.spec.networks"} if {
	count(object.get(input.object.spec.template.spec, "networks", [])) == 0
	count(object.get(input.object.spec.template.spec, ["domain", "devices", "interfaces"], [])) == 0
	not pod_interface_refused
}

pod_interface_refused if input.object.spec.template.spec.domain.devices.autoattachPodInterface == false

# KubeVirt applies a preference only to fields that the VM does not set.
pod_interface_refused if {
	not pod_interface_wanted
	input.preference.spec.devices.preferredAutoattachPodInterface == false
}

pod_interface_wanted if input.object.spec.template.spec.domain.devices.autoattachPodInterface

network_name(name) := name if {
	contains(name, "/")
} else := sprintf("%s/%s", [input.request.namespace, name])

# METADATA
# title: lib.instancetype
# description: >-
#   The instance type that the VirtualMachine names, as {kind, name}, where kind is VirtualMachineInstancetype or
#   VirtualMachineClusterInstancetype for every spelling that KubeVirt accepts, and "" for all others. Undefined if the
#   VirtualMachine has no instance type.
# scope: document
instancetype := {"kind": instancetype_kind(lower(object.get(matcher, "kind", ""))), "name": matcher.name} if {
	matcher := input.object.spec.instancetype
}

# KubeVirt accepts the singular and the plural, in lower case.
instancetype_kind(kind) := "VirtualMachineClusterInstancetype" if {
	kind in {"", "virtualmachineclusterinstancetype", "virtualmachineclusterinstancetypes"}
} else := "VirtualMachineInstancetype" if {
	kind in {"virtualmachineinstancetype", "virtualmachineinstancetypes"}
} else := ""

# METADATA
# title: lib.data_volumes
# description: >-
#   The disks that KubeVirt creates for the VirtualMachine, as {name, claim, source, field, claimField}: claim is the
#   value of storage or, in the older form, of pvc in dataVolumeTemplates, and {} without both; field is the path of the
#   template's spec; claimField is the path of claim.
# scope: document
data_volumes contains {
	"name": object.get(disk, ["metadata", "name"], ""),
	"claim": object.get(disk.spec, form, {}),
	"source": object.get(disk.spec, "source", {}),
	"field": sprintf("spec.dataVolumeTemplates[%d].spec", [i]),
	"claimField": sprintf("spec.dataVolumeTemplates[%d].spec.%s", [i, form]),
} if {
	some i, disk in input.object.spec.dataVolumeTemplates
	some form in claim_forms(disk.spec)
}

claim_forms(spec) := ["storage"] if {
	not spec.pvc
} else := ["pvc"] if {
	not spec.storage
} else := ["storage", "pvc"]
