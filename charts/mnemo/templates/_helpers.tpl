{{- define "mnemo.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "mnemo.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "mnemo.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "mnemo.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Names of cluster-scoped objects contain the namespace, so that releases with the same name do not collide. */}}
{{- define "mnemo.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "mnemo.fullname" .) -}}
{{- end -}}

{{/* Selector labels; they must never change. Argument: (dict "root" $ "component" "api"). */}}
{{- define "mnemo.selector" -}}
app.kubernetes.io/name: {{ include "mnemo.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object. Argument: (dict "root" $ "component" "api"), and "labels" of a value that overrides commonLabels. */}}
{{- define "mnemo.labels" -}}
{{ include "mnemo.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: mnemo
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with merge (dict) (default dict .labels) .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Annotations of a pod: the component's podAnnotations, the name of its main container unless they contain one, and the
annotations that restart it. Argument: (dict "root" $ "component" "api"), and "annotations" in addition. */}}
{{- define "mnemo.podAnnotations" -}}
{{- $checksum := include "mnemo.secretsChecksum" . | fromYaml -}}
{{- $default := dict "kubectl.kubernetes.io/default-container" .component -}}
{{- toYaml (merge (dict) $checksum (default dict .annotations) (get .root.Values .component).podAnnotations $default) -}}
{{- end -}}

{{- define "mnemo.image" -}}
{{- $tag := .Chart.AppVersion -}}
{{- if and (eq .Values.embeddings.mode "local") (eq .Values.embeddings.local.source "bundled") -}}{{- $tag = printf "%s-model" $tag -}}{{- end -}}
{{- $image := printf "%s:%s" .Values.image.repository (default $tag .Values.image.tag) -}}
{{- with .Values.image.digest -}}{{- $image = printf "%s@%s" $.Values.image.repository . -}}{{- end -}}
{{- include "mnemo.fromRegistry" (dict "root" . "image" $image) -}}
{{- end -}}

{{/* An image, with global.imageRegistry in place of its registry. Argument: (dict "root" $ "image" "…"). */}}
{{- define "mnemo.fromRegistry" -}}
{{- $parts := splitList "/" .image -}}
{{- $registry := dig "imageRegistry" "" (default dict .root.Values.global) | trimSuffix "/" -}}
{{- if not $registry -}}{{ .image }}
{{- else if and (gt (len $parts) 1) (regexMatch "[.:]|^localhost$" (first $parts)) -}}{{ $registry }}/{{ rest $parts | join "/" }}
{{- else -}}{{ $registry }}/{{ .image }}
{{- end -}}
{{- end -}}

{{/* The pull secrets of a pod: image.pullSecrets and global.imagePullSecrets, which may be names. */}}
{{- define "mnemo.imagePullSecrets" -}}
{{- $all := .Values.image.pullSecrets -}}
{{- range dig "imagePullSecrets" list (default dict .Values.global) -}}
{{- $all = append $all (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- with uniq $all -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* Name of the operator's Deployment. */}}
{{- define "mnemo.operatorDeployment" -}}
{{- include "mnemo.fullname" . }}-operator{{ with .Values.operator.shard }}-{{ . }}{{ end -}}
{{- end -}}

{{/* Name of a component's ServiceAccount. Argument: (dict "root" $ "component" "api"). */}}
{{- define "mnemo.serviceAccountName" -}}
{{- $account := (get .root.Values .component).serviceAccount -}}
{{- if $account.create -}}{{ default (printf "%s-%s" (include "mnemo.fullname" .root) .component) $account.name }}
{{- else -}}{{ required (printf "%s.serviceAccount.name is required: set the name of the existing ServiceAccount, or set create to true" .component) $account.name }}
{{- end -}}
{{- end -}}

{{/* URL at which users reach the API. */}}
{{- define "mnemo.url" -}}
{{- if .Values.url -}}
{{- .Values.url | trimSuffix "/" -}}
{{- else if .Values.ingress.enabled -}}
{{- printf "%s://%s" (ternary "http" "https" .Values.ingress.insecure) .Values.ingress.host -}}
{{- else if and .Values.gateway.enabled .Values.gateway.hostnames -}}
{{- printf "https://%s" (first .Values.gateway.hostnames) -}}
{{- else -}}
{{- printf "http://%s.%s.svc" (include "mnemo.fullname" .) .Release.Namespace -}}
{{- if ne (int .Values.service.port) 80 }}:{{ .Values.service.port }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The values below were added after releases whose values `helm upgrade --reuse-values` keeps, so they may be absent. */}}

{{/* User and groups of the pods, without those that are null, as JSON. */}}
{{- define "mnemo.podIDs" -}}
{{- $ids := dict "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532 -}}
{{- if hasKey .Values "podSecurity" -}}{{- $ids = .Values.podSecurity -}}{{- end -}}
{{- $set := dict -}}
{{- range $id, $value := $ids -}}{{- if $value -}}{{- $_ := set $set $id (int64 $value) -}}{{- end -}}{{- end -}}
{{- toJson $set -}}
{{- end -}}

{{/* Values of the pods of hooks, as JSON. */}}
{{- define "mnemo.hooks" -}}
{{- $resources := dict "requests" (dict "cpu" "10m" "memory" "64Mi") "limits" (dict "cpu" "500m" "memory" "256Mi") -}}
{{- .Values.hooks | default (dict "resources" $resources) | toJson -}}
{{- end -}}

{{- define "mnemo.waitResources" -}}
{{- if hasKey .Values "waitResources" -}}{{- toYaml .Values.waitResources -}}
{{- else -}}
{{- dict "requests" (dict "cpu" "10m" "memory" "32Mi") "limits" (dict "cpu" "500m" "memory" "128Mi") | toYaml -}}
{{- end -}}
{{- end -}}

{{/* Values of the demo's pods, as JSON. */}}
{{- define "mnemo.demoPods" -}}
{{- $postgres := dict "requests" (dict "cpu" "100m" "memory" "256Mi") "limits" (dict "memory" "1Gi") -}}
{{- $milvus := dict "requests" (dict "cpu" "200m" "memory" "1Gi") "limits" (dict "memory" "4Gi") -}}
{{- .Values.demoPods | default (dict "resources" (dict "postgres" $postgres "milvus" $milvus)) | toJson -}}
{{- end -}}

{{/* Pod security standard restricted, with a read-only root file system. The IDs of podSecurity may be null: OpenShift assigns them. */}}
{{- define "mnemo.podSecurity" -}}
runAsNonRoot: true
{{- $ids := include "mnemo.podIDs" . | fromJson }}
{{- range $id := list "runAsUser" "runAsGroup" "fsGroup" }}
{{- with get $ids $id }}
{{ $id }}: {{ int64 . }}
{{- end }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "mnemo.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "mnemo.logEnv" -}}
- {name: MNEMO_LOG_LEVEL, value: {{ .Values.log.level | quote }}}
- {name: MNEMO_LOG_FORMAT, value: {{ .Values.log.format | quote }}}
{{- end -}}

{{/* The IP families of a Service. */}}
{{- define "mnemo.ipFamilies" -}}
{{- with .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.service.ipFamilies }}
ipFamilies: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* The nodes and the priority of a pod. Argument: the values of its component. */}}
{{- define "mnemo.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Scheduling of a pod. Argument: (dict "root" $ "component" "api" "values" .Values.api). */}}
{{- define "mnemo.scheduling" -}}
{{- include "mnemo.placement" .values }}
topologySpreadConstraints:
{{- if .values.topologySpreadConstraints }}
  {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- $root := .root }}{{ $component := .component }}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    # Per revision, so that pods are spread after a rolling upgrade.
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- include "mnemo.selector" (dict "root" $root "component" $component) | nindent 8 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The port of a URL, explicit or by scheme. */}}
{{- define "mnemo.urlPort" -}}
{{- $u := urlParse . -}}
{{- $port := regexFind ":[0-9]+$" $u.host | trimPrefix ":" -}}
{{- default (ternary "80" "443" (eq $u.scheme "http")) $port -}}
{{- end -}}

{{/* Metadata of the objects of the pre-delete hook. Argument: (dict "root" $ "weight" 0). */}}
{{- define "mnemo.uninstallMeta" }}
  labels:
    {{- include "mnemo.labels" (dict "root" .root "component" "uninstall") | nindent 4 }}
  annotations:
    helm.sh/hook: pre-delete
    helm.sh/hook-weight: {{ .weight | quote }}
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
    # The log of the Job explains why the uninstallation failed.
    helm.sh/hook-output-log-policy: hook-failed
{{- end }}

{{/* Constraint of an admission policy to the namespaces that the operator watches. */}}
{{- define "mnemo.watchedNamespaces" -}}
{{- with .Values.operator.watchNamespaces -}}
namespaceSelector:
  matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
{{- end -}}
{{- end -}}

{{/* The value of a quota: a quantity, or a number without an exponent. */}}
{{- define "mnemo.quota" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ int64 . }}{{ end -}}
{{- end -}}
