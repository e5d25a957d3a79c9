{{/* The names are those of the Vitistack document, whatever the release is called: there is one operator in a cluster. */}}
{{- define "names.program" -}}kubevirt-operator{{- end }}
{{- define "names.base" -}}kubevirt-operator{{- end }}
{{- define "names.workload" -}}kubevirt-operator-controller-manager{{- end }}
{{- define "names.role" -}}kubevirt-operator{{- end }}
{{- define "names.binding" -}}kubevirt-operator-manager-rolebinding{{- end }}
