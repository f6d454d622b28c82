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
clientConfig of a webhook; takes a dict of root and path. With providers self-managed and cert-manager another
component writes caBundle to the stored object, so it must not appear here: an upgrade does not change fields that the chart
leaves out.
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
{{- end -}}

{{/*
Webhooks that improve messages: they warn, or explain what a policy denies in any case. While no manager answers, VirtualMachines without
a template are created and changed where the policies permit it, which is where no approval denies.
*/}}
{{- define "stencil.webhook.helpful" -}}
{{- include "stencil.webhook.common" . | replace "failurePolicy: Fail" "failurePolicy: Ignore" -}}
{{- end -}}

{{/*
Webhooks that find errors early. An object with an error that is stored while no manager answers permits nothing, and its status reports the
error.
*/}}
{{- define "stencil.webhook.brief" -}}
{{- include "stencil.webhook.helpful" . | replace (printf "timeoutSeconds: %v" .Values.webhooks.timeoutSeconds) "timeoutSeconds: 2" -}}
{{- end -}}

{{/* The namespaces and objects to which the values limit rendering and the comparison with templates. */}}
{{- define "stencil.webhook.selectors" -}}
{{- with .Values.webhooks.namespaceSelector }}
namespaceSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.webhooks.objectSelector }}
objectSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
Namespaces with an approval that denies or warns, by the label that the manager writes. Admission policies deny.
*/}}
{{- define "stencil.webhook.governed" -}}
namespaceSelector:
  matchExpressions:
    - key: stencil.kubevirt.io/governed
      operator: In
      values: ["true", warn]
{{- end -}}

{{/* The same, and undecided namespaces, which have no label. */}}
{{- define "stencil.webhook.mayBeGoverned" -}}
namespaceSelector:
  matchExpressions:
    - key: stencil.kubevirt.io/governed
      operator: NotIn
      values: ["false", audit]
{{- end -}}

{{/* Rule for VirtualMachines; takes a list of operations. */}}
{{- define "stencil.webhook.machines" -}}
- apiGroups: [kubevirt.io]
  apiVersions: [v1, v1alpha3]
  operations: {{ toJson . }}
  resources: [virtualmachines]
  scope: Namespaced
{{- end -}}

{{/*
matchConditions. All of those of a webhook must hold for it to be called. An expression that fails denies the request, so
each one has a result for every object: annotations, labels and spec may be missing, and oldObject is null on CREATE.

has-template-ref: also with an empty reference, which is rejected; and when an update leaves the reference out.
*/}}
{{- define "stencil.condition.hasReference" -}}
- name: has-template-ref
  expression: >-
    object.metadata.?annotations[?'template.kubevirt.io/template-ref'].hasValue() ||
    (oldObject != null &&
    oldObject.metadata.?annotations[?'template.kubevirt.io/template-ref'].hasValue())
{{- end -}}

{{/* The opposite: every VirtualMachine passes exactly one of the two. */}}
{{- define "stencil.condition.hasNoReference" -}}
- name: has-no-template-ref
  expression: >-
    !object.metadata.?annotations[?'template.kubevirt.io/template-ref'].hasValue() &&
    (oldObject == null ||
    !oldObject.metadata.?annotations[?'template.kubevirt.io/template-ref'].hasValue())
{{- end -}}

{{/*
Changes of finalizers, owner references and managed fields are not sent, so that a VirtualMachine can be deleted while no manager
runs.
*/}}
{{- define "stencil.condition.relevantChange" -}}
- name: create-or-relevant-change
  expression: >-
    request.operation == 'CREATE' ||
    object.?spec != oldObject.?spec ||
    object.metadata.?labels != oldObject.metadata.?labels ||
    object.metadata.?annotations != oldObject.metadata.?annotations
{{- end -}}

{{/*
An update that the render webhook may change: all but updates of other labels and annotations, runStrategy and running, if the spec has a
template. So VirtualMachines can be labelled, started and stopped while no manager runs. The webhook completes a short manifest, which has
no spec.template or differs elsewhere; it returns the template's value where an override is removed, also to runStrategy; it restores what it has written; and it removes sensitive parameters, which are in annotations or, if
the record names any, in the manifests that clients store (virtualmachine.AppliedAnnotations).
*/}}
{{- define "stencil.condition.renderedChange" -}}
- name: create-or-rendered-change
  expression: >-
    request.operation == 'CREATE' ||
    !object.?spec.?template.hasValue() ||
    object.spec.exists(field, !(field in ['runStrategy', 'running']) && object.spec[?field] != oldObject.?spec[?field]) ||
    oldObject.?spec.orValue({}).exists(field, !(field in object.spec) &&
    (!(field in ['runStrategy', 'running']) || !object.spec.exists(other, other in ['runStrategy', 'running']))) ||
    ['', '.namespace', '.revision'].exists(key,
    object.metadata.?labels[?'vm.kubevirt.io/template' + key] != oldObject.metadata.?labels[?'vm.kubevirt.io/template' + key]) ||
    object.metadata.?annotations.orValue({}).exists(key,
    (key.contains('template.kubevirt.io/') ||
    (oldObject.metadata.?annotations[?'template.kubevirt.io/rendered'].orValue('').contains('"sensitive":') && key in [
    'kubectl.kubernetes.io/last-applied-configuration', 'kapp.k14s.io/original', 'kapp.k14s.io/original-diff',
    'kapp.k14s.io/original-diff-full', 'objectset.rio.cattle.io/applied', 'banzaicloud.com/last-applied'])) &&
    object.metadata.?annotations[?key] != oldObject.metadata.?annotations[?key]) ||
    oldObject.metadata.?annotations.orValue({}).exists(key,
    key.contains('template.kubevirt.io/') && !(key in object.metadata.?annotations.orValue({})))
{{- end -}}

{{/* Only spec is evaluated. */}}
{{- define "stencil.condition.specChange" -}}
- name: create-or-spec-change
  expression: request.operation == 'CREATE' || object.?spec != oldObject.?spec
{{- end -}}

{{/*
The VirtualMachine, or the template that it was rendered from, has rules, and the request may violate them. One webhook evaluates these
requests, by approvals and policies too; the other webhooks exclude them. reconcilers/policywebhook has the negation.
*/}}
{{- define "stencil.condition.rulesExpression" -}}
(object.metadata.?annotations[?'vm.kubevirt.io/validations'].orValue('') != '' ||
object.metadata.?annotations[?'template.kubevirt.io/rendered'].orValue('').contains('"rules":true')) &&
object.metadata.?annotations[?'vm.kubevirt.io/skip-validations'].orValue('false') == 'false' &&
(request.operation == 'CREATE' ||
object.?spec != oldObject.?spec ||
['validations', 'skip-validations'].exists(key,
object.metadata.?annotations[?'vm.kubevirt.io/' + key].orValue('') !=
oldObject.metadata.?annotations[?'vm.kubevirt.io/' + key].orValue('')))
{{- end -}}

{{- define "stencil.condition.rules" -}}
- name: has-rules
  expression: >-
    {{- include "stencil.condition.rulesExpression" . | nindent 4 }}
{{- end -}}

{{- define "stencil.condition.noRules" -}}
- name: has-no-rules
  expression: >-
    !(
    {{- include "stencil.condition.rulesExpression" . | nindent 4 }})
{{- end -}}

{{/* A VirtualMachine that opts out of defaults does not depend on the defaulter. */}}
{{- define "stencil.condition.notSkipped" -}}
- name: not-skipped
  expression: object.metadata.?annotations[?'defaults.template.kubevirt.io/skip'].orValue('') != 'true'
{{- end -}}

{{/* The spec, and what the defaults webhook alone writes. */}}
{{- define "stencil.condition.specOrRecordChange" -}}
- name: create-or-spec-or-record-change
  expression: >-
    request.operation == 'CREATE' ||
    object.?spec != oldObject.?spec ||
    ['applied', 'failed', 'skip'].exists(key,
    object.metadata.?annotations[?'defaults.template.kubevirt.io/' + key].orValue('') !=
    oldObject.metadata.?annotations[?'defaults.template.kubevirt.io/' + key].orValue(''))
{{- end -}}

{{/* KubeVirt's controllers can write finalizers and the like while no manager runs. */}}
{{- define "stencil.condition.createOrNotExempt" -}}
{{- with include "stencil.exempt.expression" . -}}
- name: create-or-not-exempt
  expression: >-
    request.operation == 'CREATE' || !({{ . }})
{{- end -}}
{{- end -}}

{{/*
The same, and changes of a VirtualMachine by KubeVirt's API server on request of a user, such as addvolume. Starting and stopping is not
included.
*/}}
{{- define "stencil.condition.createOrNotExemptOrForUser" -}}
{{- with include "stencil.exempt.expression" . -}}
- name: create-or-not-exempt
  expression: >-
    request.operation == 'CREATE' || !({{ . }}) ||
    request.userInfo.username.endsWith(':kubevirt-apiserver') && object.?spec.?template != oldObject.?spec.?template
{{- end -}}
{{- end -}}

{{- define "stencil.condition.notExempt" -}}
{{- with include "stencil.exempt.expression" . -}}
- name: not-exempt
  expression: >-
    !({{ . }})
{{- end -}}
{{- end -}}
