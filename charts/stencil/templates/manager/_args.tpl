{{/* Command line of stencil-manager, as a YAML list. */}}
{{- define "stencil.manager.args" -}}
{{- $manager := .Values.manager -}}
- --zap-log-level={{ $manager.logLevel }}
- --webhook-bind-address=:9443
- --health-probe-bind-address=:8081
- --metrics-bind-address={{ if $manager.metrics.enabled }}:{{ $manager.metrics.port }}{{ else }}0{{ end }}
{{- if $manager.pprof.enabled }}
# Profiles are for whoever may port-forward into the pod, not for the pod network.
- --pprof-bind-address=localhost:{{ $manager.pprof.port }}
{{- end }}
- --shutdown-delay={{ $manager.shutdown.delaySeconds }}s
- --shutdown-timeout={{ $manager.shutdown.timeoutSeconds }}s
{{- if eq .Values.certificates.provider "self-managed" }}
- --certificate-source=authority
- --certificate-authority-secret={{ include "stencil.authority.secret" . }}
- --certificate-authority-duration={{ .Values.certificates.selfManaged.authorityDuration }}
- --certificate-duration={{ .Values.certificates.selfManaged.duration }}
- --certificate-dns-names={{ include "stencil.webhook.hosts" . | fromYamlArray | join "," }}
- --webhook-configurations=mutating/{{ include "stencil.render.configuration" . }},validating/{{ include "stencil.validate.configuration" . }}
{{- else }}
- --certificate-source=files
- --certificate-directory=/etc/stencil/certificates
{{- end }}
- --protected-objects={{ include "stencil.protection.name" . }}
{{- with .Values.exemptUsers }}
- {{ printf "--exempt-users=%s" (join "," .) | toJson }}
{{- end }}
- --leader-election-id={{ include "stencil.lease.name" . }}
{{- if not $manager.enabled }}
# In the cluster, POD_NAMESPACE says so.
- --leader-election-namespace={{ .Release.Namespace }}
{{- if eq .Values.certificates.provider "self-managed" }}
- --certificate-authority-namespace={{ .Release.Namespace }}
{{- end }}
{{- end }}
{{- with $manager.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}
