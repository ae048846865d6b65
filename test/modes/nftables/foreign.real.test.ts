/** Rules of other programs, as nft and iptables-nft write them, and what the reader says that they do with a packet. */
import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundle } from '../../system/support/bundle.ts';
import { output } from '../../system/support/inside.ts';
import { openNamespace, requireNamespaces } from '../../system/support/namespace.ts';
import { requireNft } from './rules/requireNft.ts';

/** Prints the outcomes, with the steps of other programs, and the notes. */
const WALK = `
  import { directChannel } from './src/netlink/channel.ts';
  import { NETLINK_NETFILTER, NetlinkSocket } from './src/netlink/socket.ts';
  import { NftReader } from './src/modes/nftables/inspect.ts';
  import { NetlinkSource } from './src/modes/nftables/kernel/netlinkSource.ts';
  const packet = JSON.parse(process.argv[2]);
  const family = packet.destination.includes(':') ? 'IPv6' : 'IPv4';
  const source = new NetlinkSource(family, directChannel(NetlinkSocket.open(NETLINK_NETFILTER)));
  const reader = new NftReader({ family, source, facts: () => ({ masqueradeBit: 14, nodeIps: [] }) });
  const { outcomes, notes } = await reader.walk(packet, { addresses: ['192.0.2.10', 'fd00::10'] });
  const print = ({ kind, to, port, masqueraded, path }) => [
    [kind, ...(to ? [to + ':' + port] : []), ...(masqueraded ? ['masqueraded'] : [])].join(' '),
    ...path.map(({ hook, table, chain, text, packets, isForeign }) =>
      [isForeign ? 'theirs' : 'ours', hook, table, chain + ':', text].join(' ').replace(/packets \\d+ bytes \\d+/, 'packets N bytes N')),
  ];
  console.log(JSON.stringify([...outcomes.flatMap(print), ...notes]));`;

let script = '';
beforeAll(async () => {
  script = await bundle('nftForeign', WALK);
});
afterAll(() => rm(script));

const PACKET = {
  source: '203.0.113.9',
  destination: '10.96.0.1',
  protocol: 'TCP',
  port: 80,
  inInterface: 'eth0',
};
const IPV6 = { ...PACKET, source: '2001:db8::9', destination: 'fd00:96::1' };
const LOCAL = { ...PACKET, destination: '192.0.2.10' };
const FROM_NODE = { ...PACKET, source: '192.0.2.10', inInterface: undefined };

interface Case {
  readonly rules: string;
  readonly packet?: typeof PACKET | typeof FROM_NODE;
  readonly expected: readonly string[];
}

const chain = (hook: string, ...rules: readonly string[]): string =>
  `table inet fw { chain c { type filter hook ${hook}; ${rules.map((rule) => `${rule};`).join(' ')} } }`;
const step = (hook: string, text: string): string => `theirs filter ${hook} inet fw c: ${text}`;
const PRE = 'prerouting priority -300';

const CASES: Readonly<Record<string, Case>> = {
  'nothing at all': { rules: 'table ip empty { }', expected: ['pass'] },
  'a drop before everything': {
    rules: chain(PRE, 'tcp dport 80 counter drop'),
    expected: ['drop', step('prerouting', 'tcp dport 80 counter packets N bytes N drop')],
  },
  'another port': { rules: chain(PRE, 'tcp dport 81 drop'), expected: ['pass'] },
  'another protocol': { rules: chain(PRE, 'udp dport 80 drop', 'ip6 daddr ::/0 drop'), expected: ['pass'] },
  'a hook that the packet does not pass': {
    rules: chain('input priority 0', 'drop') + chain('output priority 0', 'drop').replace('fw', 'fw2'),
    expected: ['pass'],
  },
  'a policy': {
    rules:
      'table ip fw { chain c { type filter hook forward priority 0; policy drop; tcp dport 443 accept; } }',
    expected: ['drop', 'theirs filter forward ip fw c: policy drop'],
  },
  'an accept is of its chain alone': {
    rules: `${chain('forward priority -10', 'accept')} table ip late { chain c { type filter hook forward priority 10; reject; } }`,
    expected: ['reject', step('forward', 'accept'), 'theirs filter forward ip late c: reject'],
  },
  'the node itself': {
    rules: chain('input priority 0', 'ct state established,related accept', 'ct state new drop'),
    packet: LOCAL,
    expected: ['drop', step('input', 'ct state new drop')],
  },
  'what the node sends': {
    rules: chain('output priority 0', 'ip daddr 10.96.0.0/12 reject with icmp type host-unreachable'),
    packet: FROM_NODE,
    expected: ['reject', step('output', 'ip daddr 10.96.0.0/12 reject with icmp code 1')],
  },
  'networks and addresses': {
    rules: chain(
      PRE,
      'ip saddr 203.0.113.16/28 drop',
      'ip saddr != 203.0.112.0/23 drop',
      'ip saddr 203.0.113.9 drop',
    ),
    expected: ['drop', step('prerouting', 'ip saddr 203.0.113.9 drop')],
  },
  ranges: {
    rules: chain(PRE, 'tcp dport != 79-81 drop', 'tcp dport 90-99 drop', 'tcp dport 70-80 drop'),
    expected: ['drop', step('prerouting', 'tcp dport 70-80 drop')],
  },
  'a set of its own': {
    rules: chain(PRE, 'tcp dport { 22, 80 } drop'),
    expected: ['drop', step('prerouting', 'tcp dport @__set0 drop')],
  },
  'a set of intervals, within and without': {
    rules: `table inet fw {
      set blocked { type ipv4_addr; flags interval; elements = { 198.51.100.0/24, 203.0.113.0-203.0.113.20 } }
      chain c { type filter hook prerouting priority -300; ip daddr @blocked reject; ip saddr @blocked drop; } }`,
    expected: ['drop', step('prerouting', 'ip saddr @blocked drop')],
  },
  'a concatenation of intervals': {
    rules: `table inet fw {
      set blocked { type ipv4_addr . inet_service; flags interval; elements = { 203.0.113.0/24 . 443, 203.0.0.0/16 . 70-90 } }
      chain c { type filter hook prerouting priority -300; ip saddr . tcp dport @blocked drop; } }`,
    expected: ['drop', step('prerouting', 'ip saddr . tcp dport @blocked drop')],
  },
  'a map of verdicts, and chains': {
    rules: `table inet fw {
      chain web { ip saddr 10.0.0.0/8 return; goto last; }
      chain last { drop; }
      chain c { type filter hook prerouting priority -300; tcp dport vmap { 22 : accept, 80 : jump web }; } }`,
    expected: [
      'drop',
      step('prerouting', 'tcp dport vmap @__map0'),
      'theirs filter prerouting inet fw web: goto last',
      'theirs filter prerouting inet fw last: drop',
    ],
  },
  'all others': {
    rules: chain(PRE, 'tcp dport vmap { 22 : accept, * : drop }'),
    expected: ['drop', step('prerouting', 'tcp dport vmap @__map0')],
  },
  'what changes a packet or a connection, and nothing else': {
    rules: chain(PRE, 'meta nftrace set 1 ct mark set 7 ip ttl set 64 accept').replace(
      'chain c',
      'chain d { type filter hook forward priority 0; tcp flags syn tcp option maxseg size set rt mtu; } chain c',
    ),
    expected: ['pass', step('prerouting', '[meta] [ct] meta nfproto ipv4 [payload] accept')],
  },
  'a redirection is noted': {
    rules:
      'table ip n { chain c { type nat hook prerouting priority -110; udp dport 80 redirect to :8080; tcp dport 80 redirect to :8080; } }',
    expected: ['pass', 'not evaluated, taken as no match: ip n c: tcp dport 80 [redir]'],
  },
  interfaces: {
    rules: chain(PRE, 'iifname "lo" drop', 'iifname { "wg0", "wg1" } drop', 'iifname "eth*" drop'),
    expected: ['drop', step('prerouting', 'iifname "eth*" drop')],
  },
  'an interface that is not known is noted': {
    rules: chain(
      'forward priority 0',
      'tcp dport 81 oifname "cni0" drop',
      'oifname "cni0" drop',
      'ip saddr 203.0.113.9 reject',
    ),
    expected: [
      'reject',
      step('forward', 'ip saddr 203.0.113.9 reject'),
      'not evaluated, taken as no match: inet fw c: oifname "cni0" drop',
    ],
  },
  'a rate is noted': {
    rules: chain(PRE, 'udp dport 80 limit rate 5/second drop', 'tcp dport 80 limit rate 5/second drop'),
    expected: ['pass', 'not evaluated, taken as no match: inet fw c: tcp dport 80 [limit] drop'],
  },
  'a log is none': {
    rules: chain(PRE, 'limit rate 5/second log prefix "x"', 'log prefix "dropped: " drop'),
    expected: ['drop', step('prerouting', 'log drop')],
  },
  'a mark that an earlier chain set': {
    rules: `${chain(PRE, 'meta mark set 0x10')} table ip late { chain c { type filter hook forward priority 10; meta mark & 0xf0 == 0x10 drop; } }`,
    expected: [
      'drop',
      step('prerouting', 'meta mark set 0x00000010'),
      'theirs filter forward ip late c: meta mark & 0x000000f0 == 0x00000010 drop',
    ],
  },
  'kinds of addresses': {
    rules: chain(
      PRE,
      'fib daddr type local drop',
      'fib saddr type multicast drop',
      'fib daddr type != { local, broadcast } drop',
    ),
    expected: ['drop', step('prerouting', 'fib daddr type != @__set0 drop')],
  },
  'flags of TCP': {
    rules: chain(PRE, 'tcp flags & (fin|syn|rst|ack) != syn drop', 'tcp flags syn drop'),
    expected: ['drop', step('prerouting', 'tcp flags & 0x02 != 0x00 drop')],
  },
  'families and protocols': {
    rules: chain(
      PRE,
      'meta nfproto ipv6 drop',
      'meta protocol ip6 drop',
      'ip protocol udp drop',
      'meta l4proto { tcp, udp } drop',
    ),
    expected: ['drop', step('prerouting', 'meta l4proto @__set0 drop')],
  },
  'a destination that another program rewrites': {
    rules:
      'table ip n { chain c { type nat hook prerouting priority -110; tcp dport 80 dnat to 10.9.9.9:8080; } chain p { type nat hook postrouting priority 90; ip daddr 10.9.9.9 masquerade; } }',
    expected: [
      'forward 10.9.9.9:8080 masqueraded',
      'theirs nat prerouting ip n c: tcp dport 80 dnat ip to 10.9.9.9:8080',
      'theirs nat postrouting ip n p: ip daddr 10.9.9.9 masquerade',
    ],
  },
  'a filter between two nat chains comes after both': {
    rules: `table ip n { chain a { type nat hook prerouting priority -110; ip daddr 10.9.9.9 drop; } chain b { type nat hook prerouting priority -20; dnat to 10.9.9.9; } }
      table ip f { chain c { type filter hook prerouting priority -50; ip daddr 10.9.9.9 reject; } }`,
    expected: [
      'reject',
      'theirs nat prerouting ip n b: dnat ip to 10.9.9.9',
      'theirs filter prerouting ip f c: ip daddr 10.9.9.9 reject',
    ],
  },
  'a packet that is not tracked is not rewritten': {
    rules: `${chain(PRE, 'notrack')} table ip n { chain a { type nat hook prerouting priority -110; drop; } }`,
    expected: ['pass', step('prerouting', 'notrack')],
  },
  'a dormant table': {
    rules: 'table ip fw { flags dormant; chain c { type filter hook forward priority 0; policy drop; } }',
    expected: ['pass'],
  },
  IPv6: {
    rules: chain(PRE, 'ip daddr 0.0.0.0/0 drop', 'ip6 saddr 2001:db8::/33 tcp dport 80 drop'),
    packet: IPV6,
    expected: ['drop', step('prerouting', 'ip6 saddr 2001:db8::/33 tcp dport 80 drop')],
  },
};

test.for(Object.entries(CASES))('%s', async ([, { rules, packet = PACKET, expected }], context) => {
  requireNamespaces(context);
  requireNft(context);
  const namespace = await openNamespace();
  try {
    // A block ends with a semicolon too.
    await output(
      namespace,
      'nft',
      rules.replaceAll(/([;}]) }/g, '$1 };').replaceAll(/\}\s*(?=table )/g, '};\n'),
    );
    const walked = await output(namespace, process.execPath, script, JSON.stringify(packet));
    expect(JSON.parse(walked)).toEqual(expected);
  } finally {
    await namespace.close();
  }
});

const OF_IPTABLES: Readonly<Record<string, Case>> = {
  'a port': {
    rules: '-A FORWARD -p tcp --dport 80 -j DROP',
    expected: ['drop', 'theirs filter forward ip filter FORWARD'],
  },
  'a policy': {
    rules: '-P FORWARD DROP',
    expected: ['drop', 'theirs filter forward ip filter FORWARD: policy drop'],
  },
  'a state, with a comment': {
    rules:
      '-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT;-A FORWARD -m comment --comment why -m conntrack ! --ctstate ESTABLISHED -j REJECT',
    expected: ['reject', 'theirs filter forward ip filter FORWARD'],
  },
  'ports and kinds of addresses': {
    rules:
      '-A FORWARD -p tcp -m multiport --dports 22,90:99 -j DROP;-A FORWARD -m addrtype --dst-type LOCAL -j DROP;-A FORWARD -p tcp -m multiport --dports 22,70:81 -m addrtype ! --dst-type LOCAL -j DROP',
    expected: ['drop', 'theirs filter forward ip filter FORWARD'],
  },
  marks: {
    rules:
      '-t mangle -A PREROUTING -j MARK --set-xmark 0x4/0xf;-A FORWARD -m mark --mark 0x8/0xc -j DROP;-A FORWARD -m mark --mark 0x4/0xc -j DROP',
    expected: [
      'drop',
      'theirs filter prerouting ip mangle PREROUTING',
      'theirs filter forward ip filter FORWARD',
    ],
  },
  'a destination': {
    rules:
      '-t nat -A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 10.9.9.9:8080;-t nat -A POSTROUTING -d 10.9.9.9 -j MASQUERADE',
    expected: [
      'forward 10.9.9.9:8080 masqueraded',
      'theirs nat prerouting ip nat PREROUTING',
      'theirs nat postrouting ip nat POSTROUTING',
    ],
  },
  'what is not evaluated': {
    rules: '-A FORWARD -m statistic --mode random --probability 0.5 -j DROP',
    expected: ['pass', 'not evaluated, taken as no match: ip filter FORWARD'],
  },
};

test.for(Object.entries(OF_IPTABLES))('iptables-nft: %s', async ([, { rules, expected }], context) => {
  requireNamespaces(context);
  requireNft(context);
  const namespace = await openNamespace();
  try {
    for (const rule of rules.split(';')) await output(namespace, 'iptables-nft', ...rule.split(' '));
    const walked = await output(namespace, process.execPath, script, JSON.stringify(PACKET));
    const lines: unknown = JSON.parse(walked);
    // Which matches are the kernel's own depends on the version of iptables.
    expect(
      Array.isArray(lines) && lines.map((line) => String(line).replace(/(?<=[A-Z]): (?!policy).*/, '')),
    ).toEqual(expected);
  } finally {
    await namespace.close();
  }
});
