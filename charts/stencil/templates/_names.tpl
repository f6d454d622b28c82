{{/*
Prefix of all names. Cut at 40 characters, which leaves room for every suffix within the 63 of a Service's name or a
label's value.
*/}}
{{- define "stencil.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "stencil.manager.name" -}}
{{ include "stencil.fullname" . }}-manager
{{- end -}}

{{- define "stencil.serviceAccount.name" -}}
{{- default (include "stencil.manager.name" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "stencil.webhook.service" -}}
{{ include "stencil.fullname" . }}-webhook
{{- end -}}

{{/* The name by which the API server knows the manager. */}}
{{- define "stencil.manager.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "stencil.serviceAccount.name" . }}
{{- end -}}

{{/*
Mutating configurations are called in the order of their names. Rendering has to come before KubeVirt's own
virt-api-mutator, which refuses a VirtualMachine without spec, and before everybody who reads or changes what was
rendered: hence the leading "a-".
*/}}
{{- define "stencil.render.configuration" -}}
a-{{ include "stencil.fullname" . }}-render
{{- end -}}

{{- define "stencil.validate.configuration" -}}
{{ include "stencil.fullname" . }}-validate
{{- end -}}

{{/* Secret in which the manager keeps its own authority (provider self-managed). */}}
{{- define "stencil.authority.secret" -}}
{{ include "stencil.fullname" . }}-webhook-ca
{{- end -}}

{{/* Secret with tls.crt and tls.key that is mounted into the manager (providers cert-manager and secret). */}}
{{- define "stencil.serving.secret" -}}
{{- if eq .Values.certificates.provider "secret" -}}
{{ .Values.certificates.secret.name }}
{{- else -}}
{{ include "stencil.fullname" . }}-webhook-tls
{{- end -}}
{{- end -}}

{{- define "stencil.image" -}}
{{- with .Values.manager.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Lease of the leader. */}}
{{- define "stencil.lease.name" -}}
{{ include "stencil.manager.name" . }}
{{- end -}}
