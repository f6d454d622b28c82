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

{{/*
With provider virt-operator, the names of the Services and of the Secrets with certificates are those for which KubeVirt's virt-operator makes
certificates.
*/}}
{{- define "stencil.webhook.service" -}}
{{- if eq .Values.certificates.provider "virt-operator" -}}
virt-template-webhook-service
{{- else -}}
{{ include "stencil.fullname" . }}-webhook
{{- end -}}
{{- end -}}

{{- define "stencil.metrics.service" -}}
{{- if eq .Values.certificates.provider "virt-operator" -}}
virt-template-controller-manager-metrics-service
{{- else -}}
{{ include "stencil.fullname" . }}-metrics
{{- end -}}
{{- end -}}

{{- define "stencil.apiserver.service" -}}
{{- if eq .Values.certificates.provider "virt-operator" -}}
virt-template-api-service
{{- else -}}
{{ include "stencil.apiserver.name" . }}
{{- end -}}
{{- end -}}

{{/* Name of the objects of the hook that prepares an uninstallation, and the user name of its ServiceAccount in the API server. */}}
{{- define "stencil.uninstall.name" -}}
{{ include "stencil.fullname" . }}-uninstall
{{- end -}}
{{- define "stencil.uninstall.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "stencil.uninstall.name" . }}
{{- end -}}

{{/* The user name of the manager in the API server. */}}
{{- define "stencil.manager.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "stencil.serviceAccount.name" . }}
{{- end -}}

{{/*
Mutating configurations are called in the order of their names. Rendering has to come before KubeVirt's own
virt-api-mutator, which rejects a VirtualMachine without spec, and before all webhooks that read or change the rendered
VirtualMachine: hence the leading "a-".
*/}}
{{- define "stencil.render.configuration" -}}
a-{{ include "stencil.fullname" . }}-render
{{- end -}}

{{/* Defaults are filled in after all other webhooks that may change a VM: hence the leading "zz-". */}}
{{- define "stencil.defaults.configuration" -}}
zz-{{ include "stencil.fullname" . }}-defaults
{{- end -}}

{{/* Previews show what the validating webhooks will see: it comes after the defaults. */}}
{{- define "stencil.preview.configuration" -}}
zz-{{ include "stencil.fullname" . }}-preview
{{- end -}}

{{/* The mutating configurations of the release, as a YAML list. */}}
{{- define "stencil.mutating.configurations" -}}
- {{ include "stencil.render.configuration" . }}
{{- if .Values.defaulting.enabled }}
- {{ include "stencil.defaults.configuration" . }}
{{- end }}
{{- if .Values.apiserver.enabled }}
- {{ include "stencil.preview.configuration" . }}
{{- end }}
{{- end -}}

{{- define "stencil.validate.configuration" -}}
{{ include "stencil.fullname" . }}-validate
{{- end -}}

{{/* The configuration whose webhooks the manager fills in: those that policies need. */}}
{{- define "stencil.policies.configuration" -}}
{{ include "stencil.fullname" . }}-policies
{{- end -}}

{{/* Secret in which the manager stores its own authority (provider self-managed). */}}
{{- define "stencil.authority.secret" -}}
{{ include "stencil.fullname" . }}-webhook-ca
{{- end -}}

{{/* Secret with tls.crt and tls.key that is mounted into the manager (all providers but self-managed). */}}
{{- define "stencil.serving.secret" -}}
{{- if eq .Values.certificates.provider "secret" -}}
{{ .Values.certificates.secret.name }}
{{- else if eq .Values.certificates.provider "virt-operator" -}}
kubevirt-virt-template-webhook-certs
{{- else -}}
{{ include "stencil.fullname" . }}-webhook-tls
{{- end -}}
{{- end -}}

{{/* The service account as which the manager creates disks that templates lend, and its user name; empty if it creates none. */}}
{{- define "stencil.disks.name" -}}
{{ include "stencil.fullname" . }}-disks
{{- end -}}

{{- define "stencil.disks.user" -}}
{{- if eq .Values.diskAccess.mode "Delegated" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "stencil.disks.name" . }}
{{- end -}}
{{- end -}}

{{/* The service account as which the manager keeps golden images fresh, and its user name. */}}
{{- define "stencil.images.name" -}}
{{ include "stencil.fullname" . }}-images
{{- end -}}

{{- define "stencil.images.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "stencil.images.name" . }}
{{- end -}}

{{/* The service account as which the manager applies policies of sources, and its user name; empty if it applies none. */}}
{{- define "stencil.policySources.name" -}}
{{ include "stencil.fullname" . }}-policy-sources
{{- end -}}

{{- define "stencil.policySources.user" -}}
{{- if .Values.policySources.enabled -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "stencil.policySources.name" . }}
{{- end -}}
{{- end -}}

{{/* The service account as which the manager imports and exports templates, and its user name; empty if it does neither. */}}
{{- define "stencil.transfers.name" -}}
{{ include "stencil.fullname" . }}-transfers
{{- end -}}

{{- define "stencil.transfers.user" -}}
{{- if and .Values.transfers.enabled (eq .Values.templateAPI "Own") -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "stencil.transfers.name" . }}
{{- end -}}
{{- end -}}

{{/* The Secret with the key from which the secrets of movers derive. The manager makes it. */}}
{{- define "stencil.transfers.key" -}}
{{ include "stencil.fullname" . }}-transfer-key
{{- end -}}

{{/* The service account as which the manager replaces stored instance types, and its user name; empty if it replaces none. */}}
{{- define "stencil.revisions.name" -}}
{{ include "stencil.fullname" . }}-revisions
{{- end -}}

{{- define "stencil.revisions.user" -}}
{{- if .Values.revisions.write -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "stencil.revisions.name" . }}
{{- end -}}
{{- end -}}

{{/*
The service account as which the manager creates objects of templates, and its user name; empty if it creates none. The policy manager-objects
relies on the end of the name.
*/}}
{{- define "stencil.objects.name" -}}
{{ include "stencil.fullname" . }}-objects
{{- end -}}

{{- define "stencil.objects.user" -}}
{{- if .Values.objects.resources -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "stencil.objects.name" . }}
{{- end -}}
{{- end -}}

{{/* Secret with the keys that encrypt these objects until they are created. */}}
{{- define "stencil.objects.keys" -}}
{{ include "stencil.fullname" . }}-object-keys
{{- end -}}

{{- define "stencil.apiserver.name" -}}
{{ include "stencil.fullname" . }}-apiserver
{{- end -}}

{{/* The user name of stencil-apiserver in the API server; empty if it is disabled. */}}
{{- define "stencil.apiserver.user" -}}
{{- if .Values.apiserver.enabled -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "stencil.apiserver.name" . }}
{{- end -}}
{{- end -}}

{{/* The APIServices, as a YAML list. */}}
{{- define "stencil.apiserver.services" -}}
- v1beta1.subresources.template.kubevirt.io
- v1alpha1.subresources.template.kubevirt.io
{{- end -}}

{{/* The same as flags name them. */}}
{{- define "stencil.apiserver.targets" -}}
{{- $targets := list -}}
{{- range include "stencil.apiserver.services" . | fromYamlArray }}{{ $targets = append $targets (printf "apiservice/%s" .) }}{{ end -}}
{{- join "," $targets -}}
{{- end -}}

{{/* DNS names by which the API server calls it. */}}
{{- define "stencil.apiserver.hosts" -}}
- {{ include "stencil.apiserver.service" . }}.{{ .Release.Namespace }}.svc
- {{ include "stencil.apiserver.service" . }}.{{ .Release.Namespace }}.svc.cluster.local
{{- end -}}

{{/* Secret with tls.crt and tls.key that is mounted into it (all providers but self-managed). */}}
{{- define "stencil.apiserver.secret" -}}
{{- if eq .Values.certificates.provider "secret" -}}
{{ .Values.certificates.secret.name }}
{{- else if eq .Values.certificates.provider "virt-operator" -}}
kubevirt-virt-template-api-certs
{{- else -}}
{{ include "stencil.apiserver.name" . }}-tls
{{- end -}}
{{- end -}}

{{/* The reference of an image, whose values are .image. */}}
{{- define "stencil.reference" -}}
{{- $repository := .image.repository -}}
{{- with .root.Values.imageRegistry -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) (base $repository) -}}
{{- end -}}
{{- if .image.digest -}}
{{ $repository }}@{{ .image.digest }}
{{- else -}}
{{ $repository }}:{{ default .root.Chart.AppVersion .image.tag }}
{{- end -}}
{{- end -}}

{{- define "stencil.mover.image" -}}
{{ include "stencil.reference" (dict "root" $ "image" .Values.transfers.image) }}
{{- end -}}

{{- define "stencil.apiserver.image" -}}
{{ include "stencil.reference" (dict "root" $ "image" .Values.apiserver.image) }}
{{- end -}}

{{- define "stencil.image" -}}
{{ include "stencil.reference" (dict "root" $ "image" .Values.manager.image) }}
{{- end -}}

{{/* The values of the image of stencil-defaulter. */}}
{{- define "stencil.defaulting.values" -}}
{{ toJson (ternary .Values.defaulting.debianImage .Values.defaulting.image (eq .Values.defaulting.variant "Debian")) }}
{{- end -}}

{{- define "stencil.defaulting.image" -}}
{{ include "stencil.reference" (dict "root" $ "image" (include "stencil.defaulting.values" . | fromJson)) }}
{{- end -}}

{{/* Where the defaulter listens, in the manager's container and in its own. */}}
{{- define "stencil.defaulting.folder" -}}
/run/stencil
{{- end -}}

{{/* Lease of the leader. */}}
{{- define "stencil.lease.name" -}}
{{ include "stencil.manager.name" . }}
{{- end -}}

{{/* ConfigMap with the enabled policies of the library, and the permissions to apply them. */}}
{{- define "stencil.policyLibrary.name" -}}
{{ include "stencil.fullname" . }}-policy-library
{{- end -}}

{{/* Name of the ClusterRole that exempts from approvals, and of its binding, whose subjects the manager writes. */}}
{{- define "stencil.exempt.name" -}}
{{ include "stencil.fullname" . }}-exempt-users
{{- end -}}

{{/*
Users and service accounts that the chart exempts, as a JSON list. The manager is one of them if it may create VMs, which it does in dry runs only, and
its account for objects, which changes two annotations of VMs only.
*/}}
{{- define "stencil.exempt.all" -}}
{{- $users := .Values.exemptUsers -}}
{{- if .Values.readiness.dryRun -}}
{{- $users = append $users (include "stencil.manager.user" .) -}}
{{- end -}}
{{- with include "stencil.objects.user" . -}}
{{- $users = append $users . -}}
{{- end -}}
{{- toJson $users -}}
{{- end -}}

{{/* Names of the values below entryPoints that are Open, as a JSON list. */}}
{{- define "stencil.openEntryPoints" -}}
{{- $open := list }}
{{- range $name, $state := .Values.entryPoints }}
{{- if eq $state "Open" }}{{ $open = append $open $name }}{{ end }}
{{- end }}
{{- toJson $open }}
{{- end }}

{{/*
Users that are exempt by their names alone, as a JSON list: those of Kubernetes itself and of Stencil, whose namespaces exist.
internal/exemption divides the names in the same way.
*/}}
{{- define "stencil.exempt.users" -}}
{{- $own := printf "system:serviceaccount:%s:" .Release.Namespace -}}
{{- $users := list -}}
{{- range include "stencil.exempt.all" . | fromJsonArray -}}
{{- if or (regexMatch "^system:(serviceaccount:kube-system:|kube-)" .) (hasPrefix $own .) }}{{ $users = append $users . }}{{ end -}}
{{- end -}}
{{- toJson $users -}}
{{- end -}}

{{/* Names of service accounts, with and without namespace, that are exempt where KubeVirt or CDI is installed, as a JSON list. */}}
{{- define "stencil.exempt.accounts" -}}
{{- $users := include "stencil.exempt.users" . | fromJsonArray -}}
{{- $accounts := list -}}
{{- range include "stencil.exempt.all" . | fromJsonArray -}}
{{- if and (regexMatch "^(system:serviceaccount:[^:]+:)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" .) (not (has . $users)) }}{{ $accounts = append $accounts . }}{{ end -}}
{{- end -}}
{{- toJson $accounts -}}
{{- end -}}

{{/*
CEL expression that is true for requests of exempt users, for match conditions of webhooks; empty if there are none. The policies have the
same in exemptUsers and exemptController.
*/}}
{{- define "stencil.exempt.expression" -}}
{{- $terms := list -}}
{{- $users := include "stencil.exempt.users" . -}}
{{- $accounts := include "stencil.exempt.accounts" . -}}
{{- if ne $users "[]" -}}
{{- $terms = append $terms (printf "request.userInfo.username in %s" $users) -}}
{{- end -}}
{{- if ne $accounts "[]" -}}
{{- $terms = append $terms (printf "request.userInfo.username.startsWith('system:serviceaccount:') && (request.userInfo.username in %s || request.userInfo.username.split(':')[3] in %s) && authorizer.group('stencil.kubevirt.io').resource('templateapprovals').check('bypass').allowed() && !authorizer.group('stencil.kubevirt.io').resource('templateapprovals').check('any-verb').allowed()" $accounts $accounts) -}}
{{- end -}}
{{- join " || " $terms -}}
{{- end -}}
