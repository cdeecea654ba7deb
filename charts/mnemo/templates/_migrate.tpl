{{/* The complete spec of the migration Job. */}}
{{- define "mnemo.migrateSpec" -}}
{{- $scope := dict "root" . "component" "migrate" "values" .Values.migrate -}}
backoffLimit: 10
template:
  metadata:
    labels:
      {{- include "mnemo.labels" $scope | nindent 6 }}
  spec:
    restartPolicy: OnFailure
    serviceAccountName: {{ include "mnemo.serviceAccountName" (dict "root" . "component" "api") }}
    automountServiceAccountToken: false
    enableServiceLinks: false
    {{- with include "mnemo.imagePullSecrets" . }}
    {{- . | nindent 4 }}
    {{- end }}
    securityContext:
      {{- include "mnemo.podSecurity" . | nindent 6 }}
    {{- with include "mnemo.placement" .Values.migrate | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    containers:
      - name: migrate
        image: {{ include "mnemo.image" . }}
        imagePullPolicy: {{ .Values.image.pullPolicy }}
        args: [migrate]
        env:
          {{- include "mnemo.logEnv" . | nindent 10 }}
          {{- include "mnemo.postgresEnv" (dict "root" . "role" "owner") | nindent 10 }}
          - name: DATABASE_APP_ROLE
            valueFrom: {secretKeyRef: {name: {{ include "mnemo.postgresSecret" (dict "root" . "role" "app") }}, key: username}}
          {{- with .Values.postgres.databaseCell }}
          - {name: MNEMO_DATABASE_CELL, value: {{ . | quote }}}
          {{- end }}
          - {name: MNEMO_MIGRATE_WAIT_TIMEOUT, value: {{ .Values.migrate.waitTimeout | quote }}}
          {{- with .Values.migrate.extraEnv }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
        resources:
          {{- toYaml .Values.migrate.resources | nindent 10 }}
        securityContext:
          {{- include "mnemo.containerSecurity" . | nindent 10 }}
        {{- with include "mnemo.postgresMounts" (dict "root" . "role" "owner") | trim }}
        volumeMounts:
          {{- . | nindent 10 }}
        {{- end }}
    {{- with include "mnemo.postgresVolumes" (dict "root" . "role" "owner") | trim }}
    volumes:
      {{- . | nindent 6 }}
    {{- end }}
{{- end -}}
