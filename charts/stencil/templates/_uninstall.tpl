{{/* A Job of a hook with the manager's image; takes a dict of root, name, labels, annotations and args. */}}
{{- define "stencil.uninstall.job" -}}
{{- $root := .root }}
{{- $manager := $root.Values.manager }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- .labels | nindent 4 }}
  annotations:
    {{- toYaml (set .annotations "helm.sh/hook-weight" "0") | nindent 4 }}
spec:
  backoffLimit: 3
  # Helm does not stop a Job that it waits for no longer (--timeout, by default five minutes).
  activeDeadlineSeconds: 600
  ttlSecondsAfterFinished: 86400
  template:
    metadata:
      labels:
        {{- merge (fromYaml .labels) $manager.podLabels | toYaml | nindent 8 }}
    spec:
      serviceAccountName: {{ .name }}
      automountServiceAccountToken: true
      restartPolicy: Never
      {{- with $manager.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $manager.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: uninstall
          image: {{ include "stencil.image" $root }}
          imagePullPolicy: {{ $manager.image.pullPolicy }}
          args:
            {{- toYaml .args | nindent 12 }}
            - --zap-log-level={{ $manager.logLevel }}
          env:
            - name: POD_NAMESPACE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.namespace
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          resources:
            {{- toYaml $manager.resources | nindent 12 }}
      {{- with $manager.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $manager.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}
