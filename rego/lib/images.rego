package lib

# METADATA
# title: lib.image(reference)
# description: >-
#   The parts of an image reference, as container runtimes parse it: registry (in lower case, with its port; docker.io
#   if the reference has none), repository, tag and digest, the last two "" if missing. Undefined if the text is not an
#   image reference.
# scope: document
image(reference) := {
	"registry": registry,
	"repository": image_repository(registry, parts[1]),
	"tag": trim_prefix(parts[2], ":"),
	"digest": trim_prefix(parts[3], "@"),
} if {
	[host, rest] := image_split(reference)
	regex.match(registry_pattern, host)
	parts := regex.find_all_string_submatch_n(repository_pattern, rest, 1)[0]
	registry := image_registry(lower(host))
}

registry_pattern := `^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?$`

repository_pattern := `^([a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`

# The part before the first slash is a registry only if it cannot be part of a repository.
image_split(reference) := [head, substring(reference, count(head) + 1, -1)] if {
	[head, _] := [split(reference, "/")[0], contains(reference, "/")]
	contains(reference, "/")
	names_registry(head)
} else := ["docker.io", reference]

names_registry(head) if regex.match(`[.:A-Z]|^localhost$`, head)

image_registry(host) := "docker.io" if {
	host == "index.docker.io"
} else := host

image_repository("docker.io", path) := concat("/", ["library", path]) if {
	not contains(path, "/")
} else := path

image_repository(registry, path) := path if registry != "docker.io"

# METADATA
# title: lib.images
# description: >-
#   All container images that KubeVirt or CDI pulls for the VirtualMachine, as {reference, field}: container disks,
#   kernel boot, imports from registries, and the sidecars in annotations, including those of an instance type or a
#   preference. The reference of an import has its transport as prefix unless that is docker://. A sidecar annotation
#   that is not JSON is returned as the reference, which is not an image reference.
# scope: document
images contains {
	"reference": volume.containerDisk.image,
	"field": sprintf("spec.template.spec.volumes[%d].containerDisk.image", [i]),
} if {
	some i, volume in input.object.spec.template.spec.volumes
}

images contains {
	"reference": input.object.spec.template.spec.domain.firmware.kernelBoot.container.image,
	"field": "spec.template.spec.domain.firmware.kernelBoot.container.image",
}

images contains {
	"reference": trim_prefix(disk.spec.source.registry.url, "docker://"),
	"field": sprintf("spec.dataVolumeTemplates[%d].spec.source.registry.url", [i]),
} if {
	some i, disk in input.object.spec.dataVolumeTemplates
}

images contains {"reference": reference, "field": annotation.field} if {
	some annotation in annotations
	annotation.key == sidecar_annotation
	some reference in sidecar_images(annotation.value)
}

sidecar_annotation := "hooks.kubevirt.io/hookSidecars"

# KubeVirt decodes the annotation with Go's encoding/json, for which the keys Image and image are the same.
sidecar_images(value) := [reference |
	some sidecar in json.unmarshal(value)
	some key, reference in sidecar
	lower(key) == "image"
] if {
	json.is_valid(value)
} else := [value]
