{{/* Command line of stencil-manager, as a YAML list. */}}
{{- define "stencil.manager.args" -}}
{{- $manager := .Values.manager -}}
- --zap-log-level={{ $manager.logLevel }}
- --webhook-bind-address=:9443
- --health-probe-bind-address=:8081
- --metrics-bind-address={{ if $manager.metrics.enabled }}:{{ $manager.metrics.port }}{{ else }}0{{ end }}
{{- if $manager.pprof.enabled }}
# Profiles are for users who may port-forward to the pod, not for the pod network.
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
- --webhook-configurations=mutating/{{ include "stencil.render.configuration" . }},validating/{{ include "stencil.validate.configuration" . }},validating/{{ include "stencil.policies.configuration" . }}{{ range include "stencil.mutating.configurations" . | fromYamlArray | rest }},mutating/{{ . }}{{ end }}
{{- if .Values.apiserver.enabled }}
- --api-services={{ include "stencil.apiserver.targets" . }}
{{- end }}
{{- else }}
- --certificate-source=files
- --certificate-directory=/etc/stencil/certificates
{{- if eq .Values.certificates.provider "virt-operator" }}
- --metrics-cert-path=/etc/stencil/metrics-certificates
{{- end }}
{{- end }}
- --policy-webhooks={{ include "stencil.policies.configuration" . }}
- --policy-webhooks-trust={{ include "stencil.validate.configuration" . }}
- --policy-webhooks-address={{ default (printf "%s/%s" .Release.Namespace (include "stencil.webhook.service" .)) .Values.webhooks.url }}
- --policy-webhooks-timeout={{ .Values.webhooks.timeoutSeconds }}s
{{- if eq .Values.certificates.provider "virt-operator" }}
# virt-operator creates no ConfigMap, and no webhook configuration that is not its own.
- --protected-objects=clusterrole/{{ include "stencil.protection.name" . }}
- --protected-objects-trust={{ include "stencil.validate.configuration" . }}
{{- else }}
- --protected-objects={{ include "stencil.protection.name" . }}
{{- end }}
- --policy-library={{ include "stencil.policyLibrary.name" . }}
{{- if ne .Values.certificates.provider "virt-operator" }}
- --release={{ .Release.Namespace }}/{{ .Release.Name }}
{{- end }}
{{- if ne .Values.requests.instancetype "Keep" }}
- --capture-instancetype={{ .Values.requests.instancetype }}
{{- end }}
{{- if not .Values.requests.strictSource }}
- --requests-strict-source=false
{{- end }}
{{- if eq .Values.templateAPI "External" }}
- --template-api=External
{{- end }}
{{- with .Values.policies.decisionLog.sample }}
- --decision-log-sample={{ . }}
{{- end }}
{{- with include "stencil.exempt.all" . | fromJsonArray }}
- {{ printf "--exempt-users=%s" (join "," .) | toJson }}
- --exempt-binding={{ include "stencil.exempt.name" $ }}
{{- end }}
{{- if .Values.readiness.dryRun }}
- --readiness-dry-run
{{- end }}
{{- with .Values.readiness.populators }}
{{- $populators := list }}
{{- range . }}
{{- $populators = append $populators (printf "%s.%s.%s/%s" .kind .version .apiGroup .resource) }}
{{- end }}
- --populators={{ join "," $populators }}
{{- end }}
{{- with include "stencil.disks.user" . }}
- --disk-account={{ . }}
{{- end }}
- --image-account={{ include "stencil.images.user" . }}
{{- with .Values.goldenImages.namespaces }}
- {{ printf "--image-namespaces=%s" (join "," .) | toJson }}
{{- end }}
{{- with .Values.goldenImages.allowedNetworks }}
- --image-networks={{ join "," . }}
{{- end }}
{{- with .Values.clusterNetworks }}
- --cluster-networks={{ join "," . }}
{{- end }}
{{- with include "stencil.policySources.user" . }}
- --policy-source-account={{ . }}
{{- with $.Values.policySources.allowedNetworks }}
- --policy-source-networks={{ join "," . }}
{{- end }}
{{- end }}
{{- with include "stencil.revisions.user" . }}
- --revision-account={{ . }}
{{- end }}
{{- with include "stencil.transfers.user" . }}
- --transfer-account={{ . }}
- --transfer-key-secret={{ include "stencil.transfers.key" $ }}
- --transfer-image={{ include "stencil.mover.image" $ }}
- --transfer-pull-policy={{ $.Values.transfers.image.pullPolicy }}
{{- with $.Values.transfers.imagePullSecrets }}
- --transfer-pull-secrets={{ range $i, $each := . }}{{ if $i }},{{ end }}{{ $each }}{{ end }}
{{- end }}
- --transfer-cpu={{ $.Values.transfers.cpu }}
- --transfer-memory={{ $.Values.transfers.memory }}
- --transfer-max-size={{ $.Values.transfers.maxSize }}
- --transfer-limit={{ $.Values.transfers.limit }}
- --transfer-limit-per-namespace={{ $.Values.transfers.limitPerNamespace }}
- --transfer-examine-captures={{ $.Values.transfers.examineCaptures }}
{{- with $.Values.transfers.allowedNetworks }}
- --transfer-networks={{ join "," . }}
{{- end }}
{{- with $.Values.transfers.ingress }}
{{- if .domain }}
- --transfer-ingress-domain={{ .domain }}
{{- with .className }}
- --transfer-ingress-class={{ . }}
{{- end }}
{{- with .tlsSecret }}
- --transfer-ingress-tls-secret={{ . }}
{{- end }}
{{- with .annotations }}
- {{ printf "--transfer-ingress-annotations=%s" (toJson .) | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range .Values.objects.lentResources }}
{{- if not (has . $.Values.objects.resources) }}
{{- fail (printf "objects.lentResources has %s, which objects.resources does not have: templates create only those" .) }}
{{- end }}
{{- end }}
{{- with include "stencil.objects.user" . }}
- --object-account={{ . }}
- --object-resources={{ join "," $.Values.objects.resources }}
{{- with $.Values.objects.lentResources }}
- --lent-object-resources={{ join "," . }}
{{- end }}
- --object-keys-secret={{ include "stencil.objects.keys" $ }}
{{- end }}
{{- with include "stencil.apiserver.user" . }}
- --apiserver-user={{ . }}
{{- end }}
{{- with .Values.writableInstanceKeys }}
- {{ printf "--writable-instance-keys=%s" (join "," .) | toJson }}
{{- end }}
{{- with include "stencil.openEntryPoints" . | fromJsonArray }}
- {{ printf "--open-entry-points=%s" (join "," .) | toJson }}
{{- end }}
{{- with .Values.audit.launcherImages }}
- {{ printf "--launcher-images=%s" (join "," .) | toJson }}
{{- end }}
{{- with .Values.audit.ownerGroups }}
- {{ printf "--owner-groups=%s" (join "," .) | toJson }}
{{- end }}
{{- with .Values.audit.clusterAdditions }}
- {{ printf "--cluster-additions=%s" (join "," .) | toJson }}
{{- end }}
{{- if .Values.defaulting.enabled }}
{{ include "stencil.defaulting.args" . }}
- --defaulting-failure-policy={{ .Values.defaulting.failurePolicy }}
{{- end }}
{{- with .Values.webhooks.clientCA }}
{{- if .configMap }}
- --webhook-client-ca-file=/etc/stencil/callers/ca.crt
{{- with .names }}
- {{ printf "--webhook-client-names=%s" (join "," .) | toJson }}
{{- end }}
{{- end }}
{{- end }}
- --leader-election-id={{ include "stencil.lease.name" . }}
{{- if not $manager.enabled }}
# In the cluster, the variable POD_NAMESPACE holds it.
- --leader-election-namespace={{ .Release.Namespace }}
{{- if eq .Values.certificates.provider "self-managed" }}
- --certificate-authority-namespace={{ .Release.Namespace }}
{{- end }}
{{- end }}
{{- with $manager.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}
