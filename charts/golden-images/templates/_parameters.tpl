{{/* The parameters of every template. */}}
{{- define "golden-images.parameters" -}}
- name: NAME
  description: Name of the VirtualMachine
  generate: expression
  from: {{ .system.name }}-[a-z0-9]{8}
- name: INSTANCETYPE
  displayName: Size
  description: VirtualMachineClusterInstancetype
  value: {{ .system.instancetype }}
- name: DISK_SIZE
  displayName: Disk size
  {{- if .system.user }}
  description: Size of the disk; not less than that of the boot image
  {{- else }}
  description: Size of the disk on which Windows is installed
  {{- end }}
  value: {{ .system.diskSize }}
  pattern: "[1-9][0-9]*(Gi|Ti)"
- name: DATA_SOURCE_NAME
  {{- if .system.user }}
  description: DataSource of the boot image
  {{- else }}
  description: DataSource of the ISO image that installs Windows
  {{- end }}
  value: {{ include "golden-images.dataSource" . }}
- name: DATA_SOURCE_NAMESPACE
  description: Namespace of the DataSource
  value: {{ .namespace }}
{{- end -}}

{{/* What the VirtualMachines of all templates have in common, beside disks. */}}
{{- define "golden-images.machine" -}}
runStrategy: Halted
instancetype:
  name: ${INSTANCETYPE}
preference:
  name: {{ get .system.preferences .architecture }}
{{- end -}}

{{/* The storage of the disk with the system. */}}
{{- define "golden-images.diskStorage" -}}
{{- $size := dict "resources" (dict "requests" (dict "storage" "${DISK_SIZE}")) -}}
{{- include "golden-images.storage" (dict "size" $size "values" .disks) -}}
{{- end -}}

{{- define "golden-images.annotations" -}}
vm.kubevirt.io/os: {{ .system.os }}
vm.kubevirt.io/workload: {{ .system.workload }}
{{- end -}}
