{{/* Connections to PostgreSQL and Milvus. */}}
{{- define "mnemo.postgresHost" -}}
{{- if .Values.demo -}}{{ include "mnemo.fullname" . }}-demo-postgres
{{- else if eq .Values.postgres.mode "cnpg" -}}{{ include "mnemo.cnpgCluster" . }}-rw
{{- else -}}{{ required "postgres.host is required: set the host of PostgreSQL, or set postgres.mode to cnpg" .Values.postgres.host }}
{{- end -}}
{{- end -}}

{{/* "true" if the application role connects through a pooler. */}}
{{- define "mnemo.pooled" -}}
{{- if .Values.demo -}}
{{- else if eq .Values.postgres.mode "cnpg" -}}{{- if .Values.postgres.cnpg.pooler.enabled -}}true{{- end -}}
{{- else if .Values.postgres.pooler.host -}}true
{{- end -}}
{{- end -}}

{{- define "mnemo.poolerAddress" -}}
{{- if eq .Values.postgres.mode "cnpg" -}}{{ include "mnemo.cnpgCluster" . }}-pooler:5432
{{- else -}}{{ include "mnemo.hostPort" (list .Values.postgres.pooler.host .Values.postgres.pooler.port) }}
{{- end -}}
{{- end -}}

{{/* A host and a port, with brackets around an IPv6 address. Argument: (list "host" "port"). */}}
{{- define "mnemo.hostPort" -}}
{{- $host := first . -}}
{{- if contains ":" $host -}}{{ $host = printf "[%s]" (trimAll "[]" $host) }}{{- end -}}
{{ $host }}:{{ last . }}
{{- end -}}

{{/* URL of PostgreSQL. Argument: (dict "root" $ "role" "app" "address" "host:port"). */}}
{{- define "mnemo.postgresURL" -}}
postgres://{{ .address }}/{{ .root.Values.postgres.database }}?sslmode={{ include "mnemo.postgresSSLMode" .root }}
{{- if include "mnemo.postgresCA" .root }}&sslrootcert=/etc/mnemo/postgres/{{ include "mnemo.postgresCAKey" .root }}{{ end }}
{{- if include "mnemo.postgresCertificate" . }}
{{- $directory := printf "/etc/mnemo/postgres-%s" .role -}}
&sslcert={{ $directory }}/tls.crt&sslkey={{ $directory }}/tls.key
{{- end }}
{{- end -}}

{{/* The Secret with the client certificate of a role; empty for none. Argument: (dict "root" $ "role" "owner"). */}}
{{- define "mnemo.postgresCertificate" -}}
{{- if not .root.Values.demo -}}{{ (get .root.Values.postgres .role).certificateSecret | default "" }}{{- end -}}
{{- end -}}

{{/* Volumes and mounts of everything that connects to PostgreSQL. Argument: (dict "root" $ "role" "owner"). */}}
{{- define "mnemo.postgresVolumes" -}}
{{- with include "mnemo.postgresCA" .root }}
- name: postgres-ca
  {{ . }}
{{- end }}
{{- with include "mnemo.postgresCertificate" . }}
- name: postgres-{{ $.role }}
  # libpq refuses a key that others than the group can read; fsGroup is the group.
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{- define "mnemo.postgresMounts" -}}
{{- if include "mnemo.postgresCA" .root }}
- {name: postgres-ca, mountPath: /etc/mnemo/postgres, readOnly: true}
{{- end }}
{{- if include "mnemo.postgresCertificate" . }}
- {name: postgres-{{ .role }}, mountPath: /etc/mnemo/postgres-{{ .role }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "mnemo.cnpgCluster" -}}
{{- default (printf "%s-postgres" (include "mnemo.fullname" .)) .Values.postgres.cnpg.clusterName -}}
{{- end -}}

{{/* Connections that this release opens at most. Each pod has a pool, and two connections for notifications. With a pooler, the pod's
own pool is that of the job queue (4), and the pooler has another. During a rolling upgrade each Deployment has one pod more. The rest is
for the migration, the erasure ledger, backups and CloudNativePG itself. */}}
{{- define "mnemo.maxConnections" -}}
{{- $v := .Values.postgres -}}
{{- $api := int (.Values.api.autoscaling.enabled | ternary .Values.api.autoscaling.maxReplicas .Values.api.replicas) -}}
{{- $pods := add $api 1 .Values.operator.replicas 1 -}}
{{- $pool := int $v.connections -}}
{{- $rest := int $v.cnpg.reservedConnections -}}
{{- with $v.cnpg.pooler }}{{- if .enabled -}}
{{- $pool = 4 -}}
{{- $rest = add $rest (mul .instances (int .parameters.default_pool_size)) -}}
{{- end }}{{- end -}}
{{- add (mul $pods (add $pool 2)) $rest -}}
{{- end -}}

{{- define "mnemo.postgresPort" -}}
{{- if or .Values.demo (eq .Values.postgres.mode "cnpg") -}}5432{{- else -}}{{ .Values.postgres.port }}{{- end -}}
{{- end -}}

{{- define "mnemo.postgresSSLMode" -}}
{{- if .Values.demo -}}disable{{- else -}}{{ .Values.postgres.sslMode }}{{- end -}}
{{- end -}}

{{/* The Secret of a role. Argument: (dict "root" $ "role" "owner"). */}}
{{- define "mnemo.postgresSecret" -}}
{{- if .root.Values.demo -}}{{ include "mnemo.fullname" .root }}-demo-{{ .role }}
{{- else -}}
{{- required (printf "postgres.%s.existingSecret is required: create a Secret with the keys username and password of that role" .role) (get (get .root.Values.postgres .role) "existingSecret") -}}
{{- end -}}
{{- end -}}

{{/* Environment of a role's connection. The driver reads PGUSER and PGPASSWORD, so the URL needs no escaping. */}}
{{- define "mnemo.postgresEnv" -}}
{{- $secret := include "mnemo.postgresSecret" . -}}
- name: PGUSER
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: username}}
- name: PGPASSWORD
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: password}}
- name: {{ ternary "DATABASE_OWNER_URL" "DATABASE_URL" (eq .role "owner") }}
  value: {{ include "mnemo.postgresURL" (dict "root" .root "role" .role "address" (include "mnemo.hostPort" (list (include "mnemo.postgresHost" .root) (include "mnemo.postgresPort" .root)))) }}
{{- end -}}

{{/* Volume source of the CA of PostgreSQL's certificate; empty for the public CAs. */}}
{{- define "mnemo.postgresCA" -}}
{{- $ca := .Values.postgres.ca -}}
{{- if .Values.demo -}}
{{- else if $ca.existingSecret -}}secret: {secretName: {{ $ca.existingSecret }}}
{{- else if $ca.existingConfigMap -}}configMap: {name: {{ $ca.existingConfigMap }}}
{{- else if eq .Values.postgres.mode "cnpg" -}}secret: {secretName: {{ include "mnemo.cnpgCluster" . }}-ca, items: [{key: ca.crt, path: ca.crt}]}
{{- end -}}
{{- end -}}

{{- define "mnemo.postgresCAKey" -}}
{{- if or .Values.postgres.ca.existingSecret .Values.postgres.ca.existingConfigMap -}}{{ .Values.postgres.ca.key }}{{- else -}}ca.crt{{- end -}}
{{- end -}}

{{/* "true" if the pods connect to Milvus: without an index, as long as it is configured. */}}
{{- define "mnemo.usesMilvus" -}}
{{- if eq .Values.index.mode "milvus" -}}true
{{- else if .Values.demo -}}
{{- else if or .Values.milvus.address (eq .Values.milvus.mode "operator") -}}true
{{- end -}}
{{- end -}}

{{- define "mnemo.milvusHost" -}}
{{- if .Values.demo -}}{{ include "mnemo.fullname" . }}-demo-milvus:19530
{{- else if eq .Values.milvus.mode "operator" -}}{{ include "mnemo.fullname" . }}-milvus:19530
{{- else -}}{{ required "milvus.address is required: set the host:port of Milvus, or set milvus.mode to operator, or index.mode to none" .Values.milvus.address }}
{{- end -}}
{{- end -}}

{{/* Only an external Milvus uses TLS. The operator's and the demo's are inside the namespace. */}}
{{- define "mnemo.milvusTLS" -}}
{{- if and (include "mnemo.usesMilvus" .) (not .Values.demo) (eq .Values.milvus.mode "external") .Values.milvus.tls.enabled -}}true{{- end -}}
{{- end -}}

{{- define "mnemo.milvusCA" -}}
{{- $tls := .Values.milvus.tls -}}
{{- if not (include "mnemo.milvusTLS" .) -}}
{{- else if $tls.existingSecret -}}secret: {secretName: {{ $tls.existingSecret }}}
{{- else if $tls.existingConfigMap -}}configMap: {name: {{ $tls.existingConfigMap }}}
{{- end -}}
{{- end -}}

{{- define "mnemo.milvusSecret" -}}
{{- if .Values.demo -}}{{ include "mnemo.fullname" . }}-demo-milvus
{{- else if eq .Values.milvus.mode "operator" -}}
{{- required "milvus.auth.existingSecret is required: create a Secret with username root and a password" .Values.milvus.auth.existingSecret -}}
{{- else -}}{{ .Values.milvus.auth.existingSecret }}
{{- end -}}
{{- end -}}

{{- define "mnemo.indexEnv" -}}
- {name: MNEMO_INDEX, value: {{ .Values.index.mode }}}
{{- if include "mnemo.usesMilvus" . }}
- name: MILVUS_ADDRESS
  value: {{ if include "mnemo.milvusTLS" . }}https://{{ end }}{{ include "mnemo.milvusHost" . }}
{{- with include "mnemo.milvusSecret" . }}
- name: MILVUS_USERNAME
  valueFrom: {secretKeyRef: {name: {{ . }}, key: username}}
- name: MILVUS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ . }}, key: password}}
{{- end }}
{{- if include "mnemo.milvusCA" . }}
- {name: MILVUS_CA, value: /etc/mnemo/milvus/{{ .Values.milvus.tls.key }}}
{{- end }}
{{- end }}
{{- end -}}

{{/* Environment of both stores, with the application role. */}}
{{- define "mnemo.storesEnv" -}}
{{- $env := include "mnemo.postgresEnv" (dict "root" . "role" "app") -}}
{{- if include "mnemo.pooled" . -}}
{{ $env | replace "name: DATABASE_URL" "name: DATABASE_DIRECT_URL" }}
# Without named prepared statements, which not every version and configuration of PgBouncer supports.
- {name: DATABASE_URL, value: {{ printf "%s&default_query_exec_mode=cache_describe" (include "mnemo.postgresURL" (dict "root" . "role" "app" "address" (include "mnemo.poolerAddress" .))) | quote }}}
{{- else -}}
{{ $env }}
{{- end }}
- {name: MNEMO_DATABASE_CONNECTIONS, value: {{ .Values.postgres.connections | quote }}}
{{ include "mnemo.indexEnv" . }}
{{- if .Values.cells.enabled }}
- {name: MNEMO_CELLS_DIR, value: /etc/mnemo/cells}
{{- end }}
{{- end -}}

{{/* With the application role. */}}
{{- define "mnemo.storesVolumes" -}}
{{- include "mnemo.postgresVolumes" (dict "root" . "role" "app") }}
{{- with include "mnemo.milvusCA" . }}
- name: milvus-ca
  {{ . }}
{{- end }}
{{- end -}}

{{- define "mnemo.storesMounts" -}}
{{- include "mnemo.postgresMounts" (dict "root" . "role" "app") }}
{{- if include "mnemo.milvusCA" . }}
- {name: milvus-ca, mountPath: /etc/mnemo/milvus, readOnly: true}
{{- end }}
{{- end -}}

{{/* The connections of Cells, which the operator writes. */}}
{{- define "mnemo.cellsVolume" -}}
{{- if .Values.cells.enabled -}}
- name: cells
  secret: {secretName: {{ include "mnemo.fullname" . }}-cells, optional: true}
{{- end -}}
{{- end -}}

{{- define "mnemo.cellsMount" -}}
{{- if .Values.cells.enabled -}}
- {name: cells, mountPath: /etc/mnemo/cells, readOnly: true}
{{- end -}}
{{- end -}}

{{/* The embedding model. The operator needs only its name and dimensions. */}}
{{- define "mnemo.embedderEnv" -}}
{{- $v := .Values.embeddings -}}
{{- if eq $v.mode "local" }}
- {name: MNEMO_EMBEDDER, value: local}
- {name: MNEMO_MODEL, value: {{ $v.local.model | quote }}}
{{- else }}
- {name: MNEMO_EMBEDDER, value: openai}
- {name: MNEMO_EMBEDDINGS_MODEL, value: {{ required "embeddings.external.model is required: set the name of the model, or set embeddings.mode to local" $v.external.model | quote }}}
- {name: MNEMO_EMBEDDINGS_DIMENSIONS, value: {{ $v.external.dimensions | quote }}}
{{- with $v.external.revision }}
- {name: MNEMO_EMBEDDINGS_REVISION, value: {{ . | quote }}}
{{- end }}
{{- if lt (int $v.external.dimensions) 1 }}{{ fail "embeddings.external.dimensions is required: set the length of the model's vectors" }}{{ end }}
{{- end }}
{{- end -}}

{{- define "mnemo.modelEnv" -}}
{{- $v := .Values.embeddings -}}
{{- if eq $v.mode "local" }}
- {name: MNEMO_MODEL_DIR, value: {{ $v.local.path | quote }}}
- {name: MNEMO_MODEL_THREADS, value: {{ $v.local.threads | quote }}}
{{- else }}
- {name: MNEMO_EMBEDDINGS_URL, value: {{ required "embeddings.external.url is required: set the base URL of an OpenAI-compatible endpoint, or set embeddings.mode to local" $v.external.url | quote }}}
- {name: MNEMO_EMBEDDINGS_TIMEOUT, value: {{ $v.external.timeout | quote }}}
{{- with $v.external.existingSecret }}
- name: MNEMO_EMBEDDINGS_KEY
  valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $v.external.key }}}}
{{- end }}
{{- end }}
{{- end -}}

{{/* The model that the embeddings migrate to. */}}
{{- define "mnemo.nextModelEnv" -}}
{{- $v := .Values.embeddings.next -}}
{{- if eq $v.mode "local" }}
- {name: MNEMO_NEXT_EMBEDDER, value: local}
- {name: MNEMO_NEXT_MODEL, value: {{ $v.local.model | quote }}}
- {name: MNEMO_NEXT_MODEL_DIR, value: {{ $v.local.path | quote }}}
{{- else if eq $v.mode "external" }}
- {name: MNEMO_NEXT_EMBEDDER, value: openai}
- {name: MNEMO_NEXT_EMBEDDINGS_URL, value: {{ required "embeddings.next.external.url is required: set the base URL of an OpenAI-compatible endpoint" $v.external.url | quote }}}
- {name: MNEMO_NEXT_EMBEDDINGS_MODEL, value: {{ required "embeddings.next.external.model is required: set the name of the model" $v.external.model | quote }}}
- {name: MNEMO_NEXT_EMBEDDINGS_DIMENSIONS, value: {{ $v.external.dimensions | quote }}}
{{- if lt (int $v.external.dimensions) 1 }}{{ fail "embeddings.next.external.dimensions is required: set the length of the model's vectors" }}{{ end }}
{{- with $v.external.revision }}
- {name: MNEMO_NEXT_EMBEDDINGS_REVISION, value: {{ . | quote }}}
{{- end }}
{{- with $v.external.existingSecret }}
- name: MNEMO_NEXT_EMBEDDINGS_KEY
  valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $v.external.key }}}}
{{- end }}
{{- end }}
{{- end -}}

{{- define "mnemo.nextModelVolume" -}}
{{- $v := .Values.embeddings.next -}}
{{- if eq $v.mode "local" }}
{{- if eq $v.local.source "image" }}
- name: next-model
  image: {reference: {{ include "mnemo.fromRegistry" (dict "root" . "image" (required "embeddings.next.local.image.reference is required: set an image with the model's files" $v.local.image.reference)) | quote }}, pullPolicy: {{ $v.local.image.pullPolicy }}}
{{- else }}
- name: next-model
  persistentVolumeClaim: {claimName: {{ required "embeddings.next.local.existingClaim is required: set the PersistentVolumeClaim with the model's files" $v.local.existingClaim }}, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{- define "mnemo.nextModelMount" -}}
{{- if eq .Values.embeddings.next.mode "local" }}
- {name: next-model, mountPath: {{ .Values.embeddings.next.local.path | quote }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "mnemo.modelVolume" -}}
{{- $v := .Values.embeddings -}}
{{- if eq $v.mode "local" }}
{{- if eq $v.local.source "image" }}
- name: model
  image: {reference: {{ include "mnemo.fromRegistry" (dict "root" . "image" $v.local.image.reference) | quote }}, pullPolicy: {{ $v.local.image.pullPolicy }}}
{{- else if eq $v.local.source "claim" }}
- name: model
  persistentVolumeClaim: {claimName: {{ required "embeddings.local.existingClaim is required: set the PersistentVolumeClaim with the model's files" $v.local.existingClaim }}, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{- define "mnemo.modelMount" -}}
{{- if and (eq .Values.embeddings.mode "local") (ne .Values.embeddings.local.source "bundled") }}
- {name: model, mountPath: {{ .Values.embeddings.local.path | quote }}, readOnly: true}
{{- end }}
{{- end -}}

{{/* Init container that waits until the schema is migrated and, with erasures, until the erasure ledger is applied.
Argument: (dict "root" $ "erasures" true). */}}
{{- define "mnemo.waitContainer" -}}
- name: wait-for-schema
  image: {{ include "mnemo.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: [wait]
  env:
    {{- include "mnemo.logEnv" .root | nindent 4 }}
    {{- include "mnemo.postgresEnv" (dict "root" .root "role" "app") | nindent 4 }}
    {{- if .erasures }}
    {{- with include "mnemo.erasureEnv" .root | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- end }}
  securityContext:
    {{- include "mnemo.containerSecurity" .root | nindent 4 }}
  resources:
    {{- include "mnemo.waitResources" .root | nindent 4 }}
  {{- with include "mnemo.storesMounts" .root | trim }}
  volumeMounts:
    {{- . | nindent 4 }}
  {{- end }}
{{- end -}}
