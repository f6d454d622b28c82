{{/* A system that boots from a copy of its image and is configured by cloud-init. Buses, firmware and models are those of the preference. */}}
{{- define "golden-images.linux" -}}
# The user data are in the Secret NAME-cloudinitdisk, which belongs to the VirtualMachine.
secretize: true
{{- if eq .login "Password" }}
message: >-
  Log in to ${NAME} as {{ .system.user }}. The password is in the user data:
  kubectl get secret ${NAME}-cloudinitdisk -o jsonpath={.data.userdata} | base64 -d
{{- else }}
message: Log in to ${NAME} as {{ .system.user }} with your SSH key.
{{- end }}
parameters:
{{ include "golden-images.parameters" . }}
{{- if eq .login "Password" }}
- name: CLOUD_USER_PASSWORD
  displayName: Password
  description: Password of the user {{ .system.user }}
  generate: expression
  from: "[a-z0-9]{4}-[a-z0-9]{4}-[a-z0-9]{4}"
  sensitive: true
{{- else }}
- name: SSH_KEY
  displayName: SSH public key
  description: Public key of the user {{ .system.user }}
  required: true
  pattern: "(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh.com|sk-ecdsa-sha2-nistp256@openssh.com) [A-Za-z0-9+/=]+( .*)?"
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
        sourceRef:
          kind: DataSource
          name: ${DATA_SOURCE_NAME}
          namespace: ${DATA_SOURCE_NAMESPACE}
        storage: {{- include "golden-images.diskStorage" . | nindent 10 }}
    template:
      metadata:
        annotations:
          {{- include "golden-images.annotations" . | nindent 10 }}
      spec:
        architecture: {{ .architecture }}
        terminationGracePeriodSeconds: 180
        domain:
          devices:
            disks:
            - name: rootdisk
              disk: {}
            - name: cloudinitdisk
              disk: {}
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
        - name: cloudinitdisk
          cloudInitNoCloud:
            userData: |
              #cloud-config
              user: {{ .system.user }}
              {{- if eq .login "Password" }}
              password: ${CLOUD_USER_PASSWORD|yaml}
              chpasswd: {expire: false}
              {{- else }}
              ssh_authorized_keys:
              - ${SSH_KEY|yaml}
              {{- end }}
{{- end -}}
