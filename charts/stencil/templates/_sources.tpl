{{/*
What lets the account .name copy disks from .namespaces, each in a document; "*" is every namespace. CDI checks this permission in the namespace that is copied
from.
*/}}
{{- define "stencil.sources" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .name }}-sources
  labels:
    {{- include "stencil.manager.labels" .root | nindent 4 }}
rules:
  - apiGroups: [cdi.kubevirt.io]
    resources: [datavolumes/source]
    verbs: [create]
{{- range .namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ eq . "*" | ternary "ClusterRoleBinding" "RoleBinding" }}
metadata:
  name: {{ $.name }}-sources
  {{- if ne . "*" }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "stencil.manager.labels" $.root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $.name }}-sources
subjects:
  - kind: ServiceAccount
    name: {{ $.name }}
    namespace: {{ $.root.Release.Namespace }}
{{- end }}
{{- end }}
