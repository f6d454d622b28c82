{{/* DNS names and IP addresses by which the API server calls the webhooks, as a YAML list. */}}
{{- define "stencil.webhook.hosts" -}}
{{- $service := include "stencil.webhook.service" . -}}
{{- if .Values.manager.enabled }}
- {{ $service }}.{{ .Release.Namespace }}.svc
- {{ $service }}.{{ .Release.Namespace }}.svc.cluster.local
{{- end }}
{{- with .Values.webhooks.url }}
- {{ (urlParse .).hostname }}
{{- end }}
{{- end -}}

{{/*
clientConfig of a webhook; takes a dict of root and path. With providers self-managed and cert-manager somebody else
writes caBundle into the live object, so it must not appear here: what a chart does not mention, an upgrade leaves
alone.
*/}}
{{- define "stencil.webhook.clientConfig" -}}
{{- $root := .root -}}
{{- if $root.Values.webhooks.url }}
url: {{ printf "%s%s" (trimSuffix "/" $root.Values.webhooks.url) .path }}
{{- else }}
service:
  name: {{ include "stencil.webhook.service" $root }}
  namespace: {{ $root.Release.Namespace }}
  path: {{ .path }}
  port: 443
{{- end }}
{{- if and (eq $root.Values.certificates.provider "secret") $root.Values.certificates.secret.caBundle }}
caBundle: {{ $root.Values.certificates.secret.caBundle | b64enc }}
{{- end }}
{{- end -}}

{{/* Annotations of a webhook configuration. */}}
{{- define "stencil.webhook.annotations" -}}
{{- if eq .Values.certificates.provider "cert-manager" }}
cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "stencil.fullname" . }}-webhook
{{- end }}
{{- end -}}

{{/* What all webhooks have in common. */}}
{{- define "stencil.webhook.common" -}}
admissionReviewVersions: [v1]
sideEffects: None
failurePolicy: Fail
matchPolicy: Equivalent
timeoutSeconds: {{ .Values.webhooks.timeoutSeconds }}
{{- with .Values.webhooks.namespaceSelector }}
namespaceSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.webhooks.objectSelector }}
objectSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
