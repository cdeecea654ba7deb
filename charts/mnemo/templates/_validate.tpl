{{/* Checks of text that the programs or Kubernetes would refuse later. Each fails with the name of the value and its form. */}}

{{/* Argument: (dict "name" "cells.selector" "value" "…"). The grammar is that of kubectl --selector. */}}
{{- define "mnemo.checkSelector" -}}
{{- $name := "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?" -}}
{{- $label := "[a-z0-9]([-a-z0-9]*[a-z0-9])?" -}}
{{- $key := printf `(%s(\.%s)*/)?%s` $label $label $name -}}
{{- $value := printf "(%s)?" $name -}}
{{- $set := printf `\s+(in|notin)\s*\(\s*%s(\s*,\s*%s)*\s*\)` $value $value -}}
{{- $requirement := printf `(!\s*%s|%s(\s*(=|==|!=)\s*%s|\s*[<>]\s*[0-9]+|%s)?)` $key $key $value $set -}}
{{- if not (regexMatch (printf `^\s*(%s(\s*,\s*%s)*)?\s*$` $requirement $requirement) .value) -}}
{{- fail (printf "%s must be a label selector, such as mnemo.dev/shard=a or tier in (a,b), not %q" .name .value) -}}
{{- end -}}
{{- end -}}

{{/* Argument: (dict "name" "cells.cidrs" "values" (list "…")). */}}
{{- define "mnemo.checkNetworks" -}}
{{- $byte := "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])" -}}
{{- $v4 := printf `^(%s\.){3}%s/(3[0-2]|[12]?[0-9])$` $byte $byte -}}
{{- $bits := "/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$" -}}
{{- $groups := "(([0-9a-fA-F]{1,4}:)*[0-9a-fA-F]{1,4})?" -}}
{{- $full := printf "^([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}%s" $bits -}}
{{- $short := printf "^%s::%s%s" $groups $groups $bits -}}
{{- range $network := .values -}}
{{- $few := lt (len (regexFindAll "[0-9a-fA-F]+" (splitList "/" $network | first) -1)) 8 -}}
{{- if not (or (regexMatch $v4 $network) (regexMatch $full $network) (and $few (regexMatch $short $network))) -}}
{{- fail (printf "%s must be networks in CIDR notation, such as 10.0.0.0/8 or 2001:db8::/32, not %q" $.name $network) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The chart's own labels select pods, and its annotations restart them. Argument: (dict "name" "commonLabels" "values" (dict)). */}}
{{- define "mnemo.checkOwnKeys" -}}
{{- $own := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "app.kubernetes.io/version"
  "app.kubernetes.io/managed-by" "app.kubernetes.io/part-of" "helm.sh/chart" "checksum/secrets" -}}
{{- range $key, $_ := .values -}}
{{- if or (has $key $own) (hasPrefix "mnemo.dev/" $key) -}}
{{- fail (printf "%s must not contain %s, which the chart sets" $.name $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The operator refuses a default quota that exceeds the maximum. */}}
{{- define "mnemo.checkQuotas" -}}
{{- $operator := .Values.operator -}}
{{- range $kind := list "defaultQuota" "maxQuota" -}}
{{- if gt (include "mnemo.bytes" (get $operator $kind).storage | int64) 9007199254740992 -}}
{{- fail (printf "operator.%s.storage must be at most 8Pi, not %s" $kind (get $operator $kind).storage) -}}
{{- end -}}
{{- end -}}
{{- range $quota, $default := $operator.defaultQuota -}}
{{- $maximum := get $operator.maxQuota $quota -}}
{{- $less := lt (int64 $maximum) (int64 $default) -}}
{{- if eq $quota "storage" -}}
{{- $less = lt (include "mnemo.bytes" $maximum | int64) (include "mnemo.bytes" $default | int64) -}}
{{- else -}}
{{- $maximum = int64 $maximum -}}{{- $default = int64 $default -}}
{{- end -}}
{{- if $less -}}
{{- fail (printf "operator.maxQuota.%s (%v) must not be less than operator.defaultQuota.%s (%v)" $quota $maximum $quota $default) -}}
{{- end -}}
{{- end -}}
{{- end -}}
