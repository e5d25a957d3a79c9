{{/* The names of a release: several may be in a cluster, with different dialects. */}}
{{- define "names.program" -}}paddock{{- end }}
{{- define "names.base" -}}
{{- if contains "paddock" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-paddock" (.Release.Name | trunc 42 | trimSuffix "-") }}{{ end }}
{{- end }}
{{- define "names.workload" -}}{{ include "names.base" . }}{{- end }}
{{- define "names.role" -}}{{ printf "%s:%s" .Release.Namespace (include "names.base" .) }}{{- end }}
{{- define "names.binding" -}}{{ include "names.role" . }}{{- end }}
