{{/* Annotation that restarts pods when `helm upgrade` finds a changed Secret. Empty without access to the cluster: the manifests
of `helm template` stay the same. Argument: (dict "root" $ "component" "api"). */}}
{{- define "mnemo.secretsChecksum" -}}
{{- $data := dict -}}
{{- range include "mnemo.secretNames" . | fromJsonArray | compact | uniq -}}
{{- with lookup "v1" "Secret" $.root.Release.Namespace . -}}{{- $_ := set $data .metadata.name .data -}}{{- end -}}
{{- end -}}
{{- if .root.Values.demo -}}
{{- range list "app" (ternary "milvus" "" (and (ne .component "erasures") (eq (include "mnemo.usesMilvus" .root) "true"))) | compact -}}{{- $_ := set $data . (include "mnemo.demoSecret" (dict "root" $.root "role" .)) -}}{{- end -}}
{{- end -}}
{{- with $data -}}checksum/secrets: {{ toJson . | sha256sum | trunc 16 | quote }}{{- end -}}
{{- end -}}

{{/* The Secrets in these values that the pods of a component use, as JSON. The component erasures uses PostgreSQL only. */}}
{{- define "mnemo.secretNames" -}}
{{- $v := .root.Values -}}
{{- $names := list $v.postgres.ca.existingSecret (include "mnemo.postgresCertificate" (dict "root" .root "role" "app")) -}}
{{- if not $v.demo -}}{{- $names = append $names $v.postgres.app.existingSecret -}}{{- end -}}
{{- if and (ne .component "erasures") (include "mnemo.usesMilvus" .root) -}}
{{- $names = append $names $v.milvus.tls.existingSecret -}}
{{- if not $v.demo -}}{{- $names = append $names $v.milvus.auth.existingSecret -}}{{- end -}}
{{- end -}}
{{- if eq .component "api" -}}
{{- $names = concat $names (list $v.embeddings.external.existingSecret $v.embeddings.next.external.existingSecret $v.chat.existingSecret $v.rerank.existingSecret $v.tracing.existingSecret $v.extraCA.existingSecret) -}}
{{- range $v.oidc.providers -}}{{- $names = append $names (default "" .existingSecret) -}}{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* The data of a Secret of the demo, as JSON. The password is generated once: in a rendering for all templates, and in a release
for all upgrades. Argument: (dict "root" $ "role" "owner"). */}}
{{- define "mnemo.demoSecret" -}}
{{- $all := default dict (get .root.Values "demoSecrets") -}}
{{- if not (hasKey $all .role) -}}
{{- $user := get (dict "owner" "mnemo_owner" "app" "mnemo_app" "milvus" "root") .role -}}
{{- $old := lookup "v1" "Secret" .root.Release.Namespace (printf "%s-demo-%s" (include "mnemo.fullname" .root) .role) -}}
{{- $password := dig "data" "password" (randAlphaNum 32 | b64enc) (default dict $old) -}}
{{- $_ := set $all .role (toJson (dict "username" (b64enc $user) "password" $password)) -}}
{{- $_ := set .root.Values "demoSecrets" $all -}}
{{- end -}}
{{- get $all .role -}}
{{- end -}}
