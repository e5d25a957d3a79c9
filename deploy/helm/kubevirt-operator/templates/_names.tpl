{{/* The names are those of the Vitistack document, whatever the release is called: there is one operator in a cluster. */}}
{{- define "labels" -}}
app.kubernetes.io/name: kubevirt-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "selector" -}}
app.kubernetes.io/name: kubevirt-operator
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
