{{/* Backups, restores and the erasure ledger (docs/backup.md). */}}
{{- define "mnemo.erasureLedger" -}}
{{- if or .Values.erasureLedger.enabled .Values.backup.enabled -}}true{{- end -}}
{{- end -}}

{{/* A quantity in bytes; empty if it is not a whole number with a common unit. */}}
{{- define "mnemo.bytes" -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 -}}
{{- $unit := regexFind "[A-Za-z]*$" . -}}
{{- if and (regexMatch "^[0-9]+[A-Za-z]*$" .) (hasKey $units $unit) -}}{{ mul (trimSuffix $unit . | int64) (get $units $unit) }}{{- end -}}
{{- end -}}

{{/* Changes with the source of a recovery, which pg_restore is not. The name of the Cluster does not identify a recovery: a later
one, or one in another Kubernetes cluster, can use the same name. */}}
{{- define "mnemo.restoreID" -}}
{{- if .Values.erasureLedger.restoreID -}}{{ .Values.erasureLedger.restoreID }}
{{- else if and (eq .Values.postgres.mode "cnpg") .Values.postgres.cnpg.recovery -}}{{ toJson .Values.postgres.cnpg.recovery | sha256sum | trunc 16 }}
{{- end -}}
{{- end -}}

{{/* Environment of everything that must not use a database without its erasures. */}}
{{- define "mnemo.erasureEnv" -}}
{{- if include "mnemo.erasureLedger" . }}
- {name: MNEMO_ERASURE_LEDGER, value: "true"}
{{- end }}
{{- with include "mnemo.restoreID" . }}
- {name: MNEMO_RESTORE_ID, value: {{ . | quote }}}
{{- end }}
{{- end -}}

{{/* "true" while a dump is restored: nothing else may use the database. */}}
{{- define "mnemo.restoring" -}}
{{- if .Values.backup.restore -}}
{{- if not .Values.backup.enabled }}{{ fail "backup.enabled must be true to restore a dump: backup.restore names a dump on the volume of backup" }}{{ end -}}
true
{{- end -}}
{{- end -}}

{{- define "mnemo.backupClaim" -}}
{{- default (printf "%s-backup" (include "mnemo.fullname" .)) .Values.backup.volume.existingClaim -}}
{{- end -}}

{{/* Connection of pg_dump and pg_restore, as the owner. The default image contains no public CAs. */}}
{{- define "mnemo.backupEnv" -}}
{{ include "mnemo.postgresEnv" (dict "root" . "role" "owner") }}
- {name: HOME, value: /tmp}
{{- if and (not (include "mnemo.postgresCA" .)) (hasPrefix "verify-" (include "mnemo.postgresSSLMode" .)) }}
{{- fail "postgres.ca is required with backup.enabled, because the default image of pg_dump contains no public CAs: create a ConfigMap or Secret with the CA of PostgreSQL's certificate (docs/backup.md, \"Configure\")" }}
{{- end }}
{{- end -}}

{{/* Container of PostgreSQL's client programs. Argument: (dict "root" $ "name" "dump" "env" "…" "script" "…"). */}}
{{- define "mnemo.backupContainer" -}}
- name: {{ .name }}
  image: {{ include "mnemo.fromRegistry" (dict "root" .root "image" .root.Values.backup.image) }}
  command: [/bin/sh, -euc]
  args:
    - |
      {{- .script | nindent 6 }}
  env:
    {{- include "mnemo.backupEnv" .root | nindent 4 }}
    {{- with .env }}
    {{- . | nindent 4 }}
    {{- end }}
  resources:
    {{- toYaml .root.Values.backup.resources | nindent 4 }}
  securityContext:
    {{- include "mnemo.containerSecurity" .root | nindent 4 }}
  volumeMounts:
    - {name: backup, mountPath: /backup}
    - {name: tmp, mountPath: /tmp}
    {{- with include "mnemo.postgresMounts" (dict "root" .root "role" "owner") | trim }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* Settings of the pods of backups. */}}
{{- define "mnemo.backupPod" -}}
serviceAccountName: {{ include "mnemo.serviceAccountName" (dict "root" . "component" "api") }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with include "mnemo.imagePullSecrets" . }}
{{ . }}
{{- end }}
securityContext:
  {{- include "mnemo.podSecurity" . | nindent 2 }}
{{- include "mnemo.placement" .Values.backup }}
volumes:
  - name: backup
    persistentVolumeClaim: {claimName: {{ include "mnemo.backupClaim" . }}}
  - name: tmp
    emptyDir: {sizeLimit: 64Mi}
  {{- with include "mnemo.postgresVolumes" (dict "root" . "role" "owner") | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with .Values.backup.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The Job of a pod. The labels are used because a Job's name contains a hash of its spec, which therefore cannot contain the name. */}}
{{- define "mnemo.jobEnv" -}}
- {name: JOB_NAME, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}}
- {name: JOB_UID, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']"}}}
{{- end -}}

{{/* A partial dump is left only by a pod that was killed; no two pods dump at a time. A Job whose upload failed is repeated with another
pod, which must not dump again: the dumps of one night would replace those of others. Old dumps are deleted before the dump, too, so that a
lower backup.keep frees space on a full volume. */}}
{{- define "mnemo.dumpScript" -}}
if [ "$(cat /backup/.last-job 2>/dev/null)" = "$JOB_UID" ]; then
  echo "this Job has already dumped the database"
  ls -l /backup
  exit 0
fi
prune() {
  find /backup -maxdepth 1 -name 'mnemo-*.dump' | sort -r | tail -n +{{ add 1 .Values.backup.keep }} | xargs -r rm -f
}
rm -f /backup/mnemo-*.partial
prune
file=/backup/mnemo-$(date -u +%Y%m%dT%H%M%SZ).dump
pg_dump --format=custom --no-unlogged-table-data --file="$file.partial" "$DATABASE_OWNER_URL" || {
  rm -f "$file.partial" # the volume may be full
  exit 1
}
mv "$file.partial" "$file"
prune
echo "$JOB_UID" > /backup/.last-job
ls -l /backup
{{- end -}}

{{/* The recorder of erasures stays connected; it notices the restore. `helm rollback` to the revision of a restore creates a Job of
the same name with another UID. It must not restore again: everything written since the restore would be lost. */}}
{{- define "mnemo.restoreScript" -}}
state="/backup/.$JOB_NAME"
if [ -s "$state" ] && [ "$(head -n 1 "$state")" != "$JOB_UID" ]; then
  echo "The database was not changed: Job $JOB_NAME ran before, and a restore runs once, even after helm rollback."
  echo "The API server and the operator stay stopped. To start them, run helm upgrade with --set backup.restore= or roll back to another revision."
  echo "To restore a dump again, run helm upgrade with backup.restore. Tools that render the chart create the same Job again: delete $state first."
  exit 1
fi >&2
if [ "$(tail -n 1 "$state" 2>/dev/null)" = restored ]; then
  echo "this Job has already restored $DUMP" # and the migration failed
  exit 0
fi
if [ ! -f "/backup/$DUMP" ]; then
  echo "The database was not changed: no such dump: $DUMP. The volume contains:"
  ls -1 /backup
  echo "The API server and the operator stay stopped. Run helm upgrade with one of these dumps, or with --set backup.restore= to start them."
  exit 1
fi >&2
echo "$JOB_UID" > "$state"
sessions="select count(*) from pg_stat_activity where datname = current_database()
  and usename = '$APP_ROLE' and application_name <> 'mnemo-erasures'"
active=$(psql -Atc "$sessions" "$DATABASE_OWNER_URL")
until [ "$active" = 0 ]; do
  echo "waiting until the API server and the operator have stopped"
  sleep 2
  active=$(psql -Atc "$sessions" "$DATABASE_OWNER_URL")
done
psql -v ON_ERROR_STOP=1 -c 'drop schema if exists public cascade' \
  -c 'create schema public authorization pg_database_owner' "$DATABASE_OWNER_URL"
pg_restore --no-owner --exit-on-error --jobs=4 --dbname="$DATABASE_OWNER_URL" "/backup/$DUMP"
echo restored >> "$state"
{{- end -}}

{{- define "mnemo.restoreEnv" -}}
- {name: DUMP, value: {{ quote .Values.backup.restore }}}
{{ include "mnemo.jobEnv" . }}
- name: APP_ROLE
  valueFrom: {secretKeyRef: {name: {{ include "mnemo.postgresSecret" (dict "root" . "role" "app") }}, key: username}}
{{- end -}}

{{/* The complete spec of the restore Job. */}}
{{- define "mnemo.restoreSpec" -}}
{{- $migrate := (include "mnemo.migrateSpec" . | fromYaml).template.spec -}}
backoffLimit: 3
template:
  metadata:
    labels:
      {{- include "mnemo.labels" (dict "root" . "component" "restore") | nindent 6 }}
  spec:
    restartPolicy: Never # failed pods stay with their logs
    {{- include "mnemo.backupPod" . | nindent 4 }}
    initContainers:
      {{- include "mnemo.backupContainer" (dict "root" . "name" "restore" "script" (include "mnemo.restoreScript" .)
        "env" (include "mnemo.restoreEnv" .)) | nindent 6 }}
    containers: # the dump may be older than the schema
      {{- toYaml $migrate.containers | nindent 6 }}
{{- end -}}
