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

{{- define "junction.configFile" -}}
/var/lib/kube-proxy/{{ if .Values.existingConfigMap }}{{ default "config.conf" .Values.existingConfigMapKey }}{{ else }}config.conf{{ end }}
{{- end }}

{{- /* The kubeconfig, as the container sees it; empty: the pod's own service account. */ -}}
{{- define "junction.kubeconfigPath" -}}
{{- $from := default dict .Values.existingKubeconfig -}}
{{- if get $from "hostPath" -}}
{{ get $from "hostPath" }}
{{- else if or (get $from "secret") (get $from "configMap") -}}
{{ printf "/var/lib/kube-proxy/%s" (default "kubeconfig" (get $from "key")) }}
{{- end -}}
{{- end }}

{{- define "junction.configVolume" -}}
{{- $from := default dict .Values.existingKubeconfig -}}
{{- if or (get $from "secret") (get $from "configMap") -}}
projected:
  sources:
    - configMap:
        name: {{ include "junction.configMapName" . }}
    {{- if get $from "secret" }}
    - secret:
        name: {{ get $from "secret" }}
    {{- else }}
    - configMap:
        name: {{ get $from "configMap" }}
    {{- end }}
        items:
          - key: {{ default "kubeconfig" (get $from "key") }}
            path: {{ default "kubeconfig" (get $from "key") }}
{{- else -}}
configMap:
  name: {{ include "junction.configMapName" . }}
{{- end -}}
{{- end }}

{{- /* Terms of node affinity are alternatives, so each of them has to say Linux. */ -}}
{{- define "junction.affinity" -}}
{{- $affinity := default dict .Values.affinity -}}
{{- $node := default dict (get $affinity "nodeAffinity") -}}
{{- $required := default dict (get $node "requiredDuringSchedulingIgnoredDuringExecution") -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      {{- range default (list dict) (get $required "nodeSelectorTerms") }}
      - matchExpressions:
          - key: kubernetes.io/os
            operator: In
            values: [linux]
          {{- with get . "matchExpressions" }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
        {{- with get . "matchFields" }}
        matchFields:
          {{- toYaml . | nindent 10 }}
        {{- end }}
      {{- end }}
  {{- with get $node "preferredDuringSchedulingIgnoredDuringExecution" }}
  preferredDuringSchedulingIgnoredDuringExecution:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- with omit $affinity "nodeAffinity" }}
{{ toYaml . }}
{{- end }}
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
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What the mode needs, as far as it is known. The legacy variant of iptables opens a raw socket, and so does the match `set`,
which the ipvs mode uses, in both variants. */ -}}
{{- define "junction.capabilities" -}}
{{- $variant := get (default dict .Values.junction) "iptablesVariant" -}}
{{- if .Values.capabilities -}}
{{ toYaml .Values.capabilities }}
{{- else if or (include "junction.isNftables" .) (and (not .Values.existingConfigMap) (ne "ipvs" (default "" .Values.config.mode)) (eq "nft" (default "" $variant))) -}}
- NET_ADMIN
{{- else -}}
- NET_ADMIN
- NET_RAW
{{- end -}}
{{- end }}

{{- define "junction.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  add:
    {{- include "junction.capabilities" . | nindent 4 }}
{{- end }}

{{- define "junction.volumeMounts" -}}
- name: config
  mountPath: /var/lib/kube-proxy
  readOnly: true
{{- if not (include "junction.isNftables" .) }}
- name: xtables-lock
  mountPath: /run/xtables.lock
{{- end }}
{{- if include "junction.mountsModules" . }}
- name: modules
  mountPath: /lib/modules
  readOnly: true
{{- end }}
- name: tmp
  mountPath: /tmp
- name: state
  mountPath: /run/junction
{{- $from := default dict .Values.existingKubeconfig }}
{{- with get $from "hostPath" }}
{{- range $index, $path := concat (list .) (default list (get $from "hostFiles")) }}
- name: node-file-{{ $index }}
  mountPath: {{ $path | quote }}
  readOnly: true
{{- end }}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
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
{{- $from := default dict .Values.existingKubeconfig -}}
{{- if not (or .Values.apiServer.host .Values.existingConfigMap (include "junction.kubeconfigPath" .)) -}}
{{ fail "set apiServer.host to the API server's own address (see it with: kubectl get endpointslices -n default -l kubernetes.io/service-name=kubernetes), or existingKubeconfig, or existingConfigMap to a ConfigMap that brings a kubeconfig. The cluster IP of the service `kubernetes` works only once a proxy runs, so that a node that boots would wait forever." }}
{{- end -}}
{{- if or (and (get $from "secret") (get $from "configMap")) (and (get $from "hostPath") (or (get $from "secret") (get $from "configMap"))) -}}
{{ fail "existingKubeconfig: set one of secret, configMap and hostPath, not several" }}
{{- end -}}
{{- if and (get $from "hostFiles") (not (get $from "hostPath")) -}}
{{ fail "existingKubeconfig.hostFiles are the files that the kubeconfig of existingKubeconfig.hostPath names: set that one too" }}
{{- end -}}
{{- if and (include "junction.kubeconfigPath" .) (eq (include "junction.kubeconfigPath" .) (include "junction.configFile" .)) -}}
{{ fail "existingKubeconfig.key has the name of the configuration file: both are files of /var/lib/kube-proxy" }}
{{- end -}}
{{- if and (include "junction.kubeconfigPath" .) (get (default dict (get .Values.config "clientConnection")) "kubeconfig") -}}
{{ fail "config.clientConnection.kubeconfig and existingKubeconfig both say where the kubeconfig is: set one of them" }}
{{- end -}}
{{- if and .Values.capabilities (not (has "NET_ADMIN" .Values.capabilities)) -}}
{{ fail "capabilities: without NET_ADMIN Junction cannot write rules; leave the list empty for what the mode needs" }}
{{- end -}}
{{- if and .Values.metrics.podMonitor.enabled (or (hasPrefix "127." .Values.metrics.bindAddress) (eq .Values.metrics.bindAddress "::1")) -}}
{{ fail "metrics.podMonitor needs a metrics.bindAddress that Prometheus can reach, such as 0.0.0.0: nothing outside of the node reaches loopback" }}
{{- end -}}
{{- end }}

{{- /* `helm upgrade --reuse-values` brings no value that is newer than the release: this one is then missing. */ -}}
{{- define "junction.mountsModules" -}}
{{- if ne "false" (toString (get (default dict .Values.modules) "mount")) -}}
yes
{{- end -}}
{{- end }}

{{- /* Not empty where `helm uninstall` leaves the clean-up. */ -}}
{{- define "junction.cleansUp" -}}
{{- $when := default "auto" (get (default dict .Values.cleanup) "onUninstall") -}}
{{- if or (eq $when "always") (and (eq $when "auto") (include "junction.isNftables" .)) -}}
yes
{{- end -}}
{{- end }}

{{- define "junction.cleanupRights" -}}
resources:
  requests:
    cpu: 10m
    memory: 64Mi
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
    add: [NET_ADMIN]
{{- end }}
