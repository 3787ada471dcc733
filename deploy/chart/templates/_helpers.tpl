{{/* Name of this release's objects: `lagcast` for a release of that name. */}}
{{- define "lagcast.name" -}}
{{- if contains "lagcast" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-lagcast{{ end }}
{{- end }}

{{/* What selects pods; arguments: root, component, and shard where it is not of all. */}}
{{- define "lagcast.selector" -}}
app.kubernetes.io/name: lagcast
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with .shard }}
lagcast.io/shard: {{ trimPrefix "-" . | quote }}
{{- end }}
{{- end }}

{{/* Suffix of what each shard has of its own, one for each: empty where one recommender has all groups. A JSON list. */}}
{{- define "lagcast.shards" -}}
{{- $suffixes := list }}
{{- range $number := untilStep 1 (int (add1 .Values.recommender.shards)) 1 }}
{{- $suffixes = append $suffixes (printf "-%d" $number) }}
{{- end }}
{{- if gt (len $suffixes) 1 }}{{ $suffixes | toJson }}{{ else }}[""]{{ end }}
{{- end }}

{{/* Labels of an object that is not a pod. */}}
{{- define "lagcast.labels" -}}
app.kubernetes.io/name: lagcast
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Image and pull policy; arguments: root, image. */}}
{{- define "lagcast.image" -}}
image: {{ printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion) | quote }}
{{- with .image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{/* A service account that gets no token unless its pod requests one; arguments: root, component. */}}
{{- define "lagcast.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "lagcast.name" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "lagcast.labels" .root | nindent 4 }}
automountServiceAccountToken: false
{{- end }}

{{/* What the pods of recommender and job have in common; arguments: root, component, token. */}}
{{- define "lagcast.pod" -}}
serviceAccountName: {{ include "lagcast.name" .root }}-{{ .component }}
automountServiceAccountToken: {{ .token | default false }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- with .root.Values.fsGroup }}
  fsGroup: {{ int . }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* Any user id, nothing written to the root, nothing gained. */}}
{{- define "lagcast.securityContext" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Name of a claim; arguments: root, volume, shard. */}}
{{- define "lagcast.claim" -}}
{{- (index .root.Values.storage .volume).existingClaim | default (printf "%s-%s%s" (include "lagcast.name" .root) .volume .shard) }}
{{- end }}

{{/* The API server, and names: ports of an egress rule. */}}
{{- define "lagcast.apiServerPorts" -}}
- port: 443
  protocol: TCP
- port: 6443
  protocol: TCP
{{ include "lagcast.namePorts" . }}
{{- end }}

{{- define "lagcast.namePorts" -}}
- port: 53
  protocol: UDP
- port: 53
  protocol: TCP
{{- end }}

{{/* Whether recommenders hold a Lease: several do; empty where there is one. */}}
{{- define "lagcast.leads" -}}
{{- if or (gt (int .Values.recommender.replicas) 1) (gt (int .Values.recommender.shards) 1) }}true{{ end }}
{{- end }}

{{/* Whether callers of REST, and of KEDA's port, are asked who they are; empty where not. */}}
{{- define "lagcast.asksCallers" -}}
{{- if or .Values.access.tokenSecret .Values.access.tokenReview }}true{{ end }}
{{- end }}

{{- define "lagcast.asksKeda" -}}
{{- if or (not .Values.keda.enabled) .Values.keda.clientCaSecret }}true{{ end }}
{{- end }}

{{/* Secrets of access, by the name of their volumes and folders. */}}
{{- define "lagcast.accessSecrets" -}}
{{- $keda := "" }}
{{- if .Values.keda.enabled }}{{ $keda = .Values.keda.clientCaSecret }}{{ end }}
{{- range $volume, $secret := dict "tokens" .Values.access.tokenSecret "tls" .Values.access.tlsSecret "keda" $keda }}
{{- if $secret }}
{{ $volume }}: {{ $secret }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lagcast.scheme" -}}
http{{ if .Values.access.tlsSecret }}s{{ end }}
{{- end }}

{{/* Whether a Prometheus is read, and whether it has to be found; empty where not. */}}
{{- define "lagcast.readsPrometheus" -}}
{{- if or .Values.prometheus.url .Values.prometheus.nodePrices }}true{{ end }}
{{- end }}

{{- define "lagcast.findsPrometheus" -}}
{{- if has "auto" (list .Values.prometheus.url .Values.prometheus.nodePrices) }}true{{ end }}
{{- end }}

{{/* Folder of a recommender's samples and features: one has the volume, several a folder each; arguments: root, replica. */}}
{{- define "lagcast.dataOf" -}}
/data{{ if include "lagcast.leads" .root }}/{{ .replica }}{{ end }}
{{- end }}
