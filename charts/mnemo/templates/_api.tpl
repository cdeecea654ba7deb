{{/* Settings of API servers only: identity providers and private CAs. */}}
{{- define "mnemo.apiEnv" -}}
{{- if .Values.oidc.providers }}
- {name: MNEMO_OIDC_PROVIDERS, value: /etc/mnemo/oidc/providers.json}
{{- end }}
{{- if include "mnemo.extraCA" . }}
- {name: SSL_CERT_DIR, value: /etc/mnemo/ca}
{{- end }}
{{- end -}}

{{- define "mnemo.extraCA" -}}
{{- if .Values.extraCA.existingSecret -}}secret: {secretName: {{ .Values.extraCA.existingSecret }}}
{{- else if .Values.extraCA.existingConfigMap -}}configMap: {name: {{ .Values.extraCA.existingConfigMap }}}
{{- end -}}
{{- end -}}

{{- define "mnemo.apiMounts" -}}
{{- if .Values.oidc.providers }}
- {name: oidc, mountPath: /etc/mnemo/oidc, readOnly: true}
{{- end }}
{{- if include "mnemo.extraCA" . }}
- {name: extra-ca, mountPath: /etc/mnemo/ca, readOnly: true}
{{- end }}
{{- end -}}

{{- define "mnemo.apiVolumes" -}}
{{- with .Values.oidc.providers }}
- name: oidc
  projected:
    sources:
      - configMap: {name: {{ include "mnemo.fullname" $ }}-oidc}
      {{- range $i, $provider := . }}
      {{- with $provider.existingSecret }}
      - secret: {name: {{ . }}, items: [{key: {{ default "client-secret" $provider.key }}, path: secret-{{ $i }}}]}
      {{- end }}
      {{- end }}
{{- end }}
{{- with include "mnemo.extraCA" . }}
- name: extra-ca
  {{ . }}
{{- end }}
{{- end -}}

{{/* The file that `mnemo serve` reads. Client secrets are separate files next to it. */}}
{{- define "mnemo.oidcProviders" -}}
{{- $all := list }}
{{- range $i, $provider := .Values.oidc.providers }}
{{- $entry := pick $provider "name" "issuer" "clientId" "requireHostedDomain" "endSession" "noAuthTime" "platformAdministrators" }}
{{- if $provider.existingSecret }}{{ $_ := set $entry "clientSecretFile" (printf "/etc/mnemo/oidc/secret-%d" $i) }}{{ end }}
{{- $all = append $all $entry }}
{{- end }}
{{- toPrettyJson $all -}}
{{- end -}}
