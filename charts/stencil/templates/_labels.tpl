{{/* Labels that never change over the life of a release; selectors use them. */}}
{{- define "stencil.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Label of a component; takes a list of the root and its name. virt-operator replaces app.kubernetes.io/component of the pods that it creates. */}}
{{- define "stencil.componentLabel" -}}
{{ eq (first .).Values.certificates.provider "virt-operator" | ternary "control-plane" "app.kubernetes.io/component" }}: {{ last . }}
{{- end -}}

{{- define "stencil.manager.selectorLabels" -}}
{{ include "stencil.selectorLabels" . }}
{{ include "stencil.componentLabel" (list . "manager") }}
{{- end -}}

{{/* Labels of every object. The chart's own win over commonLabels. */}}
{{- define "stencil.labels" -}}
{{- $own := include "stencil.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- $_ := set $own "app.kubernetes.io/version" .Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "stencil" -}}
{{- merge $own .Values.commonLabels | toYaml -}}
{{- end -}}

{{- define "stencil.apiserver.selectorLabels" -}}
{{ include "stencil.selectorLabels" . }}
{{ include "stencil.componentLabel" (list . "apiserver") }}
{{- end -}}

{{- define "stencil.apiserver.labels" -}}
{{- merge (include "stencil.apiserver.selectorLabels" . | fromYaml) (include "stencil.labels" . | fromYaml) | toYaml -}}
{{- end -}}

{{- define "stencil.manager.labels" -}}
{{- merge (include "stencil.manager.selectorLabels" . | fromYaml) (include "stencil.labels" . | fromYaml) | toYaml -}}
{{- end -}}
