package lib

# METADATA
# title: lib.cloud_init
# description: >-
#   The inline data of the VirtualMachine's cloud-init volumes, as {part, text, field}: part is userData or networkData;
#   text is decoded, and "" for invalid base64. Data in Secrets is not included: policies cannot read Secrets.
# scope: document
cloud_init contains {
	"part": part,
	"text": volume[source][part],
	"field": sprintf("spec.template.spec.volumes[%d].%s.%s", [i, source, part]),
} if {
	some i, volume in input.object.spec.template.spec.volumes
	some source in ["cloudInitNoCloud", "cloudInitConfigDrive"]
	some part in ["userData", "networkData"]
}

cloud_init contains {
	"part": part,
	"text": base64_text(volume[source][key]),
	"field": sprintf("spec.template.spec.volumes[%d].%s.%s", [i, source, key]),
} if {
	some i, volume in input.object.spec.template.spec.volumes
	some source in ["cloudInitNoCloud", "cloudInitConfigDrive"]
	some part in ["userData", "networkData"]
	key := concat("", [part, "Base64"])
}

base64_text(encoded) := base64.decode(encoded) if {
	base64.is_valid(encoded)
} else := ""

# METADATA
# title: lib.cloud_init_format(text)
# description: >-
#   The format that cloud-init detects in the first line of user data: cloud-config, or other for scripts, archives,
#   includes, templates, MIME, compressed data and all other formats.
# scope: document
cloud_init_format(text) := "cloud-config" if {
	regex.match(`^\s*(?i:#cloud-config)(\s|$)`, text)
} else := "other"
