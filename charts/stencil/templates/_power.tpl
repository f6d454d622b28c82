{{/*
The fields of this release's webhooks that the policy manager-webhooks compares, as JSON: a map from CONFIGURATION/WEBHOOK to a list of
strings, in the form of the policy's variable facts. It is computed from the templates that render the webhooks. The configuration for
policies has none; the manager fills it.
*/}}
{{- define "stencil.own.webhooks" -}}
{{- $own := dict -}}
{{- $sources := dict "_defaulting.tpl" (.Values.defaulting.enabled | ternary (include "stencil.defaults.webhooks" .) "") -}}
{{- range $template := list "webhooks/render.yaml" "webhooks/validate.yaml" "webhooks/policies.yaml" "webhooks/preview.yaml" -}}
  {{- $_ := set $sources $template (include (print $.Template.BasePath "/" $template) $) -}}
{{- end -}}
{{- range $template, $source := $sources -}}
  {{- range $document := regexSplit "(?m)^---[ \\t]*$" $source -1 -}}
    {{- $object := fromYaml $document -}}
    {{- with $object.Error }}{{ fail (printf "%s: %s" $template .) }}{{ end -}}
    {{- range $webhook := default list $object.webhooks -}}
      {{- $facts := list (include "stencil.webhook.address" $webhook.clientConfig) (print "failurePolicy " $webhook.failurePolicy) -}}
      {{- range $webhook.rules -}}
        {{- $facts = append $facts (printf "rule %s %s %s %s %s" (join "," .apiGroups) (join "," .apiVersions) (join "," .resources) (join "," .operations) (default "*" .scope)) -}}
      {{- end -}}
      {{- range $webhook.matchConditions -}}
        {{- $facts = append $facts (printf "matchCondition %s %s" .name .expression) -}}
      {{- end -}}
      {{- range $selector := list "namespaceSelector" "objectSelector" -}}
        {{- with get $webhook $selector -}}
          {{- range $key, $value := .matchLabels -}}
            {{- $facts = append $facts (printf "%s %s = %s" $selector $key $value) -}}
          {{- end -}}
          {{- range .matchExpressions -}}
            {{- $facts = append $facts (printf "%s %s %s %s" $selector .key .operator (join "," (default list .values))) -}}
          {{- end -}}
        {{- end -}}
      {{- end -}}
      {{- $_ := set $own (printf "%s/%s" $object.metadata.name $webhook.name) $facts -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- toJson $own -}}
{{- end -}}

{{/* Where a webhook is, from its clientConfig. */}}
{{- define "stencil.webhook.address" -}}
{{- with .service -}}
service {{ .namespace }}/{{ .name }}{{ .path }}
{{- else -}}
url {{ .url }}
{{- end -}}
{{- end -}}

{{/* Where the webhooks of policies are, as a JSON list. */}}
{{- define "stencil.own.addresses" -}}
{{- include "stencil.webhook.clientConfig" (dict "root" . "path" "/validate-policies") | fromYaml | include "stencil.webhook.address" | list | toJson -}}
{{- end -}}
