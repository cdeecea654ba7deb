{{/* What network policies of ours have in common. */}}
{{- define "mnemo.dnsEgress" -}}
- ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
{{- end }}
{{- define "mnemo.postgresEgress" -}}
- ports: [{protocol: TCP, port: {{ .Values.postgres.port }}}]
{{- end }}
{{- define "mnemo.milvusEgress" -}}
- ports: [{protocol: TCP, port: {{ include "mnemo.milvusHost" . | splitList ":" | last }}}]
{{- end }}
{{- define "mnemo.metricsIngress" -}}
- ports: [{protocol: TCP, port: metrics}]
  from:
    {{- default (list (dict "namespaceSelector" dict)) .Values.networkPolicy.metricsFrom | toYaml | nindent 4 }}
{{- end }}
