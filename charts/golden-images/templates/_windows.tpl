{{/* A system that is installed on an empty disk from a copy of its ISO image. Firmware, TPM, buses and models are those of the preference. */}}
{{- define "golden-images.windows" -}}
message: >-
  ${NAME} boots the setup of {{ .system.displayName }} until its disk has a system. Drivers for virtio are on the CD-ROM virtio-drivers.
parameters:
{{ include "golden-images.parameters" . }}
{{- with .windows.sysprep }}
- name: SYSPREP
  description: {{ . }} with answer files for setup, autounattend.xml and unattend.xml
  required: true
{{- end }}
virtualMachine:
  metadata:
    name: ${NAME}
  spec:
    {{- include "golden-images.machine" . | nindent 4 }}
    dataVolumeTemplates:
    - metadata:
        name: ${NAME}
      spec:
        source:
          blank: {}
        storage: {{- include "golden-images.diskStorage" . | nindent 10 }}
    - metadata:
        name: ${NAME}-iso
      spec:
        sourceRef:
          kind: DataSource
          name: ${DATA_SOURCE_NAME}
          namespace: ${DATA_SOURCE_NAMESPACE}
        # As large as the image.
        storage: {{- include "golden-images.storage" (dict "size" dict "values" .disks) | nindent 10 }}
    template:
      metadata:
        annotations:
          {{- include "golden-images.annotations" . | nindent 10 }}
      spec:
        architecture: {{ .architecture }}
        domain:
          devices:
            disks:
            # The disk cannot be booted before setup has written to it, so the firmware continues with the ISO image.
            - name: rootdisk
              bootOrder: 1
              disk: {}
            - name: installation
              bootOrder: 2
              cdrom:
                bus: sata
            - name: virtio-drivers
              cdrom:
                bus: sata
            {{- if .windows.sysprep }}
            - name: sysprep
              cdrom:
                bus: sata
            {{- end }}
            interfaces:
            - name: default
              masquerade: {}
        networks:
        - name: default
          pod: {}
        volumes:
        - name: rootdisk
          dataVolume:
            name: ${NAME}
        - name: installation
          dataVolume:
            name: ${NAME}-iso
        - name: virtio-drivers
          containerDisk:
            image: {{ include "golden-images.mirrored" (dict "image" .windows.virtioImage "root" .root) }}
        {{- with .windows.sysprep }}
        - name: sysprep
          sysprep:
            {{ ternary "configMap" "secret" (eq . "ConfigMap") }}:
              name: ${SYSPREP}
        {{- end }}
{{- end -}}
