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
{{- with .Values.defaulting -}}
{{- if and .enabled (eq .variant "Debian") (eq .machineType "pin") -}}
{{- fail "defaulting.variant is Debian and defaulting.machineType is pin: set defaulting.machineType to keep, because the nodes may not have the machine types of Debian's QEMU, or defaulting.variant to KubeVirt" -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.templateAPI "External" -}}
{{- include "stencil.checkExternal" . -}}
{{- else if .Values.crds.enabled -}}
{{- range list "virtualmachinetemplates.template.kubevirt.io" "virtualmachinetemplaterequests.template.kubevirt.io" -}}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" . -}}
{{- if eq "virt-operator" (dig "labels" "app.kubernetes.io/managed-by" "" .metadata) -}}
{{- fail (printf "CustomResourceDefinition %s belongs to KubeVirt's own template component, which two installations cannot share: stencilctl install takeover --release %s/%s moves it with all templates, templateAPI External leaves it to KubeVirt, and stencilctl install check says what else to do" .metadata.name $.Release.Namespace $.Release.Name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
With templateAPI External, rejects values for what KubeVirt's own template component has, and clusters that do not have it. A rendering without a cluster
finds no namespace kube-system, and is not checked.
*/}}
{{- define "stencil.checkExternal" -}}
{{- $contradictions := list -}}
{{- if .Values.apiserver.enabled -}}
{{- $contradictions = append $contradictions "set apiserver.enabled to false, because KubeVirt's own servers have process and create" -}}
{{- end -}}
{{- if .Values.objects.resources -}}
{{- $contradictions = append $contradictions "set objects.resources to [], because KubeVirt's definition of templates has no objects" -}}
{{- end -}}
{{- with $contradictions -}}
{{- fail (printf "templateAPI is External: %s" (join "; " .)) -}}
{{- end -}}
{{- if lookup "v1" "Namespace" "" "kube-system" -}}
{{- range list "virtualmachinetemplates.template.kubevirt.io" "virtualmachinetemplaterequests.template.kubevirt.io" -}}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" . -}}
{{- if not $found -}}
{{- fail (printf "templateAPI is External, and there is no CustomResourceDefinition %s: switch KubeVirt's own template component on and wait until it has created it, or set templateAPI to Own; stencilctl install check --template-api External says how" .) -}}
{{- end -}}
{{- if ne "virt-operator" (dig "labels" "app.kubernetes.io/managed-by" "" $found.metadata) -}}
{{- fail (printf "templateAPI is External, and CustomResourceDefinition %s does not belong to KubeVirt's own template component: set templateAPI to Own, or give it to KubeVirt with all templates by stencilctl install release" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
