/** Ways to install, each a set of values on top of the defaults. */
import { type Data, merge, REQUIRED } from './chart.ts';

export const VALUE_SETS: Readonly<Record<string, Data>> = {
  kubeadm: { existingConfigMap: 'kube-proxy' },
  'some nodes, own registry': merge(REQUIRED, {
    image: { repository: 'registry.example/net/junction', digest: `sha256:${'0a'.repeat(32)}` },
    imagePullSecrets: [{ name: 'registry' }],
    nodeSelector: { 'service-proxy': 'junction' },
    tolerations: [],
    resources: { limits: { memory: '512Mi' } },
  }),
  'no sysctls, nft only, SELinux': merge(REQUIRED, {
    sysctls: { enabled: false },
    capabilities: ['NET_ADMIN'],
    seLinuxOptions: { type: 'spc_t' },
    config: { iptables: { localhostNodePorts: false }, conntrack: { maxPerCore: 32768 } },
  }),
  'the ipvs mode': merge(REQUIRED, {
    config: { mode: 'ipvs', ipvs: { scheduler: 'wrr', strictARP: true, tcpTimeout: '15m' } },
    junction: { ipvsDrainLimit: '5m' },
  }),
  'the ipvs mode, sysctls by the node': merge(REQUIRED, {
    config: { mode: 'ipvs' },
    sysctls: { enabled: false },
  }),
  'the nftables mode': merge(REQUIRED, {
    config: {
      mode: 'nftables',
      nftables: { masqueradeBit: 15, syncPeriod: '1m', minSyncPeriod: '0s' },
      nodePortAddresses: ['primary'],
    },
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
  'IPv6 only': {
    apiServer: { host: 'fd00::1', port: 443 },
    config: { bindAddress: '::', clusterCIDR: 'fd00:244::/32' },
    healthz: { bindAddress: '::' },
    metrics: { bindAddress: '::1' },
  },
  'everything else': merge(REQUIRED, {
    nameOverride: 'proxy',
    healthz: { bindAddress: '127.0.0.1' },
    config: {
      conntrack: { min: 2097152 },
      clusterCIDR: '10.244.0.0/16,fd00:244::/32',
      nodePortAddresses: ['primary'],
      logging: { format: 'json', verbosity: 2 },
    },
    junction: { iptablesLayout: 'classic' },
    extraArgs: ['--v=2'],
    podAnnotations: { 'example.com/note': 'yes' },
    podLabels: { team: 'net' },
    serviceAccount: { annotations: { 'example.com/role': 'proxy' } },
  }),
};
