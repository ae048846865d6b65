{{- define "junction.name" -}}
{{ default "junction" .Values.nameOverride }}
{{- end }}

{{- define "junction.selectorLabels" -}}
app.kubernetes.io/name: {{ include "junction.name" . }}
{{- end }}

{{- define "junction.labels" -}}
{{ include "junction.selectorLabels" . }}
app.kubernetes.io/component: service-proxy
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "junction.image" -}}
{{- if .Values.image.digest -}}
{{ printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else -}}
{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end -}}
{{- end }}

{{- define "junction.configMapName" -}}
{{ default (include "junction.name" .) .Values.existingConfigMap }}
{{- end }}

{{- define "junction.address" -}}
{{- if contains ":" .bindAddress -}}
{{ printf "[%s]:%v" .bindAddress .port }}
{{- else -}}
{{ printf "%s:%v" .bindAddress .port }}
{{- end -}}
{{- end }}

{{- /* Probes go to the pod's address, the node's; a listener on one address is asked there. */ -}}
{{- define "junction.probe" -}}
httpGet:
  path: {{ .path }}
  port: healthz
  {{- if not (or (eq .healthz.bindAddress "0.0.0.0") (eq .healthz.bindAddress "::")) }}
  host: {{ .healthz.bindAddress | quote }}
  {{- end }}
{{- end }}

{{- /* What every container of Junction has. */ -}}
{{- define "junction.env" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- if .Values.apiServer.host }}
# In place of the cluster IP, which works only once a proxy runs.
- name: KUBERNETES_SERVICE_HOST
  value: {{ .Values.apiServer.host | quote }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ int64 .Values.apiServer.port | quote }}
{{- end }}
{{- end }}

{{- define "junction.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  add:
    {{- range .Values.capabilities }}
    {{- if not (and (eq . "NET_RAW") (include "junction.isNftables" $)) }}
    - {{ . }}
    {{- end }}
    {{- end }}
{{- end }}

{{- define "junction.volumeMounts" -}}
- name: config
  mountPath: /var/lib/kube-proxy
  readOnly: true
{{- if not (include "junction.isNftables" .) }}
- name: xtables-lock
  mountPath: /run/xtables.lock
{{- end }}
- name: modules
  mountPath: /lib/modules
  readOnly: true
- name: tmp
  mountPath: /tmp
- name: state
  mountPath: /run/junction
{{- end }}

{{- /* Not empty where the main container sets sysctls too. What mode another's ConfigMap asks for is not known here. */ -}}
{{- define "junction.setsSysctls" -}}
{{- if and .Values.sysctls.enabled (or .Values.existingConfigMap (eq "ipvs" (default "" .Values.config.mode))) -}}
yes
{{- end -}}
{{- end }}

{{- /* Not empty where Junction is known to write no rules of iptables. */ -}}
{{- define "junction.isNftables" -}}
{{- if and (not .Values.existingConfigMap) (eq "nftables" (default "" .Values.config.mode)) -}}
yes
{{- end -}}
{{- end }}

{{- define "junction.check" -}}
{{- if not (or .Values.apiServer.host .Values.existingConfigMap) -}}
{{ fail "set apiServer.host to the API server's own address (see it with: kubectl get endpointslices -n default -l kubernetes.io/service-name=kubernetes), or existingConfigMap to a ConfigMap that brings a kubeconfig. The cluster IP of the service `kubernetes` works only once a proxy runs, so that a node that boots would wait forever." }}
{{- end -}}
{{- if and .Values.metrics.podMonitor.enabled (or (hasPrefix "127." .Values.metrics.bindAddress) (eq .Values.metrics.bindAddress "::1")) -}}
{{ fail "metrics.podMonitor needs a metrics.bindAddress that Prometheus can reach, such as 0.0.0.0: nothing outside of the node reaches loopback" }}
{{- end -}}
{{- end }}
