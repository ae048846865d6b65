/** What `/configz` of kube-proxy 1.36 shows for a node with few settings, in each mode. The order of keys counts. */
const COMMON_FLAGS = [
  '--kubeconfig=/path/to/kubeconfig',
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
  '--conntrack-max-per-core=0',
  '--conntrack-min=0',
  '--v=1',
];

const USED = { syncPeriod: '30s', minSyncPeriod: '1s' };
const UNUSED = { syncPeriod: '0s', minSyncPeriod: '0s' };

export interface Shape {
  readonly argv: readonly string[];
  readonly json: object;
}

export function shapeOf(mode: 'iptables' | 'ipvs' | 'nftables'): Shape {
  return { argv: [...COMMON_FLAGS, `--proxy-mode=${mode}`], json: { 'kubeproxy.config.k8s.io': body(mode) } };
}

function body(mode: string): object {
  return {
    kind: 'KubeProxyConfiguration',
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    clientConnection: {
      kubeconfig: '/path/to/kubeconfig',
      acceptContentTypes: '',
      contentType: 'application/vnd.kubernetes.protobuf',
      qps: 5,
      burst: 10,
    },
    logging: {
      format: 'text',
      flushFrequency: '5s',
      verbosity: 1,
      options: { text: { infoBufferSize: '0' }, json: { infoBufferSize: '0' } },
    },
    hostnameOverride: 'node1',
    bindAddress: '0.0.0.0',
    healthzBindAddress: '0.0.0.0:10256',
    metricsBindAddress: '127.0.0.1:10249',
    bindAddressHardFail: false,
    enableProfiling: false,
    showHiddenMetricsForVersion: '',
    mode,
    iptables: {
      masqueradeBit: 14,
      masqueradeAll: false,
      localhostNodePorts: true,
      ...(mode === 'iptables' ? USED : UNUSED),
    },
    ipvs: {
      ...(mode === 'ipvs' ? USED : UNUSED),
      scheduler: '',
      excludeCIDRs: null,
      strictARP: false,
      tcpTimeout: '0s',
      tcpFinTimeout: '0s',
      udpTimeout: '0s',
    },
    nftables: { masqueradeBit: 14, masqueradeAll: false, ...(mode === 'nftables' ? USED : UNUSED) },
    winkernel: {
      networkName: '',
      sourceVip: '',
      enableDSR: false,
      rootHnsEndpointName: '',
      forwardHealthCheckVip: false,
    },
    detectLocalMode: 'ClusterCIDR',
    detectLocal: { bridgeInterface: '', interfaceNamePrefix: '' },
    clusterCIDR: '10.244.0.0/16,fd00:244::/32',
    nodePortAddresses: mode === 'nftables' ? ['primary'] : null,
    oomScoreAdj: -999,
    conntrack: {
      maxPerCore: 0,
      min: 0,
      tcpEstablishedTimeout: '24h0m0s',
      tcpCloseWaitTimeout: '1h0m0s',
      tcpBeLiberal: false,
      udpTimeout: '0s',
      udpStreamTimeout: '0s',
    },
    configSyncPeriod: '15m0s',
    portRange: '',
  };
}
