{{/* Fails where a value has the name that other charts give it, with what to write. The schema allows these names alone. */}}
{{- define "gpuslice.checkNames" -}}
{{- $fixed := "the objects have fixed names, which gpuslice's certificates and policies contain: remove it" -}}
{{- $answers := dict
  "replicaCount" "write replicas"
  "imagePullSecrets" "write image.pullSecrets, a list of names"
  "imagePullPolicy" "write image.pullPolicy"
  "logLevel" "write log.level"
  "logFormat" "write log.format"
  "commonLabels" "write labels"
  "commonAnnotations" "write annotations, for the Deployment, or podAnnotations"
  "nameOverride" $fixed
  "fullnameOverride" $fixed
  "namespaceOverride" "set the namespace by helm's --namespace"
  "updateStrategy" "write strategy"
  "deploymentStrategy" "write strategy"
  "containerSecurityContext" "write securityContext"
  "env" "write extraEnv"
  "volumes" "write extraVolumes"
  "volumeMounts" "write extraVolumeMounts"
  "pdb" "write podDisruptionBudget"
  "podDisruptionBudget.minAvailable" "write podDisruptionBudget.maxUnavailable"
  "autoscaling" "the webhook needs no autoscaler: write replicas"
  "rbac" "gpuslice always needs its roles: remove it"
  "crds" "gpuslice has no CRD: remove it"
  "installCRDs" "gpuslice has no CRD: remove it"
  "serviceAccount.name" $fixed
  "serviceAccount.create" "gpuslice's policies limit one ServiceAccount, which the chart always creates: remove it"
-}}
{{- range $name, $answer := $answers -}}
{{- $at := $.Values -}}
{{- $found := true -}}
{{- range splitList "." $name -}}
{{- if and (kindIs "map" $at) (hasKey $at .) -}}{{- $at = index $at . -}}{{- else -}}{{- $found = false -}}{{- end -}}
{{- end -}}
{{- if $found -}}{{- fail (printf "%s is no value of this chart: %s" $name $answer) -}}{{- end -}}
{{- end -}}
{{- end -}}
