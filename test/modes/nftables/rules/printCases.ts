/** Tables of every kind, for those who print and load them. */
import type { Family } from '../../../../src/model/ip.ts';
import type { NodeView } from '../../../../src/plan/types.ts';
import { cidr } from '../../../plan/given.ts';
import type { ServedCluster } from './served.ts';

interface PrintCase extends ServedCluster {
  readonly name: string;
  readonly family: Family;
}

/** An address of each kind, by its last number. */
interface Addresses {
  readonly clusterIP: (last: number) => string;
  readonly pod: (last: number) => string;
  readonly external: (last: number) => string;
  readonly range: string;
  readonly host: string;
}

const ADDRESSES: Readonly<Record<Family, Addresses>> = {
  IPv4: {
    clusterIP: (last) => `10.96.0.${last}`,
    pod: (last) => `10.244.0.${last}`,
    external: (last) => `198.51.100.${last}`,
    range: '203.0.113.0/24',
    host: '198.18.0.1/32',
  },
  IPv6: {
    clusterIP: (last) => `fd00:96::${last}`,
    pod: (last) => `fd00:244::${last}`,
    external: (last) => `2001:db8:1::${last}`,
    range: '2001:db8:2::/64',
    host: '2001:db8:3::1/128',
  },
};

function world(family: Family, ...sizes: readonly number[]): readonly string[] {
  const { clusterIP, pod, external, range, host } = ADDRESSES[family];
  return sizes.flatMap((size, n) => [
    `shop/s${n} ${clusterIP(n + 1)} http:80@${30_080 + n} ext=${external(n + 1)} lb=${external(n + 101)} ranges=${range},${host} ${
      n % 2 === 0 ? 'etp=Local' : ''
    } ${n % 3 === 1 ? 'affinity=10800' : ''}`,
    `shop/s${n}-1 of s${n} http:8080 ${Array.from(
      { length: size },
      (_, index) => `| ${pod(index + 1)} ${index % 2 === 0 ? 'node-a' : 'node-b'}`,
    ).join(' ')}`,
  ]);
}

const DETECTORS: readonly (readonly [string, (family: Family) => NodeView['localDetector']])[] = [
  ['no way to tell pods', () => ({ kind: 'none' })],
  ['pods of a bridge', () => ({ kind: 'interface', name: 'cni0' })],
  ['pods of interfaces with a prefix', () => ({ kind: 'interfacePrefix', prefix: 'veth' })],
  [
    'pods of a network that ends within a byte',
    (family) => ({ kind: 'cidr', cidr: cidr(family === 'IPv4' ? '10.244.0.0/14' : 'fd00:244::/33') }),
  ],
  [
    'pods of one address',
    (family) => ({ kind: 'cidr', cidr: cidr(family === 'IPv4' ? '10.244.0.1/32' : 'fd00:244::1/128') }),
  ],
];

function casesOf(family: Family): readonly PrintCase[] {
  const isFour = family === 'IPv4';
  const three = world(family, 1, 2, 3);
  return [
    { name: 'nothing', family, lines: [] },
    { name: 'small pools', family, lines: world(family, 0, 1, 2, 3, 5) },
    { name: 'without counters', family, counters: false, lines: three },
    { name: 'large pools', family, lines: world(family, 16, 17, 18, 40) },
    {
      name: 'UDP and SCTP, with affinity',
      family,
      lines: [
        `shop/dns ${ADDRESSES[family].clusterIP(1)} 53/udp@30053 affinity=60`,
        `shop/dns-1 of dns 53/udp | ${ADDRESSES[family].pod(1)} | ${ADDRESSES[family].pod(2)}`,
        `shop/sig ${ADDRESSES[family].clusterIP(2)} 80/sctp affinity=86400`,
        `shop/sig-1 of sig 80/sctp | ${ADDRESSES[family].pod(1)}`,
      ],
    },
    {
      name: 'node ports on some addresses',
      family,
      view: { nodePorts: { ranges: [cidr(isFour ? '192.0.2.0/24' : '2001:db8::/64')], loopback: false } },
      lines: three,
    },
    {
      name: 'service CIDRs',
      family,
      serviceCidrs: (isFour
        ? ['10.96.0.0/16', '10.97.0.0/16', '10.112.0.0/12']
        : ['fd00:96::/112', 'fd00:97::/108']
      ).map(cidr),
      lines: three,
    },
    ...DETECTORS.map(([name, detector]) => ({
      name,
      family,
      view: { localDetector: detector(family) },
      lines: three,
    })),
    { name: 'everybody is masqueraded', family, view: { masqueradeAll: true }, lines: three },
    { name: 'the highest mark', family, masqueradeBit: 31, lines: three },
    {
      name: 'names as long as they may be',
      family,
      lines: [
        `${'n'.repeat(63)}/${'s'.repeat(63)} ${ADDRESSES[family].clusterIP(1)} ${'p'.repeat(15)}:80`,
        `${'n'.repeat(63)}/${'s'.repeat(58)}-1 of ${'s'.repeat(63)} ${'p'.repeat(15)}:80 | ${ADDRESSES[family].pod(1)}`,
      ],
    },
  ];
}

export const PRINT_CASES: readonly PrintCase[] = [...casesOf('IPv4'), ...casesOf('IPv6')];
