{{/* Flags of a server that has defaults filled in, as a YAML list. */}}
{{- define "stencil.defaulting.args" -}}
{{- with .Values.defaulting -}}
- --defaulting-socket={{ include "stencil.defaulting.folder" $ }}/defaulter.sock
- --defaulting-machine-type={{ .machineType }}
- --defaulting-pci-address={{ .pciAddress }}
- --defaulting-firmware-uuid={{ .firmwareUUID }}
- --defaulting-mac={{ .mac }}
- --defaulting-cpu={{ .cpu }}
- --defaulting-memory={{ .memory }}
{{- end }}
{{- end -}}

{{/*
The defaulter beside such a server. As a sidecar it starts before the server, and ends after it: a replica that shuts down continues to
serve for a while. It has no probes: it supervises libvirt itself, and the server works without it.
*/}}
{{- define "stencil.defaulting.sidecar" -}}
{{- with .Values.defaulting -}}
- name: defaulter
  restartPolicy: Always
  image: {{ include "stencil.defaulting.image" $ }}
  imagePullPolicy: {{ (include "stencil.defaulting.values" $ | fromJson).pullPolicy }}
  args:
    - --socket={{ include "stencil.defaulting.folder" $ }}/defaulter.sock
    - --root=/var/lib/stencil-defaulter
    {{- with .extraArgs }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    capabilities:
      drop: [ALL]
    seccompProfile:
      type: RuntimeDefault
  resources:
    {{- toYaml .resources | nindent 4 }}
  volumeMounts:
    - name: defaulter-socket
      mountPath: {{ include "stencil.defaulting.folder" $ }}
    - name: defaulter-state
      mountPath: /var/lib/stencil-defaulter
{{- end }}
{{- end -}}

{{/* What the server mounts: the socket, and the token, which the defaulter does not need and the pod therefore does not mount. */}}
{{- define "stencil.defaulting.mounts" -}}
- name: token
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
- name: defaulter-socket
  mountPath: {{ include "stencil.defaulting.folder" . }}
{{- end -}}

{{- define "stencil.defaulting.volumes" -}}
# What automountServiceAccountToken would mount into every container.
- name: token
  projected:
    defaultMode: 0444
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3607
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
- name: defaulter-socket
  emptyDir:
    sizeLimit: 1Mi
# Counts against the memory of the defaulter.
- name: defaulter-state
  emptyDir:
    medium: Memory
    sizeLimit: {{ .Values.defaulting.stateSize }}
{{- end -}}

{{/*
The webhook configuration of defaults. Helm installs it without webhooks. With them it would fail closed while no API server can call it: before the
manager has written the caBundle. The manager adds the webhooks together with it.
*/}}
{{- define "stencil.defaults.webhooks" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: {{ include "stencil.defaults.configuration" . }}
  labels:
    {{- include "stencil.labels" . | nindent 4 }}
  annotations:
    stencil.kubevirt.io/authority-of: {{ include "stencil.validate.configuration" . }}
    {{- with include "stencil.webhook.annotations" . | trim }}{{ . | nindent 4 }}{{ end }}
webhooks:
  - name: defaults.template.kubevirt.io
    {{- include "stencil.webhook.common" . | replace "failurePolicy: Fail" (printf "failurePolicy: %s" .Values.defaulting.failurePolicy) | nindent 4 }}
    # Another webhook may add fields after it that need defaults as well. It does not change its own result.
    reinvocationPolicy: IfNeeded
    clientConfig:
      {{- include "stencil.webhook.clientConfig" (dict "root" . "path" "/mutate-virtualmachine-defaults") | trim | nindent 6 }}
    namespaceSelector:
      matchExpressions:
        - key: defaults.template.kubevirt.io/skip
          operator: NotIn
          values: ["true"]
    rules:
      {{- include "stencil.webhook.machines" (list "CREATE" "UPDATE") | nindent 6 }}
    matchConditions:
      {{- include "stencil.condition.notSkipped" . | nindent 6 }}
      {{- include "stencil.condition.specOrRecordChange" . | nindent 6 }}
      {{- with include "stencil.condition.createOrNotExempt" . }}{{ . | nindent 6 }}{{ end }}
{{- end -}}
