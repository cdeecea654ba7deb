{{/* Rules that network policies share. */}}
{{/* Without ports a rule would allow all of them, so an empty list has no rule. */}}
{{- define "mnemo.dnsEgress" -}}
{{- with .Values.networkPolicy.dnsPorts -}}
- ports:
    {{- range . }}
    - {protocol: UDP, port: {{ . }}}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end -}}
{{- end }}
{{- define "mnemo.kubeAPIEgress" -}}
{{- with .Values.networkPolicy.kubeAPIPorts -}}
- ports:
    {{- range . }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end -}}
{{- end }}

{{/* Egress to a port of any address. The pods of a Service may listen on a different port than the Service, and most network
plugins match the pods' port: for a host that may be a Service of this cluster, all ports of its namespace are allowed.
Argument: (dict "root" $ "to" "host:port"). */}}
{{- define "mnemo.egressTo" -}}
{{- $labels := regexReplaceAll ":[0-9]+$" .to "" | splitList "." }}
{{- $namespace := "" }}
{{- if hasPrefix "[" .to }}
{{- else if eq (len $labels) 1 }}{{ $namespace = .root.Release.Namespace }}
{{- else if or (eq (len $labels) 2) (eq (index $labels 2) "svc") }}{{ $namespace = index $labels 1 }}
{{- end -}}
- ports: [{protocol: TCP, port: {{ regexFind "[0-9]+$" .to }}}]
{{- with $namespace }}
- to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . }}}}}]
{{- end }}
{{- end }}
{{/* Egress to the host of a URL. Argument: (dict "root" $ "url" "https://…"). */}}
{{- define "mnemo.urlEgress" -}}
{{- $host := regexReplaceAll ":[0-9]+$" (urlParse .url).host "" -}}
{{- include "mnemo.egressTo" (dict "root" .root "to" (printf "%s:%s" $host (include "mnemo.urlPort" .url))) -}}
{{- end }}

{{- define "mnemo.postgresEgress" -}}
{{- if or .Values.demo (eq .Values.postgres.mode "cnpg") -}}
- ports: [{protocol: TCP, port: {{ include "mnemo.postgresPort" . }}}]
{{- else -}}
{{ include "mnemo.egressTo" (dict "root" . "to" (include "mnemo.hostPort" (list .Values.postgres.host (include "mnemo.postgresPort" .)))) }}
{{- if include "mnemo.pooled" . }}
{{ include "mnemo.egressTo" (dict "root" . "to" (include "mnemo.poolerAddress" .)) }}
{{- end }}
{{- end -}}
{{- end }}
{{- define "mnemo.milvusEgress" -}}
{{- if not (include "mnemo.usesMilvus" .) -}}
{{- else if or .Values.demo (eq .Values.milvus.mode "operator") -}}
- ports: [{protocol: TCP, port: {{ include "mnemo.milvusHost" . | splitList ":" | last }}}]
{{- else -}}
{{ include "mnemo.egressTo" (dict "root" . "to" .Values.milvus.address) }}
{{- end -}}
{{- end }}
{{- define "mnemo.cellsEgress" -}}
{{- if and .Values.cells.enabled .Values.cells.ports -}}
- ports: # cells
    {{- range .Values.cells.ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  to:
    {{- range .Values.cells.cidrs }}
    - ipBlock: {cidr: {{ . }}}
    {{- end }}
    - namespaceSelector: {}
{{- end -}}
{{- end }}
{{- define "mnemo.metricsIngress" -}}
- ports: [{protocol: TCP, port: metrics}]
  from:
    {{- default (list (dict "namespaceSelector" dict)) .Values.networkPolicy.metricsFrom | toYaml | nindent 4 }}
{{- end }}
