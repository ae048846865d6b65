/** The API server, the modes, and which traffic is local. */
import { MODE_NAMES } from '../../model/mode.ts';
import { FEATURE_GATES, STRING_LIST } from '../listKinds.ts';
import { BOOL, DURATION, FLOAT, INT, STRING } from '../scalarKinds.ts';
import { field, flag } from '../setting.ts';

/** Lists are read item by item as they arrive (src/sources/api/list.ts), for which JSON is enough. */
const JSON_ONLY = 'Junction speaks JSON with the API server, whatever this says';

export const FEATURES = {
  title: 'Feature gates',
  fields: [
    field(
      'featureGates',
      FEATURE_GATES,
      {},
      {
        flag: 'feature-gates',
        omit: 'zero',
        help: 'features to switch on or off by name, such as AllowServiceExternalIPs=false',
      },
    ),
  ],
} as const;

export const API_SERVER = {
  title: 'API server',
  fields: [
    field('clientConnection.kubeconfig', STRING, '', {
      flag: 'kubeconfig',
      placeholder: 'FILE',
      help: 'kubeconfig file with the address of the API server and the credentials; without it and without --master, those that every pod has',
    }),
    field('clientConnection.acceptContentTypes', STRING, '', {
      help: 'Accept header of requests, where it should not follow from the content type',
      ignored: JSON_ONLY,
    }),
    field('clientConnection.contentType', STRING, 'application/vnd.kubernetes.protobuf', {
      flag: 'kube-api-content-type',
      help: 'content type of requests to the API server',
      ignored: JSON_ONLY,
    }),
    field('clientConnection.qps', FLOAT, 5, {
      flag: 'kube-api-qps',
      help: 'requests per second to the API server, on average',
    }),
    field('clientConnection.burst', INT, 10, {
      flag: 'kube-api-burst',
      help: 'requests to the API server that may go out at once',
    }),
  ],
  flags: [
    flag('master', STRING, '', {
      placeholder: 'URL',
      help: 'address of the API server; wins over the one in the kubeconfig file',
      worksWithFile: true,
    }),
  ],
} as const;

const SYNC = 'how soon a failed sync is tried again, and how often rules are checked';
const REST = 'least time between two syncs';
const MASQUERADE_ALL = 'masquerade everything that goes to a cluster IP';

export const MODE = {
  title: 'Mode',
  fields: [
    field('mode', STRING, '', {
      flag: 'proxy-mode',
      choices: MODE_NAMES,
      help: 'which part of the kernel does the work; empty means iptables',
    }),
  ],
} as const;

export const IPTABLES = {
  title: 'iptables mode',
  intro:
    'The flags for sync periods mean the nftables mode too. With flags alone a period of 0 is possible; in a file 0 means "not set".',
  fields: [
    field('iptables.masqueradeBit', INT, 14, {
      flag: 'iptables-masquerade-bit',
      keepsZero: true,
      help: 'bit of the packet mark that means "masquerade", 0 to 31, in the modes iptables and ipvs',
    }),
    field('iptables.masqueradeAll', BOOL, false, {
      flag: 'masquerade-all',
      reload: 'live',
      help: `${MASQUERADE_ALL}; the field is for the modes iptables and ipvs, the flag for every mode`,
    }),
    field('iptables.localhostNodePorts', BOOL, true, {
      flag: 'iptables-localhost-nodeports',
      keepsZero: true,
      help: 'let node ports answer on 127.0.0.1 too; only this mode can, and only for IPv4',
    }),
    field('iptables.syncPeriod', DURATION, 30_000, {
      flag: 'iptables-sync-period',
      reload: 'live',
      help: SYNC,
    }),
    field('iptables.minSyncPeriod', DURATION, 1000, {
      flag: 'iptables-min-sync-period',
      reload: 'live',
      help: REST,
    }),
  ],
} as const;

export const IPVS = {
  title: 'ipvs mode',
  fields: [
    field('ipvs.syncPeriod', DURATION, 30_000, { flag: 'ipvs-sync-period', reload: 'live', help: SYNC }),
    field('ipvs.minSyncPeriod', DURATION, 0, {
      flag: 'ipvs-min-sync-period',
      flagDefault: 1000,
      reload: 'live',
      help: REST,
    }),
    field('ipvs.scheduler', STRING, '', {
      flag: 'ipvs-scheduler',
      placeholder: 'NAME',
      help: 'how endpoints are chosen: rr, wrr, lc, wlc, sh, dh, mh and so on, as the kernel has them; empty means rr',
    }),
    field('ipvs.excludeCIDRs', STRING_LIST, null, {
      flag: 'ipvs-exclude-cidrs',
      placeholder: 'CIDR,…',
      help: 'virtual servers in these ranges are never removed',
    }),
    field('ipvs.strictARP', BOOL, false, {
      flag: 'ipvs-strict-arp',
      help: 'answer ARP only for addresses of the interface asked: arp_ignore=1, arp_announce=2',
    }),
    field('ipvs.tcpTimeout', DURATION, 0, {
      flag: 'ipvs-tcp-timeout',
      help: 'after which an idle TCP connection is forgotten; 0 keeps what the system has',
    }),
    field('ipvs.tcpFinTimeout', DURATION, 0, {
      flag: 'ipvs-tcpfin-timeout',
      help: 'after which a TCP connection with a FIN is forgotten; 0 keeps what the system has',
    }),
    field('ipvs.udpTimeout', DURATION, 0, {
      flag: 'ipvs-udp-timeout',
      help: 'after which an idle UDP flow is forgotten; 0 keeps what the system has',
    }),
  ],
} as const;

export const NFTABLES = {
  title: 'nftables mode',
  fields: [
    field('nftables.masqueradeBit', INT, 14, {
      keepsZero: true,
      help: 'bit of the packet mark that means "masquerade", 0 to 31',
    }),
    field('nftables.masqueradeAll', BOOL, false, {
      sharesFlag: 'masquerade-all',
      reload: 'live',
      help: MASQUERADE_ALL,
    }),
    field('nftables.syncPeriod', DURATION, 30_000, {
      sharesFlag: 'iptables-sync-period',
      reload: 'live',
      help: SYNC,
    }),
    field('nftables.minSyncPeriod', DURATION, 1000, {
      sharesFlag: 'iptables-min-sync-period',
      reload: 'live',
      help: REST,
    }),
  ],
} as const;

export const LOCAL_TRAFFIC = {
  title: 'Local traffic and node ports',
  fields: [
    field('detectLocalMode', STRING, '', {
      flag: 'detect-local-mode',
      choices: ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'],
      reload: 'live',
      help: 'how to tell traffic of pods from other traffic; empty means ClusterCIDR',
    }),
    field('detectLocal.bridgeInterface', STRING, '', {
      flag: 'pod-bridge-interface',
      placeholder: 'NAME',
      reload: 'live',
      help: 'the bridge that pods hang on, for BridgeInterface',
    }),
    field('detectLocal.interfaceNamePrefix', STRING, '', {
      flag: 'pod-interface-name-prefix',
      placeholder: 'PREFIX',
      reload: 'live',
      help: "what the names of pods' interfaces begin with, for InterfaceNamePrefix",
    }),
    field('clusterCIDR', STRING, '', {
      flag: 'cluster-cidr',
      placeholder: 'CIDR[,CIDR]',
      reload: 'live',
      help: 'addresses of pods, for ClusterCIDR: one CIDR, or one of each family',
    }),
    field('nodePortAddresses', STRING_LIST, null, {
      flag: 'nodeport-addresses',
      placeholder: 'CIDR,…|primary',
      reload: 'live',
      help: "where node ports answer: on addresses in these ranges, or on the node's primary ones; unset means everywhere, and in the nftables mode primary",
    }),
  ],
} as const;
