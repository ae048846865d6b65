import { field } from '../entry.ts';
import { STRING_LIST } from '../listKinds.ts';
import { BOOL, DURATION, INT, STRING } from '../scalarKinds.ts';

const SYNC = 'how soon a failed sync is tried again, and how often rules are checked';
const REST = 'least time between two syncs';
const MASQUERADE_ALL = 'masquerade everything that goes to a cluster IP';

export const MODE = {
  title: 'Mode',
  fields: [
    field('mode', STRING, {
      default: '',
      flag: { name: 'proxy-mode' },
      choices: ['iptables', 'ipvs', 'nftables'],
      help: 'which part of the kernel does the work; empty means iptables',
    }),
  ],
  flags: [],
} as const;

export const IPTABLES = {
  title: 'iptables mode',
  intro:
    'The flags for sync periods mean the nftables mode too. With flags alone a period of 0 is possible; in a file 0 means "not set".',
  fields: [
    field('iptables.masqueradeBit', INT, {
      default: 14,
      flag: { name: 'iptables-masquerade-bit' },
      keepsZero: true,
      help: 'bit of the packet mark that means "masquerade", 0 to 31, in the modes iptables and ipvs',
    }),
    field('iptables.masqueradeAll', BOOL, {
      default: false,
      flag: { name: 'masquerade-all' },
      reload: 'live',
      help: `${MASQUERADE_ALL}; the field is for the modes iptables and ipvs, the flag for every mode`,
    }),
    field('iptables.localhostNodePorts', BOOL, {
      default: true,
      flag: { name: 'iptables-localhost-nodeports' },
      keepsZero: true,
      help: 'let node ports answer on 127.0.0.1 too; only this mode can, and only for IPv4',
    }),
    field('iptables.syncPeriod', DURATION, {
      default: 30_000,
      flag: { name: 'iptables-sync-period' },
      reload: 'live',
      help: SYNC,
    }),
    field('iptables.minSyncPeriod', DURATION, {
      default: 1000,
      flag: { name: 'iptables-min-sync-period' },
      reload: 'live',
      help: REST,
    }),
  ],
  flags: [],
} as const;

export const IPVS = {
  title: 'ipvs mode',
  fields: [
    field('ipvs.syncPeriod', DURATION, {
      default: 30_000,
      flag: { name: 'ipvs-sync-period' },
      reload: 'live',
      help: SYNC,
    }),
    field('ipvs.minSyncPeriod', DURATION, {
      default: 0,
      flag: { name: 'ipvs-min-sync-period', default: 1000 },
      reload: 'live',
      help: REST,
    }),
    field('ipvs.scheduler', STRING, {
      default: '',
      flag: { name: 'ipvs-scheduler', placeholder: 'NAME' },
      help: 'how endpoints are chosen: rr, wrr, lc, wlc, sh, dh, mh and so on, as the kernel has them; empty means rr',
    }),
    field('ipvs.excludeCIDRs', STRING_LIST, {
      default: null,
      flag: { name: 'ipvs-exclude-cidrs', placeholder: 'CIDR,…' },
      help: 'virtual servers in these ranges are never removed',
    }),
    field('ipvs.strictARP', BOOL, {
      default: false,
      flag: { name: 'ipvs-strict-arp' },
      help: 'answer ARP only for addresses of the interface asked: arp_ignore=1, arp_announce=2',
    }),
    field('ipvs.tcpTimeout', DURATION, {
      default: 0,
      flag: { name: 'ipvs-tcp-timeout' },
      help: 'after which an idle TCP connection is forgotten; 0 keeps what the system has',
    }),
    field('ipvs.tcpFinTimeout', DURATION, {
      default: 0,
      flag: { name: 'ipvs-tcpfin-timeout' },
      help: 'after which a TCP connection with a FIN is forgotten; 0 keeps what the system has',
    }),
    field('ipvs.udpTimeout', DURATION, {
      default: 0,
      flag: { name: 'ipvs-udp-timeout' },
      help: 'after which an idle UDP flow is forgotten; 0 keeps what the system has',
    }),
  ],
  flags: [],
} as const;

export const NFTABLES = {
  title: 'nftables mode',
  fields: [
    field('nftables.masqueradeBit', INT, {
      default: 14,
      keepsZero: true,
      help: 'bit of the packet mark that means "masquerade", 0 to 31',
    }),
    field('nftables.masqueradeAll', BOOL, {
      default: false,
      sharesFlag: 'masquerade-all',
      reload: 'live',
      help: MASQUERADE_ALL,
    }),
    field('nftables.syncPeriod', DURATION, {
      default: 30_000,
      sharesFlag: 'iptables-sync-period',
      reload: 'live',
      help: SYNC,
    }),
    field('nftables.minSyncPeriod', DURATION, {
      default: 1000,
      sharesFlag: 'iptables-min-sync-period',
      reload: 'live',
      help: REST,
    }),
  ],
  flags: [],
} as const;
