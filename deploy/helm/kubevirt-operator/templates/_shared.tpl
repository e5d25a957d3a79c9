{{/* What both charts share. Names and labels are in _names.tpl, which is each chart's own. */}}
{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "selector" -}}
app.kubernetes.io/name: {{ include "names.program" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "dialects" -}}
{{- range .Values.dialects }}
{{- if not (has . (list "vitistack" "stakater" "kubermatic" "virtrigaud")) }}{{ fail (printf "dialects: there is no front door %q; choose of vitistack, stakater, kubermatic, virtrigaud" .) }}{{ end }}
{{- end }}
{{- if and (has "kubermatic" .Values.dialects) (not .Values.front.secretName) }}{{ fail "dialects: kubermatic needs front.secretName, a Secret with the kubeconfig of the API that has its objects" }}{{ end }}
{{- required "dialects: name at least one" (join "," .Values.dialects) }}
{{- end }}
{{/* The port of an address such as :8080; nothing for 0, which is nowhere. */}}
{{- define "port" -}}
{{- $address := toString . }}
{{- if ne $address "0" }}{{ regexFind "[0-9]+$" $address }}{{ end }}
{{- end }}
{{/* Not empty if the metrics are served, and with TLS and authentication. */}}
{{- define "metrics.secure" -}}
{{- if and .Values.metrics.secure (include "port" .Values.settings.METRICS_BIND_ADDRESS) }}true{{ end }}
{{- end }}
{{- define "image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.Version }}{{ end }}
{{- end }}
{{/* The role about leases: several releases may have theirs in one namespace. */}}
{{- define "leases.role" -}}
{{- with .Values.leaderElection.namespace }}{{ $.Release.Namespace }}-{{ end }}{{ include "names.base" . }}-leader-election
{{- end }}
