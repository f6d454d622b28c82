{{/*
Bindings of the policies that read the index of approvals. They are not part of the release: at a first installation no namespace is
labelled and there is no index, so they would deny requests in namespaces that no approval selects. The manager creates them when it has
labelled every namespace and written the index, and restores them like the other protected objects.
*/}}
{{- define "stencil.index.bindings" -}}
{{- range $path, $_ := .Files.Glob "files/policies/*.yaml" }}
{{- $policy := $.Files.Get $path | fromYaml }}
{{- if $policy.spec.paramKind }}
{{- $name := printf "%s-%s" (include "stencil.fullname" $) $policy.metadata.name }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "stencil.labels" $ | nindent 4 }}
  annotations:
    stencil.kubevirt.io/requires-configmap: stencil-approval-index
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
  paramRef:
    name: stencil-approval-index
    namespace: {{ $.Release.Namespace }}
    # A Namespace stays deletable and can be labelled when the index is lost.
    parameterNotFoundAction: {{ eq $policy.metadata.name "namespace-coverage" | ternary "Allow" "Deny" }}
{{- end }}
{{- end }}
{{- end -}}
