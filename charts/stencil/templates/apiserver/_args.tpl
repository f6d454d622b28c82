{{/* Command line of stencil-apiserver, as a YAML list. */}}
{{- define "stencil.apiserver.args" -}}
- --zap-log-level={{ .Values.apiserver.logLevel }}
- --user={{ include "stencil.apiserver.user" . }}
- --bind-address=:{{ if .Values.apiserver.external.host }}{{ .Values.apiserver.external.port }}{{ else }}8443{{ end }}
- --shutdown-delay={{ .Values.apiserver.shutdown.delaySeconds }}s
{{- if eq .Values.certificates.provider "self-managed" }}
- --certificate-source=authority
- --certificate-authority-secret={{ include "stencil.authority.secret" . }}
- --certificate-authority-duration={{ .Values.certificates.selfManaged.authorityDuration }}
- --certificate-duration={{ .Values.certificates.selfManaged.duration }}
- --certificate-dns-names={{ include "stencil.apiserver.hosts" . | fromYamlArray | join "," }}
- --api-services={{ include "stencil.apiserver.targets" . }}
{{- if .Values.apiserver.external.host }}
# In the cluster, the variable POD_NAMESPACE holds it.
- --certificate-authority-namespace={{ .Release.Namespace }}
{{- end }}
{{- else }}
- --certificate-source=files
- --certificate-directory=/etc/stencil/certificates
{{- end }}
{{- with .Values.objects.resources }}
- --object-resources={{ join "," . }}
{{- end }}
{{- if .Values.defaulting.enabled }}
{{ include "stencil.defaulting.args" . }}
{{- end }}
{{- with .Values.apiserver.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}
