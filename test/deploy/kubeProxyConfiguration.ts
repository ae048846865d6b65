/** The fields of kubeproxy.config.k8s.io/v1alpha1, as they are on Linux, and Junction's own section. */
import { flag, integer, list, mapOf, object, oneOf, type Shape, text } from './shape.ts';

const DURATION = /^(0|(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+)$/;

const duration: Shape = (value, path) =>
  typeof value === 'string' && DURATION.test(value)
    ? []
    : [`${path}: ${JSON.stringify(value)} is no duration`];

const sync = { syncPeriod: duration, minSyncPeriod: duration };

export const kubeProxyConfiguration: Shape = object({
  'apiVersion!': oneOf('kubeproxy.config.k8s.io/v1alpha1'),
  'kind!': oneOf('KubeProxyConfiguration'),
  bindAddress: text,
  bindAddressHardFail: flag,
  clientConnection: object({
    kubeconfig: text,
    acceptContentTypes: text,
    contentType: text,
    qps: integer,
    burst: integer,
  }),
  clusterCIDR: text,
  configSyncPeriod: duration,
  conntrack: object({
    maxPerCore: integer,
    min: integer,
    tcpBeLiberal: flag,
    tcpCloseWaitTimeout: duration,
    tcpEstablishedTimeout: duration,
    udpStreamTimeout: duration,
    udpTimeout: duration,
  }),
  detectLocal: object({ bridgeInterface: text, interfaceNamePrefix: text }),
  detectLocalMode: oneOf('', 'ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'),
  enableProfiling: flag,
  featureGates: mapOf(flag),
  healthzBindAddress: text,
  hostnameOverride: text,
  iptables: object({ masqueradeBit: integer, masqueradeAll: flag, localhostNodePorts: flag, ...sync }),
  ipvs: object({
    ...sync,
    scheduler: text,
    excludeCIDRs: list(text),
    strictARP: flag,
    tcpTimeout: duration,
    tcpFinTimeout: duration,
    udpTimeout: duration,
  }),
  junction: mapOf(() => []),
  logging: object({
    format: oneOf('text', 'json'),
    flushFrequency: duration,
    verbosity: integer,
    vmodule: list(object({ filePattern: text, verbosity: integer })),
    options: mapOf(() => []),
  }),
  metricsBindAddress: text,
  mode: oneOf('', 'iptables', 'ipvs', 'nftables'),
  nftables: object({ masqueradeBit: integer, masqueradeAll: flag, ...sync }),
  nodePortAddresses: list(text),
  oomScoreAdj: integer,
  portRange: text,
  showHiddenMetricsForVersion: text,
});
