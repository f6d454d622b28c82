{{/*
Rejects combinations of values for which values.schema.json has no clear message. Included by templates that every installation
renders.
*/}}
{{- define "stencil.checkValues" -}}
{{- $certificates := .Values.certificates -}}
{{- if and (not .Values.manager.enabled) (not .Values.webhooks.url) -}}
{{- fail "manager.enabled is false, so the API server has nothing to call: set webhooks.url to the address of a stencil-manager that runs outside the cluster" -}}
{{- end -}}
{{- if and (eq $certificates.provider "secret") (not $certificates.secret.name) -}}
{{- fail "certificates.provider is secret: set certificates.secret.name to a Secret in the release's namespace that holds tls.crt and tls.key" -}}
{{- end -}}
{{- if and (eq $certificates.provider "secret") (not $certificates.secret.caBundle) (not .Values.webhooks.url) -}}
{{- fail "certificates.provider is secret: set certificates.secret.caBundle to the PEM certificates of the authority that signed it, for example with --set-file certificates.secret.caBundle=ca.crt" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.webhooks) -}}
{{- fail "networkPolicy.enabled without networkPolicy.webhooks would keep the API servers away: set it to their addresses, for example [{ipBlock: {cidr: 192.0.2.0/28}}]" -}}
{{- end -}}
{{- if and .Values.webhooks.clientCA.names (not .Values.webhooks.clientCA.configMap) -}}
{{- fail "webhooks.clientCA.names without webhooks.clientCA.configMap says nothing: set it to a ConfigMap that holds ca.crt" -}}
{{- end -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.create is false: set serviceAccount.name to a ServiceAccount in the release's namespace" -}}
{{- end -}}
{{- if and .Values.manager.metrics.serviceMonitor.enabled (not .Values.manager.metrics.enabled) -}}
{{- fail "manager.metrics.serviceMonitor.enabled needs manager.metrics.enabled" -}}
{{- end -}}
{{- if .Values.crds.enabled -}}
{{- range list "virtualmachinetemplates.template.kubevirt.io" "virtualmachinetemplaterequests.template.kubevirt.io" -}}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" . -}}
{{- if eq "virt-operator" (dig "labels" "app.kubernetes.io/managed-by" "" .metadata) -}}
{{- fail (printf "CustomResourceDefinition %s belongs to KubeVirt's own template component, which two installations cannot share: stencilctl install takeover --release %s/%s moves it with all templates, and stencilctl install check says what else to do" .metadata.name $.Release.Namespace $.Release.Name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
