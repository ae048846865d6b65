/** The API server, the modes, and which traffic is local. */
import { MODE_NAMES } from '../../model/mode.ts';
import { BOOL, DURATION, FEATURE_GATES, FLOAT, INT, pointer, STRING, STRING_LIST } from '../kinds.ts';
import { field, flag } from '../setting.ts';

export const FEATURES = {
  title: 'Feature gates',
  fields: [
    field('featureGates', 'feature-gates', FEATURE_GATES, FEATURE_GATES.zero, {
      omit: 'zero',
      help: 'features to switch on or off by name, such as AllowServiceExternalIPs=false',
    }),
  ],
} as const;

export const API_SERVER = {
  title: 'API server',
  fields: [
    field('clientConnection.kubeconfig', 'kubeconfig', STRING, '', {
      placeholder: 'FILE',
      help: 'kubeconfig file with the address of the API server and the credentials; without it and without --master, those that every pod has',
    }),
    field('clientConnection.acceptContentTypes', undefined, STRING, '', {
      help: 'content types to list and watch in, the best first, where they should not follow from the content type: application/vnd.kubernetes.protobuf or application/json; JSON is always accepted',
    }),
    field(
      'clientConnection.contentType',
      'kube-api-content-type',
      STRING,
      'application/vnd.kubernetes.protobuf',
      {
        help: 'content type to list and watch in: application/vnd.kubernetes.protobuf, or anything else for JSON; events are sent as JSON',
      },
    ),
    field('clientConnection.qps', 'kube-api-qps', FLOAT, 5, {
      help: 'requests per second to the API server, on average',
    }),
    field('clientConnection.burst', 'kube-api-burst', INT, 10, {
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

const SYNC = {
  reload: 'live',
  help: 'how soon a failed sync is tried again, and how often rules are checked',
} as const;
const REST = { reload: 'live', help: 'least time between two syncs' } as const;
const MASQUERADE_ALL = 'masquerade everything that goes to a cluster IP';

export const MODE = {
  title: 'Mode',
  fields: [
    field('mode', 'proxy-mode', STRING, '', {
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
    field('iptables.masqueradeBit', 'iptables-masquerade-bit', pointer(INT), 14, {
      help: 'bit of the packet mark that means "masquerade", 0 to 31, in the modes iptables and ipvs',
    }),
    field('iptables.masqueradeAll', 'masquerade-all', BOOL, false, {
      reload: 'live',
      help: `${MASQUERADE_ALL}; the field is for the modes iptables and ipvs, the flag for every mode`,
    }),
    field('iptables.localhostNodePorts', 'iptables-localhost-nodeports', pointer(BOOL), true, {
      help: 'let node ports answer on 127.0.0.1 too; only this mode can, and only for IPv4',
    }),
    field('iptables.syncPeriod', 'iptables-sync-period', DURATION, 30_000, SYNC),
    field('iptables.minSyncPeriod', 'iptables-min-sync-period', DURATION, 1000, REST),
  ],
} as const;

export const IPVS = {
  title: 'ipvs mode',
  fields: [
    field('ipvs.syncPeriod', 'ipvs-sync-period', DURATION, 30_000, SYNC),
    field('ipvs.minSyncPeriod', 'ipvs-min-sync-period', DURATION, 0, { flagDefault: 1000, ...REST }),
    field('ipvs.scheduler', 'ipvs-scheduler', STRING, '', {
      placeholder: 'NAME',
      help: 'how endpoints are chosen: rr, wrr, lc, wlc, sh, dh, mh and so on, as the kernel has them; empty means rr',
    }),
    field('ipvs.excludeCIDRs', 'ipvs-exclude-cidrs', STRING_LIST, null, {
      placeholder: 'CIDR,…',
      help: 'virtual servers in these ranges are never removed',
    }),
    field('ipvs.strictARP', 'ipvs-strict-arp', BOOL, false, {
      help: 'answer ARP only for addresses of the interface asked: arp_ignore=1, arp_announce=2',
    }),
    field('ipvs.tcpTimeout', 'ipvs-tcp-timeout', DURATION, 0, {
      help: 'after which an idle TCP connection is forgotten; 0 keeps what the system has',
    }),
    field('ipvs.tcpFinTimeout', 'ipvs-tcpfin-timeout', DURATION, 0, {
      help: 'after which a TCP connection with a FIN is forgotten; 0 keeps what the system has',
    }),
    field('ipvs.udpTimeout', 'ipvs-udp-timeout', DURATION, 0, {
      help: 'after which an idle UDP flow is forgotten; 0 keeps what the system has',
    }),
  ],
} as const;

export const NFTABLES = {
  title: 'nftables mode',
  fields: [
    field('nftables.masqueradeBit', undefined, pointer(INT), 14, {
      help: 'bit of the packet mark that means "masquerade", 0 to 31',
    }),
    field('nftables.masqueradeAll', undefined, BOOL, false, {
      sharesFlag: 'masquerade-all',
      reload: 'live',
      help: MASQUERADE_ALL,
    }),
    field('nftables.syncPeriod', undefined, DURATION, 30_000, {
      sharesFlag: 'iptables-sync-period',
      ...SYNC,
    }),
    field('nftables.minSyncPeriod', undefined, DURATION, 1000, {
      sharesFlag: 'iptables-min-sync-period',
      ...REST,
    }),
  ],
} as const;

export const LOCAL_TRAFFIC = {
  title: 'Local traffic and node ports',
  reload: 'live',
  fields: [
    field('detectLocalMode', 'detect-local-mode', STRING, '', {
      choices: ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'],
      help: 'how to tell traffic of pods from other traffic; empty means ClusterCIDR',
    }),
    field('detectLocal.bridgeInterface', 'pod-bridge-interface', STRING, '', {
      placeholder: 'NAME',
      help: 'the bridge that pods hang on, for BridgeInterface',
    }),
    field('detectLocal.interfaceNamePrefix', 'pod-interface-name-prefix', STRING, '', {
      placeholder: 'PREFIX',
      help: "what the names of pods' interfaces begin with, for InterfaceNamePrefix",
    }),
    field('clusterCIDR', 'cluster-cidr', STRING, '', {
      placeholder: 'CIDR[,CIDR]',
      help: 'addresses of pods, for ClusterCIDR: one CIDR, or one of each family',
    }),
    field('nodePortAddresses', 'nodeport-addresses', STRING_LIST, null, {
      placeholder: 'CIDR,…|primary',
      help: "where node ports answer: on addresses in these ranges, or on the node's primary ones; unset means everywhere, and in the nftables mode primary",
    }),
  ],
} as const;
