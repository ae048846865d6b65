/** Ways to install, each a set of values on top of the defaults. */
import { type Data, merge, REQUIRED } from './chart.ts';

export const VALUE_SETS: Readonly<Record<string, Data>> = {
  'the ipvs mode, sysctls by the node': merge(REQUIRED, {
    config: { mode: 'ipvs', ipvs: { scheduler: 'wrr', strictARP: true, tcpTimeout: '15m' } },
    junction: { ipvsDrainLimit: '5m' },
    sysctls: { enabled: false },
  }),
  'metrics for Prometheus': merge(REQUIRED, {
    metrics: {
      bindAddress: '0.0.0.0',
      port: 20249,
      podMonitor: { enabled: true, labels: { release: 'main' } },
      prometheusRule: { enabled: true, labels: { release: 'main' } },
      dashboard: { enabled: true, namespace: 'monitoring', annotations: { grafana_folder: 'Network' } },
    },
    healthz: { port: 20256 },
  }),
  EKS: {
    existingConfigMap: 'kube-proxy-config',
    existingConfigMapKey: 'config',
    existingKubeconfig: { configMap: 'kube-proxy' },
    cleanup: { onUninstall: 'always' },
  },
  'a kubeconfig in a Secret': {
    existingKubeconfig: { secret: 'proxy', key: 'value.conf' },
    config: { clientConnection: { qps: 20 } },
    modules: { mount: false },
  },
  k3s: {
    existingKubeconfig: {
      hostPath: '/var/lib/rancher/k3s/agent/kubeproxy.kubeconfig',
      hostFiles: ['/var/lib/rancher/k3s/agent/client-kube-proxy.crt'],
    },
    config: { mode: 'nftables' },
  },
  'own affinity, environment and volumes': merge(REQUIRED, {
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: 'pool', operator: 'In', values: ['a', 'b'] }] },
            { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node1'] }] },
          ],
        },
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 1, preference: { matchExpressions: [{ key: 'pool', operator: 'Exists' }] } },
        ],
      },
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'other' } } },
        ],
      },
    },
    extraEnv: [
      { name: 'HTTPS_PROXY', value: 'http://proxy.example:3128' },
      { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'token', key: 'token' } } },
    ],
    extraVolumes: [{ name: 'certificates', secret: { secretName: 'certificates' } }],
    extraVolumeMounts: [{ name: 'certificates', mountPath: '/etc/certificates', readOnly: true }],
    junction: { iptablesVariant: 'nft' },
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
  }),
  'IPv6 only, own registry, and all else': {
    nameOverride: 'proxy',
    image: { repository: 'registry.example/net/junction', digest: `sha256:${'0a'.repeat(32)}` },
    imagePullSecrets: [{ name: 'registry' }],
    apiServer: { host: 'fd00::1', port: 443 },
    nodeSelector: { 'service-proxy': 'junction' },
    tolerations: [],
    resources: { limits: { memory: '512Mi' } },
    capabilities: ['NET_ADMIN'],
    seLinuxOptions: { type: 'spc_t' },
    config: {
      bindAddress: '::',
      clusterCIDR: 'fd00:244::/32',
      conntrack: { min: 2097152 },
      iptables: { localhostNodePorts: false },
      nodePortAddresses: ['primary'],
      logging: { format: 'json', verbosity: 2 },
    },
    healthz: { bindAddress: '::1' },
    metrics: { bindAddress: '::1' },
    junction: { iptablesLayout: 'classic' },
    extraArgs: ['--v=2'],
    podAnnotations: { 'example.com/note': 'yes' },
    podLabels: { team: 'net' },
    serviceAccount: { annotations: { 'example.com/role': 'proxy' } },
  },
};
