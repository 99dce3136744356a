{{/* What the generated templates include. They are made of deploy/*.yaml; what is here is the chart's own. */}}

{{/* Helm's usual labels, and those of the values. */}}
{{- define "gpuslice.labelLines" -}}
{{- $usual := dict "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/managed-by" .Release.Service "app.kubernetes.io/instance" .Release.Name -}}
{{- with .Chart.AppVersion -}}
{{- $usual = set $usual "app.kubernetes.io/version" (. | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- end -}}
{{- merge (dict) (.Values.labels | default dict) $usual | toYaml -}}
{{- end -}}

{{/* The same, to go on in a list of labels. */}}
{{- define "gpuslice.labels" -}}
{{- include "gpuslice.labelsAnd" (list . dict) -}}
{{- end -}}

{{/* The same with an object's own, which take precedence: (list $ .labels). */}}
{{- define "gpuslice.labelsAnd" -}}
{{- $all := merge (dict) (index . 1 | default dict) (include "gpuslice.labelLines" (index . 0) | fromYaml) -}}
{{- range $name, $value := $all }}, {{ $name }}: {{ $value | quote }}{{ end -}}
{{- end -}}

{{/* The namespaces that gpuslice keeps out of: those of the cluster, its own, and those of the values. */}}
{{- define "gpuslice.excluded" -}}
[kube-system, kube-public, kube-node-lease, {{ .Release.Namespace }}{{ range .Values.excludedNamespaces }}, {{ . | quote }}{{ end }}]
{{- end -}}

{{/* The runtime class of the agents: that of the values, else NVIDIA's where the cluster has it. Who renders without a cluster finds none. */}}
{{- define "gpuslice.agentRuntimeClass" -}}
{{- $set := .Values.agent.runtimeClassName -}}
{{- if eq $set "-" -}}
{{- else if $set -}}
{{ $set }}
{{- else if and (not .Values.agent.cdiDevice) (lookup "node.k8s.io/v1" "RuntimeClass" "" "nvidia") -}}
nvidia
{{- end -}}
{{- end -}}

{{/* The reference of one of the two images: (list $ .Values.image). */}}
{{- define "gpuslice.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $tag := $image.tag | default $root.Values.image.tag | default $root.Chart.AppVersion -}}
{{- $repository := $image.repository -}}
{{- with ($root.Values.global | default dict).imageRegistry -}}
{{- $parts := splitList "/" $repository -}}
{{- if and (rest $parts) (regexMatch "[.:]|^localhost$" (first $parts)) -}}
{{- $parts = rest $parts -}}
{{- end -}}
{{- $repository = printf "%s/%s" . (join "/" $parts) -}}
{{- end -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else if $tag -}}
{{ $repository }}:{{ $tag }}
{{- else -}}
{{- fail "image.tag is not set, and this chart carries no version. Build and push the images, then say where they are: --set image.repository=HOST/gpuslice/webhook,guard.image.repository=HOST/gpuslice/guard,image.tag=TAG" -}}
{{- end -}}
{{- end -}}

{{/* Fails where GOMEMLIMIT does not keep the replicas below their memory limit. Compares only Mi and Gi with MiB and GiB. */}}
{{- define "gpuslice.checkMemory" -}}
{{- $limit := dig "limits" "memory" "" (.Values.resources | default dict) | toString -}}
{{- $own := .Values.goMemLimit | toString -}}
{{- if and (regexMatch "^[0-9]+[MG]i$" $limit) (regexMatch "^[0-9]+[MG]iB$" $own) -}}
{{- $most := mul (ternary 1024 1 (hasSuffix "Gi" $limit)) (regexFind "^[0-9]+" $limit | int64) -}}
{{- $mebibytes := mul (ternary 1024 1 (hasSuffix "GiB" $own)) (regexFind "^[0-9]+" $own | int64) -}}
{{- if ge $mebibytes $most -}}
{{- fail (printf "goMemLimit is %s, and resources.limits.memory %s: set goMemLimit to %dMiB, three quarters of the limit" $own $limit (div (mul $most 3) 4)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The Deployment's strategy. In the host's network, a new replica cannot have the port of one that runs. */}}
{{- define "gpuslice.strategy" -}}
{{- if .Values.strategy -}}
{{ toYaml .Values.strategy }}
{{- else -}}
rollingUpdate: {{ ternary "{maxUnavailable: 1, maxSurge: 0}" "{maxUnavailable: 0, maxSurge: 1}" .Values.hostNetwork }}
{{- end -}}
{{- end -}}

{{/* The pull secrets of the replicas. Charts have global ones as names, or as references. */}}
{{- define "gpuslice.pullSecrets" -}}
{{- $names := .Values.image.pullSecrets -}}
{{- range (.Values.global | default dict).imagePullSecrets -}}
{{- if kindIs "string" . }}{{ $names = append $names . }}{{ else }}{{ $names = append $names .name }}{{ end -}}
{{- end -}}
{{- include "gpuslice.names" (uniq $names) -}}
{{- end -}}

{{/* The guard's image; nothing where no guard is wanted. */}}
{{- define "gpuslice.guardImage" -}}
{{- if .Values.guard.enabled }}{{ include "gpuslice.image" (list . .Values.guard.image) }}{{ end -}}
{{- end -}}

{{/* Arguments that say where the serving certificate comes from. */}}
{{- define "gpuslice.certificateArgs" -}}
{{- if ne .Values.certificates.source "self" -}}
- --certs={{ .Values.certificates.source }}
- --certs-file=/certificate/tls.crt
- --certs-key-file=/certificate/tls.key
{{- if eq .Values.certificates.source "cert-manager" }}
- --certs-ca-file=/certificate/ca.crt
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the serving certificate, where somebody else keeps it. */}}
{{- define "gpuslice.certificateSecret" -}}
{{- if eq .Values.certificates.source "files" }}{{ .Values.certificates.files.secretName | quote }}{{ else }}gpuslice-webhook-tls{{ end -}}
{{- end -}}

{{/* The authority that the API server is to trust, where nobody but the values knows it. Else the webhook or cert-manager writes it. */}}
{{- define "gpuslice.caBundle" -}}
{{- if eq .Values.certificates.source "files" }}
    caBundle: {{ .Values.certificates.files.caBundle | b64enc }}
{{- end -}}
{{- end -}}

{{/* Annotations of the webhook configurations. */}}
{{- define "gpuslice.webhookAnnotations" -}}
{{- $annotations := .Values.webhookAnnotations -}}
{{- if eq .Values.certificates.source "cert-manager" -}}
{{- $annotations = merge (dict "cert-manager.io/inject-ca-from-secret" (printf "%s/gpuslice-authority" .Release.Namespace)) $annotations -}}
{{- end -}}
{{- with $annotations }}
  annotations: {{- toYaml . | nindent 4 }}
{{- end -}}
{{- end -}}

{{/* Addresses as peers of a NetworkPolicy. */}}
{{- define "gpuslice.blocks" -}}
{{- range . }}
- ipBlock: {cidr: {{ . | quote }}}
{{- end -}}
{{- end -}}

{{/* Names as references to objects. */}}
{{- define "gpuslice.names" -}}
{{- range . }}
- name: {{ . | quote }}
{{- end -}}
{{- end -}}
