/** Rules of every kind that Junction writes, each with the text that it must become. */
import type { Rule, Table } from '../../../../src/modes/iptables/rules/rule.ts';
import { hostCidr, parseCidr, parseIp, type Cidr, type Ip } from '../../../../src/model/ip.ts';

export function ip(text: string): Ip {
  const parsed = parseIp(text);
  if (parsed === undefined) throw new Error(`not an address: ${text}`);
  return parsed;
}

export function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (parsed === undefined) throw new Error(`not a CIDR: ${text}`);
  return parsed;
}

export interface Sample {
  readonly table: Table;
  readonly text: string;
  readonly rule: Rule;
  /** Cannot be loaded without something else in the kernel. */
  readonly needs?: string;
}

const MARK = 0x4000;
const PORTAL = 'KUBE-SVC-AAAAAAAAAAAAAAAA';
const LIST = 'KUBE-SEP-BBBBBBBBBBBBBBBB';

const portal: Rule = {
  matches: [
    { kind: 'comment', text: 'farm/barn:http cluster IP' },
    { kind: 'protocol', protocol: 'tcp' },
    { kind: 'destination', cidr: ip('10.96.1.1'), not: false },
    { kind: 'destinationPort', port: 80 },
  ],
  target: { kind: 'jump', chain: PORTAL },
};

export const SAMPLES: readonly Sample[] = [
  {
    table: 'nat',
    text: `-m comment --comment "farm/barn:http cluster IP" -m tcp -p tcp -d 10.96.1.1 --dport 80 -j ${PORTAL}`,
    rule: portal,
  },
  {
    table: 'nat',
    text: `-m comment --comment "farm/barn:http cluster IP" -m tcp -p tcp -d 10.96.1.1 --dport 80 ! -s 10.244.0.0/16 -j ${PORTAL}`,
    rule: {
      ...portal,
      matches: [...portal.matches, { kind: 'source', cidr: cidr('10.244.0.0/16'), not: true }],
    },
  },
  {
    table: 'nat',
    text: '-m comment --comment farm/barn:http -m sctp -p sctp --dport 30080 -j ACCEPT',
    rule: {
      matches: [
        { kind: 'comment', text: 'farm/barn:http' },
        { kind: 'protocol', protocol: 'sctp' },
        { kind: 'destinationPort', port: 30080 },
      ],
      target: { kind: 'accept' },
    },
  },
  {
    table: 'nat',
    text: '-p udp -m comment --comment bare -j RETURN',
    rule: {
      matches: [
        { kind: 'protocol', protocol: 'udp', bare: true },
        { kind: 'comment', text: 'bare' },
      ],
      target: { kind: 'return' },
    },
  },
  {
    table: 'nat',
    text: `-m comment --comment farm/barn -m recent --name ${LIST} --set -m udp -p udp -j DNAT --to-destination 10.244.1.9:53`,
    rule: {
      matches: [
        { kind: 'comment', text: 'farm/barn' },
        { kind: 'recentSet', name: LIST },
        { kind: 'protocol', protocol: 'udp' },
      ],
      target: { kind: 'dnat', to: '10.244.1.9:53' },
    },
  },
  {
    table: 'nat',
    text: `-m recent --name ${LIST} --rcheck --seconds 10800 --reap -j ${PORTAL}`,
    rule: {
      matches: [{ kind: 'recentCheck', name: LIST, seconds: 10800, reap: true }],
      target: { kind: 'jump', chain: PORTAL },
    },
  },
  {
    table: 'nat',
    text: `-m recent --name ${LIST} --rcheck --seconds 60 -j ${PORTAL}`,
    rule: {
      matches: [{ kind: 'recentCheck', name: LIST, seconds: 60, reap: false }],
      target: { kind: 'jump', chain: PORTAL },
    },
  },
  ...['0.5000000000', '0.3333333333', '0.1666666667', '0.0004882812', '0.0000099999', '1.0000000000'].map(
    (probability): Sample => ({
      table: 'nat',
      text: `-m statistic --mode random --probability ${probability} -j ${PORTAL}`,
      rule: { matches: [{ kind: 'statistic', probability }], target: { kind: 'jump', chain: PORTAL } },
    }),
  ),
  {
    table: 'nat',
    text: '-m mark ! --mark 0x00004000/0x00004000 -j RETURN',
    rule: {
      matches: [{ kind: 'mark', value: MARK, mask: MARK, not: true }],
      target: { kind: 'return' },
    },
  },
  {
    table: 'nat',
    text: '-j MARK --xor-mark 0x00004000',
    rule: { matches: [], target: { kind: 'mark', operation: 'xor', value: MARK } },
  },
  {
    table: 'nat',
    text: '-j MARK --or-mark 0x80000000',
    rule: { matches: [], target: { kind: 'mark', operation: 'or', value: 1 << 31 } },
  },
  {
    table: 'nat',
    text: '-j MARK --set-xmark 0x00008000/0x00008000',
    rule: { matches: [], target: { kind: 'mark', operation: 'set', value: 0x8000 } },
  },
  {
    table: 'nat',
    text: '-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    rule: {
      matches: [{ kind: 'comment', text: 'kubernetes service traffic requiring SNAT' }],
      target: { kind: 'masquerade', randomFully: true },
    },
  },
  {
    table: 'nat',
    text: '-j MASQUERADE',
    rule: { matches: [], target: { kind: 'masquerade', randomFully: false } },
  },
  {
    table: 'nat',
    text: '-m comment --comment "farm/barn; NOTE: [last], a -> b" -m addrtype --dst-type LOCAL ! -d 127.0.0.0/8 -j ACCEPT',
    rule: {
      matches: [
        { kind: 'comment', text: 'farm/barn; NOTE: [last], a -> b' },
        { kind: 'addressType', side: 'dst', type: 'LOCAL', not: false },
        { kind: 'destination', cidr: cidr('127.0.0.0/8'), not: true },
      ],
      target: { kind: 'accept' },
    },
  },
  {
    table: 'nat',
    text: '-m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -j ACCEPT',
    rule: {
      matches: [
        { kind: 'physdevIsIn', not: true },
        { kind: 'addressType', side: 'src', type: 'LOCAL', not: true },
      ],
      target: { kind: 'accept' },
    },
  },
  {
    table: 'filter',
    text: '-m physdev --physdev-is-in -i cali+ -j ACCEPT',
    rule: {
      matches: [
        { kind: 'physdevIsIn', not: false },
        { kind: 'inInterface', name: 'cali+', not: false },
      ],
      target: { kind: 'accept' },
    },
  },
  {
    table: 'filter',
    text: '-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT ! -i br0 -s 192.0.2.7/32 -j DROP',
    rule: {
      matches: [
        { kind: 'conntrackState', states: ['RELATED', 'ESTABLISHED', 'DNAT'], not: true },
        { kind: 'inInterface', name: 'br0', not: true },
        { kind: 'source', cidr: hostCidr(ip('192.0.2.7')), not: false },
      ],
      target: { kind: 'drop' },
    },
  },
  {
    table: 'filter',
    text: '-m conntrack --ctstate UNTRACKED,SNAT,DNAT,INVALID,NEW -m mark --mark 0x0000000f/0xffffffff',
    rule: {
      matches: [
        { kind: 'conntrackState', states: ['UNTRACKED', 'SNAT', 'DNAT', 'INVALID', 'NEW'], not: false },
        { kind: 'mark', value: 0xf, mask: 0xffff_ffff, not: false },
      ],
      target: undefined,
    },
  },
  {
    table: 'filter',
    text: '-s 0.0.0.0/0 -j REJECT',
    rule: {
      matches: [{ kind: 'source', cidr: cidr('0.0.0.0/0'), not: false }],
      target: { kind: 'reject' },
    },
  },
  {
    table: 'filter',
    text: '-m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP',
    rule: {
      matches: [{ kind: 'nfacct', name: 'ct_state_invalid_dropped_pkts' }],
      target: { kind: 'drop' },
    },
    needs: 'an nfacct object of that name',
  },
  {
    table: 'filter',
    text: '-m set --match-set some-set dst,dst -j ACCEPT',
    rule: {
      matches: [{ kind: 'set', name: 'some-set', sides: ['dst', 'dst'] }],
      target: { kind: 'accept' },
    },
    needs: 'an ipset of that name',
  },
  {
    table: 'filter',
    text: '-m ipvs --vaddr 203.0.113.23 --vproto tcp --vport 80 -j DROP',
    rule: {
      matches: [{ kind: 'virtualServer', protocol: 'tcp', address: ip('203.0.113.23'), port: 80 }],
      target: { kind: 'drop' },
    },
    needs: 'the match module ipvs',
  },
  { table: 'filter', text: '', rule: { matches: [], target: undefined } },
];

/** The same rule for IPv6. */
export function toIpv6(sample: Sample): Sample {
  const text = translate(sample.text);
  const matches = sample.rule.matches.map((match) =>
    match.kind === 'source' || match.kind === 'destination'
      ? { ...match, cidr: match.cidr.includes('/') ? cidr(translate(match.cidr)) : ip(translate(match.cidr)) }
      : match,
  );
  const { target } = sample.rule;
  const rule: Rule = {
    matches,
    target: target?.kind === 'dnat' ? { ...target, to: translate(target.to) } : target,
  };
  return { ...sample, text, rule };
}

const IPV6: Readonly<Record<string, string>> = {
  '10.96.1.1': 'fd00:96::1',
  '10.244.0.0/16': 'fd00:244::/64',
  '10.244.1.9:53': '[fd00:244::9]:53',
  '127.0.0.0/8': '::1/128',
  '192.0.2.7/32': '2001:db8::7/128',
  '0.0.0.0/0': '::/0',
};

function translate(text: string): string {
  return Object.entries(IPV6).reduce((result, [from, to]) => result.replaceAll(from, to), text);
}
