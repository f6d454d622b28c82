{{- define "golden-images.namespace" -}}
{{- default .Release.Namespace .Values.namespace -}}
{{- end -}}

{{/* Labels of every object. The chart's own win over commonLabels. */}}
{{- define "golden-images.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" .Chart.Name
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
  "app.kubernetes.io/part-of" "stencil"
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- merge $own .Values.commonLabels | toYaml -}}
{{- end -}}

{{/*
The chosen systems, as a YAML list: each entry of files/systems.yaml with the user's settings laid over it, and
  name           its name
  architectures  those of the cluster that it has; a system that has none of them is left out
  source         the source of its GoldenImage, with mirrors; without it, users bring the image
*/}}
{{- define "golden-images.systems" -}}
{{- $root := . -}}
{{- $table := .Files.Get "files/systems.yaml" | fromYaml -}}
{{- $chosen := list -}}
{{- range $name := .Values.systems -}}
  {{- $system := mergeOverwrite (get $table $name) (dict "name" $name) (get $root.Values.settings $name | default dict) -}}
  {{- $architectures := list -}}
  {{- range $root.Values.architectures -}}
    {{- if hasKey $system.preferences . -}}{{- $architectures = append $architectures . -}}{{- end -}}
  {{- end -}}
  {{- $_ := set $system "architectures" $architectures -}}
  {{- $given := get $root.Values.sources $name | default dict -}}
  {{- $registry := $given.registry | default $system.image -}}
  {{- if and $given (not $given.registry) $root.Values.goldenImages.enabled -}}
    {{- $_ := set $system "source" $given -}}
  {{- else if and $registry $root.Values.goldenImages.enabled -}}
    {{- $defaults := dict -}}
    {{- range $key, $value := $root.Values.goldenImages.registry -}}
      {{- if $value -}}{{- $_ := set $defaults $key $value -}}{{- end -}}
    {{- end -}}
    {{- $registry = mergeOverwrite $defaults $registry (dict "url" (include "golden-images.mirrored" (dict "image" $registry.url "root" $root))) -}}
    {{- $_ := set $system "source" (dict "registry" $registry) -}}
  {{- end -}}
  {{- if $architectures -}}{{- $chosen = append $chosen $system -}}{{- end -}}
{{- end -}}
{{- $chosen | toYaml -}}
{{- end -}}

{{/* The reference of an image, with the mirror whose prefix of it is the longest. A prefix ends before a slash, a tag or a digest. */}}
{{- define "golden-images.mirrored" -}}
{{- $image := trimPrefix "docker://" .image -}}
{{- $found := "" -}}
{{- range $prefix, $_ := .root.Values.mirror -}}
  {{- $rest := trimPrefix $prefix $image -}}
  {{- if and (hasPrefix $prefix $image) (or (not $rest) (hasPrefix "/" $rest) (and (contains "/" $prefix) (regexMatch "^[:@]" $rest))) -}}
    {{- if gt (len $prefix) (len $found) -}}{{- $found = $prefix -}}{{- end -}}
  {{- end -}}
{{- end -}}
{{- if $found -}}
  {{- get .root.Values.mirror $found -}}{{- trimPrefix $found $image -}}
{{- else -}}
  {{- $image -}}
{{- end -}}
{{- end -}}

{{/* The name of what belongs to one architecture of a system. The first one has the name of the system, like the DataSource of a GoldenImage. */}}
{{- define "golden-images.name" -}}
{{- .system.name -}}{{- if ne .architecture (first .system.architectures) -}}-{{ .architecture }}{{- end -}}
{{- end -}}

{{/* The name of the DataSource with the boot image, or with the image that installs the system. */}}
{{- define "golden-images.dataSource" -}}
{{- include "golden-images.name" . -}}{{- if not .system.user -}}-iso{{- end -}}
{{- end -}}

{{/* The storage of a volume: its size, and class and access modes if they are not left to CDI. */}}
{{- define "golden-images.storage" -}}
{{- $storage := .size -}}
{{- range $key, $value := .values -}}
  {{- if $value -}}{{- $_ := set $storage $key $value -}}{{- end -}}
{{- end -}}
{{- $storage | toYaml -}}
{{- end -}}

{{/* Rejects combinations of values for which values.schema.json has no clear message. */}}
{{- define "golden-images.checkValues" -}}
{{- $systems := include "golden-images.systems" . | fromYamlArray -}}
{{- if not $systems -}}
{{- fail (printf "none of the systems %s exists for the architectures %s" (join ", " .Values.systems) (join ", " .Values.architectures)) -}}
{{- end -}}
{{- range $systems -}}
{{- if and .source (not .source.registry) (gt (len .architectures) 1) -}}
{{- fail (printf "sources.%s: a file or a claim is for one architecture, and the system is chosen for %s: bring the images of a system for several by a registry" .name (join ", " .architectures)) -}}
{{- end -}}
{{- end -}}
{{- $registry := .Values.goldenImages.registry -}}
{{- if and $registry.secretRef (eq $registry.pullMethod "node") -}}
{{- fail "goldenImages.registry.secretRef needs goldenImages.registry.pullMethod pod: a node pulls with its own credentials" -}}
{{- end -}}
{{- range $name, $_ := .Values.sources -}}
{{- if not (has $name $.Values.systems) -}}
{{- fail (printf "sources.%s: the system is not in systems" $name) -}}
{{- end -}}
{{- if hasPrefix "windows" $name -}}
{{- fail (printf "sources.%s: Windows is installed from an ISO image, which is no boot image; upload it to the PersistentVolumeClaim %s-iso" $name $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := .Values.settings -}}
{{- if not (has $name $.Values.systems) -}}
{{- fail (printf "settings.%s: the system is not in systems" $name) -}}
{{- end -}}
{{- end -}}
{{- $approval := .Values.approval -}}
{{- if $approval.enabled -}}
{{- if and (not $approval.namespaces) (kindIs "invalid" $approval.namespaceSelector) -}}
{{- fail "approval.enabled needs approval.namespaces or approval.namespaceSelector: they say where the approval is enforced" -}}
{{- end -}}
{{- range $systems -}}
{{- if not (has .instancetype $approval.instancetypes) -}}
{{- fail (printf "approval.instancetypes lacks %s, the default of %s: without it, no VirtualMachine of that template is approved by default" .instancetype .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
