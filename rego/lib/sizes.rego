package lib

# METADATA
# title: lib.cpus
# description: >-
#   All numbers of CPUs of the VM, as {count, field}: sockets × cores × threads, the same with maxSockets (for hotplug),
#   requests and limits, and those of its instance type. To enforce a limit, compare all of them.
# scope: document
cpus contains {"count": sockets * cpu_per_socket, "field": "spec.template.spec.domain.cpu"} if {
	sockets := at_least_one(object.get(input.object.spec.template.spec.domain.cpu, "sockets", 1))
}

cpus contains {
	"count": input.object.spec.template.spec.domain.cpu.maxSockets * cpu_per_socket,
	"field": "spec.template.spec.domain.cpu.maxSockets",
}

cpus contains {"count": quantity(value), "field": sprintf("spec.template.spec.domain.resources.%s.cpu", [list])} if {
	some list in ["requests", "limits"]
	value := input.object.spec.template.spec.domain.resources[list].cpu
}

cpus contains {"count": input.instancetype.spec.cpu.guest, "field": "spec.instancetype.name"}

# The number of CPUs in a socket depends on the preferred topology: one with sockets, at most all of them otherwise.
cpus contains {"count": input.instancetype.spec.cpu.maxSockets * instancetype_cpu_per_socket, "field": "spec.instancetype.name"}

# A VM can have its own maxSockets in addition to an instance type.
cpus contains {
	"count": input.object.spec.template.spec.domain.cpu.maxSockets * instancetype_cpu_per_socket,
	"field": "spec.template.spec.domain.cpu.maxSockets",
} if {
	input.instancetype.spec
}

cpu_per_socket := at_least_one(object.get(cpu, "cores", 1)) * at_least_one(object.get(cpu, "threads", 1)) if {
	cpu := input.object.spec.template.spec.domain.cpu
}

default instancetype_cpu_per_socket := 1

instancetype_cpu_per_socket := input.instancetype.spec.cpu.guest if {
	not input.preference.spec.cpu.preferredCPUTopology in {"sockets", "preferSockets", "any", "preferAny"}
	input.preference.spec.cpu.preferredCPUTopology
}

# KubeVirt treats 0 as unset.
at_least_one(number) := max([number, 1])

# METADATA
# title: lib.memory
# description: >-
#   All amounts of memory of the VM, in bytes, as {bytes, field}: guest, maxGuest (for hotplug), requests and limits
#   (including huge pages), reserved overhead, and those of its instance type. To enforce a limit, compare all of them.
# scope: document
memory contains {"bytes": quantity(value), "field": sprintf("spec.template.spec.domain.memory.%s", [name])} if {
	some name in ["guest", "maxGuest"]
	value := input.object.spec.template.spec.domain.memory[name]
}

memory contains {
	"bytes": quantity(input.object.spec.template.spec.domain.memory.reservedOverhead.addedOverhead),
	"field": "spec.template.spec.domain.memory.reservedOverhead.addedOverhead",
}

memory contains {"bytes": quantity(value), "field": sprintf("spec.template.spec.domain.resources.%s.%s", [list, name])} if {
	some list in ["requests", "limits"]
	some name, value in input.object.spec.template.spec.domain.resources[list]
	is_memory(name)
}

memory contains {"bytes": quantity(value), "field": "spec.instancetype.name"} if {
	some name in ["guest", "maxGuest"]
	value := input.instancetype.spec.memory[name]
}

is_memory("memory")

is_memory(name) if startswith(name, "hugepages-")

# METADATA
# title: lib.instancetype_missing
# description: >-
#   True if the VirtualMachine names an instance type that is not in input.instancetype, so that the size of the VM is
#   unknown.
# scope: document
instancetype_missing if {
	input.object.spec.instancetype.name
	not input.instancetype.spec
}
