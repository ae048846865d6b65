/**
 * A whole table of a service proxy, twice: as text for the program nft, and as operations of ours. In both families.
 * What the text has no words for in this version of nft is left out of it, and told apart.
 */
import { LITTLE_ENDIAN } from '../../../../src/netlink/codec.ts';
import type { BaseChain } from '../../../../src/netlink/nftables/objects.ts';
import { ElementList } from '../../../../src/netlink/nftables/elementList.ts';
import { type Expression, registerAt, wordsOf } from '../../../../src/netlink/nftables/expressions.ts';
import { rangeOf, ipBytes } from '../../../../src/netlink/inet.ts';
import type { Selector, SetSpec } from '../../../../src/netlink/nftables/setSpec.ts';
import type { NftOperation } from '../../../../src/netlink/nftables/transaction.ts';
import type { Cidr, Ip } from '../../../../src/model/ip.ts';

export type SketchFamily = 'ip' | 'ip6';

const SKETCH_TEXT = `table ip junction {
  comment "Junction: services as data"
  set service-ips { type ipv4_addr; comment "addresses of services"; elements = { 10.96.1.1, 10.96.1.2 } }
  set service-cidrs { type ipv4_addr; flags interval; }
  set masquerade-always { type ipv4_addr . inet_proto . inet_service; }
  set masquerade-others { type ipv4_addr . inet_proto . inet_service; elements = { 10.96.1.1 . tcp . 80 } }
  set masquerade-node { type ipv4_addr . inet_proto . inet_service; }
  set restricted { type ipv4_addr . inet_proto . inet_service; }
  set allowed { type ipv4_addr . inet_proto . inet_service . ipv4_addr; flags interval; elements = { 203.0.113.5 . tcp . 80 . 192.0.2.0/24 } }
  set refused { type ipv4_addr . inet_proto . inet_service; elements = { 10.96.1.2 . tcp . 80 comment "shop/empty" } }
  map any-1 { typeof ip daddr . meta l4proto . th dport : ip daddr . th dport; counter; elements = { 10.96.1.9 . tcp . 80 comment "shop/api" : 10.244.1.11 . 8080 } }
  map any-3 { typeof ip daddr . meta l4proto . th dport . numgen random mod 3 : ip daddr . th dport; counter; elements = { 10.96.1.1 . tcp . 80 . 0 : 10.244.1.11 . 8080, 10.96.1.1 . tcp . 80 . 1 : 10.244.1.12 . 8080, 10.96.1.1 . tcp . 80 . 2 : 10.244.2.11 . 8080 } }
  map ports-2 { typeof meta l4proto . th dport . numgen random mod 2 : ip daddr . th dport; counter; }
  map large { typeof ip daddr . meta l4proto . th dport : verdict; }
  map affinity-tcp { type ipv4_addr . ipv4_addr . inet_service : ipv4_addr . inet_service; size 1000000; flags dynamic,timeout; }
  set sticky-tcp-180 { type ipv4_addr . inet_service; }
  set hairpin { type ipv4_addr . ipv4_addr; }
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    jump services
  }
  chain output {
    type nat hook output priority -100; policy accept;
    jump services
  }
  chain services {
    ip daddr @service-ips goto service-addresses
    fib daddr type local ip daddr != 127.0.0.0/8 jump node-ports
  }
  chain service-addresses {
    ip daddr . meta l4proto . th dport @restricted ip daddr . meta l4proto . th dport . ip saddr != @allowed drop
    ip daddr . meta l4proto . th dport @masquerade-always meta mark set meta mark | 0x4000
    ip saddr != 10.244.0.0/16 ip daddr . meta l4proto . th dport @masquerade-others meta mark set meta mark | 0x4000
    fib saddr type local ip daddr . meta l4proto . th dport @masquerade-node meta mark set meta mark | 0x4000
    dnat ip to ip saddr . ip daddr . tcp dport map @affinity-tcp
    dnat ip to ip daddr . meta l4proto . th dport map @any-1
    dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 3 map @any-3
    ip daddr . meta l4proto . th dport vmap @large
    ip daddr . meta l4proto . th dport @refused reject
    reject
  }
  chain node-ports {
    dnat ip to meta l4proto . th dport . numgen random mod 2 map @ports-2
  }
  chain pool-1 {
    comment "a large pool"
    return comment "nothing yet"
  }
  chain input {
    type nat hook input priority 100; policy accept;
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    REMEMBER
    ip saddr . ip daddr @hairpin masquerade fully-random
    meta mark & 0x4000 == 0 return
    meta mark set meta mark ^ 0x4000
    masquerade fully-random
  }
}
add element ip junction large { 10.96.1.3 . udp . 53 comment "dns" : goto pool-1 }
add element ip junction service-cidrs { 10.96.0.0/16 }
`;

const REMEMBER =
  'meta l4proto tcp ct original ip daddr . ct original proto-dst @sticky-tcp-180 update @affinity-tcp ' +
  '{ ct original ip saddr . ct original ip daddr . ct original proto-dst timeout 180s : ip daddr . th dport }';

/** nft 1.0.6 ends with a failed assertion when it is given the rule that remembers affinity of IPv6. */
export const HAS_REMEMBER: Readonly<Record<SketchFamily, boolean>> = { ip: true, ip6: false };

export function sketchText(family: SketchFamily): string {
  if (family === 'ip') return SKETCH_TEXT.replace('REMEMBER', REMEMBER);
  return SKETCH_TEXT.replace('    REMEMBER\n', '')
    .replaceAll('ip junction', 'ip6 junction')
    .replaceAll('ipv4_addr', 'ipv6_addr')
    .replaceAll('dnat ip to', 'dnat ip6 to')
    .replaceAll(/\bip ([sd])addr/g, 'ip6 $1addr')
    .replaceAll('127.0.0.0/8', '::1')
    .replaceAll('192.0.2.0/24', '2001:db8::/32')
    .replaceAll(/\b(?:10|203)\.\d+\.\d+\.\d+(?:\/16)?\b/g, (text) => addressText('ip6', text));
}

/** The same address in the other family. */
function addressText(family: SketchFamily, text: string): string {
  if (family === 'ip') return text;
  if (text.endsWith('/16')) return text.startsWith('10.96.') ? 'fd00:96::/64' : 'fd00:244::/32';
  const [a, b, c, d] = text.split('.');
  return a === '10' ? `fd00:${b}::${c}:${d}` : `2001:db8:1::${d}`;
}

const NAT = { type: 'nat', policy: 'accept' } as const;
const MARK = 0x4000;
const LOCAL = 2;
const TCP = 6;

export function sketchOperations(
  family: SketchFamily,
  remember = HAS_REMEMBER[family],
): readonly NftOperation[] {
  const place = { family, table: 'junction' } as const;
  const isV4 = family === 'ip';
  const address = isV4 ? 'ipv4_addr' : 'ipv6_addr';
  const daddr: Selector = isV4 ? 'ip daddr' : 'ip6 daddr';
  const ip = (text: string): Ip => addressText(family, text) as Ip;
  const addressBytes = isV4 ? 4 : 16;

  const set = (spec: SetSpec): NftOperation => ({ kind: 'addSet', ...place, set: spec });
  const chain = (name: string, base?: BaseChain): NftOperation => ({
    kind: 'addChain',
    ...place,
    chain: name,
    ...(base && { base }),
  });
  const rule = (
    name: string,
    ...expressions: readonly (Expression | readonly Expression[])[]
  ): NftOperation => ({
    kind: 'addRule',
    ...place,
    chain: name,
    expressions: expressions.flat(),
  });
  const elements = (name: string, write: (list: ElementList) => void): NftOperation => {
    const list = new ElementList();
    write(list);
    return { kind: 'addElements', ...place, set: name, elements: list };
  };

  type Load = (word: number) => { readonly expressions: readonly Expression[]; readonly words: number };
  const one =
    (bytes: number, make: (into: number) => Expression): Load =>
    (word) => ({
      expressions: [make(registerAt(word))],
      words: wordsOf(bytes),
    });
  const header = (offset: number, bytes: number): Load =>
    one(bytes, (into) => ({ kind: 'payload', base: 'network', offset, bytes, into }));
  const source = header(isV4 ? 12 : 8, addressBytes);
  const destination = header(isV4 ? 16 : 24, addressBytes);
  const protocol = one(1, (into) => ({ kind: 'meta', key: 'l4proto', into }));
  const port = one(2, (into) => ({ kind: 'payload', base: 'transport', offset: 2, bytes: 2, into }));
  const random = (modulus: number): Load =>
    one(4, (into) => ({ kind: 'numgen', generator: 'random', modulus, into }));
  const original = (
    key: 'ip saddr' | 'ip daddr' | 'ip6 saddr' | 'ip6 daddr' | 'proto-dst',
    bytes: number,
  ): Load => one(bytes, (into) => ({ kind: 'ct', key, direction: 'original', into }));
  /** What nft does with a protocol among intervals, to no effect. */
  const turned: Load = (word) => {
    const register = registerAt(word);
    const turn: Expression = {
      kind: 'byteorder',
      operation: 'hton',
      from: register,
      into: register,
      bytes: 1,
      size: 2,
    };
    return { expressions: [...protocol(word).expressions, turn], words: 1 };
  };
  const load = (loads: readonly Load[], first = 0): readonly Expression[] => {
    let word = first;
    return loads.flatMap((each) => {
      const { expressions, words } = each(word);
      word += words;
      return expressions;
    });
  };

  const key = [destination, protocol, port];
  const find = (name: string, loads: readonly Load[]): readonly Expression[] => [
    ...load(loads),
    { kind: 'lookup', set: name, from: 1 },
  ];
  const findNot = (name: string, loads: readonly Load[]): readonly Expression[] => [
    ...load(loads),
    { kind: 'lookup', set: name, from: 1, isInverted: true },
  ];
  const translate = (name: string, loads: readonly Load[]): readonly Expression[] => [
    ...load(loads),
    { kind: 'lookup', set: name, from: 1, into: 1 },
    {
      kind: 'nat',
      direction: 'dnat',
      family,
      address: 1,
      port: registerAt(wordsOf(addressBytes)),
      flags: [],
    },
  ];
  const isTcp: readonly Expression[] = [
    ...load([protocol]),
    { kind: 'compare', from: 1, comparison: '==', value: Uint8Array.of(TCP) },
  ];
  const isLocal = (which: 'saddr' | 'daddr'): readonly Expression[] => [
    { kind: 'fib', of: [which], result: 'type', into: 1 },
    { kind: 'compare', from: 1, comparison: '==', value: hostNumber(LOCAL) },
  ];
  const changeMark = (mask: number, xor: number): readonly Expression[] => [
    { kind: 'meta', key: 'mark', into: 1 },
    { kind: 'bitwise', from: 1, into: 1, mask: hostNumber(mask), xor: hostNumber(xor) },
  ];
  const setMark: readonly Expression[] = [
    ...changeMark(~MARK >>> 0, MARK),
    { kind: 'set meta', key: 'mark', from: 1 },
  ];
  const different = (offset: number, value: Uint8Array): readonly Expression[] => [
    { kind: 'payload', base: 'network', offset, bytes: value.length, into: 1 },
    { kind: 'compare', from: 1, comparison: '!=', value },
  ];
  const reject: Expression = { kind: 'reject', with: 'icmp', code: isV4 ? 3 : 4 };
  const go = (verdict: 'jump' | 'goto', to: string): Expression => ({ kind: 'verdict', verdict, chain: to });

  const concatenation = { type: [address, 'inet_proto', 'inet_service'] } as const;
  const selectors: readonly Selector[] = [daddr, 'meta l4proto', 'th dport'];
  const endpoint = { typeof: [daddr, 'th dport'] } as const;
  const affinityKeyWords = 2 * wordsOf(addressBytes) + 1;
  // nft starts at a register of old, for which IPv6 leaves no room.
  const affinityDataWord = isV4 ? Math.ceil(affinityKeyWords / 4) * 4 : affinityKeyWords;
  const { first, last } = rangeOf((isV4 ? '192.0.2.0/24' : '2001:db8::/32') as Cidr);
  const services = rangeOf(ip('10.96.0.0/16') as string as Cidr);

  return [
    { kind: 'addTable', ...place, comment: 'Junction: services as data' },
    set({ name: 'service-ips', key: { type: [address] }, comment: 'addresses of services' }),
    set({ name: 'service-cidrs', key: { type: [address] }, flags: ['interval'] }),
    set({ name: 'masquerade-always', key: concatenation }),
    set({ name: 'masquerade-others', key: concatenation }),
    set({ name: 'masquerade-node', key: concatenation }),
    set({ name: 'restricted', key: concatenation }),
    set({ name: 'allowed', key: { type: [...concatenation.type, address] }, flags: ['interval'] }),
    set({ name: 'refused', key: concatenation }),
    set({ name: 'any-1', key: { typeof: selectors }, data: endpoint, counter: true }),
    set({
      name: 'any-3',
      key: { typeof: [...selectors, 'numgen random mod 3'] },
      data: endpoint,
      counter: true,
    }),
    set({
      name: 'ports-2',
      key: { typeof: ['meta l4proto', 'th dport', 'numgen random mod 2'] },
      data: endpoint,
      counter: true,
    }),
    set({ name: 'large', key: { typeof: selectors }, data: 'verdict' }),
    set({
      name: 'affinity-tcp',
      key: { type: [address, address, 'inet_service'] },
      data: { type: [address, 'inet_service'] },
      size: 1_000_000,
      flags: ['dynamic', 'timeout'],
    }),
    set({ name: 'sticky-tcp-180', key: { type: [address, 'inet_service'] } }),
    set({ name: 'hairpin', key: { type: [address, address] } }),
    chain('prerouting', { ...NAT, hook: 'prerouting', priority: -100 }),
    chain('output', { ...NAT, hook: 'output', priority: -100 }),
    chain('services'),
    chain('service-addresses'),
    chain('node-ports'),
    { kind: 'addChain', ...place, chain: 'pool-1', comment: 'a large pool' },
    chain('input', { ...NAT, hook: 'input', priority: 100 }),
    chain('postrouting', { ...NAT, hook: 'postrouting', priority: 100 }),
    rule('prerouting', go('jump', 'services')),
    rule('output', go('jump', 'services')),
    rule('services', find('service-ips', [destination]), go('goto', 'service-addresses')),
    rule(
      'services',
      isLocal('daddr'),
      different(isV4 ? 16 : 24, isV4 ? Uint8Array.of(127) : ipBytes('::1' as Ip)),
      go('jump', 'node-ports'),
    ),
    rule(
      'service-addresses',
      find('restricted', key),
      findNot('allowed', [destination, turned, port, source]),
      { kind: 'verdict', verdict: 'drop' },
    ),
    rule('service-addresses', find('masquerade-always', key), setMark),
    rule(
      'service-addresses',
      different(isV4 ? 12 : 8, isV4 ? Uint8Array.of(10, 244) : Uint8Array.of(0xfd, 0, 2, 0x44)),
      find('masquerade-others', key),
      setMark,
    ),
    rule('service-addresses', isLocal('saddr'), find('masquerade-node', key), setMark),
    rule('service-addresses', isTcp, translate('affinity-tcp', [source, destination, port])),
    rule('service-addresses', translate('any-1', key)),
    rule('service-addresses', translate('any-3', [...key, random(3)])),
    rule('service-addresses', load(key), { kind: 'lookup', set: 'large', from: 1, into: 0 }),
    rule('service-addresses', find('refused', key), reject),
    rule('service-addresses', reject),
    rule('node-ports', translate('ports-2', [protocol, port, random(2)])),
    {
      kind: 'addRule',
      ...place,
      chain: 'pool-1',
      expressions: [{ kind: 'verdict', verdict: 'return' }],
      comment: 'nothing yet',
    },
    ...(remember
      ? [
          rule(
            'postrouting',
            isTcp,
            find('sticky-tcp-180', [original(`${family} daddr`, addressBytes), original('proto-dst', 2)]),
            load([
              original(`${family} saddr`, addressBytes),
              original(`${family} daddr`, addressBytes),
              original('proto-dst', 2),
            ]),
            load([destination, port], affinityDataWord),
            {
              kind: 'dynset',
              operation: 'update',
              set: 'affinity-tcp',
              key: 1,
              data: registerAt(affinityDataWord),
              timeoutMs: 180_000,
            },
          ),
        ]
      : []),
    rule('postrouting', find('hairpin', [source, destination]), {
      kind: 'masquerade',
      flags: ['fully-random'],
    }),
    rule(
      'postrouting',
      changeMark(MARK, 0),
      { kind: 'compare', from: 1, comparison: '==', value: hostNumber(0) },
      { kind: 'verdict', verdict: 'return' },
    ),
    rule('postrouting', changeMark(0xffffffff, MARK), { kind: 'set meta', key: 'mark', from: 1 }),
    rule('postrouting', { kind: 'masquerade', flags: ['fully-random'] }),
    elements('service-ips', (list) => {
      list.begin().ip(ip('10.96.1.1')).end();
      list.begin().ip(ip('10.96.1.2')).end();
    }),
    elements('masquerade-others', (list) => list.begin().ip(ip('10.96.1.1')).protocol('TCP').port(80).end()),
    elements('allowed', (list) => {
      const frontend = ip('203.0.113.5');
      list.begin().ip(frontend).protocol('TCP').port(80).raw(first);
      list.rangeEnd().ip(frontend).protocol('TCP').port(80).raw(last).end();
    }),
    elements('refused', (list) =>
      list.begin().ip(ip('10.96.1.2')).protocol('TCP').port(80).comment('shop/empty').end(),
    ),
    elements('any-1', (list) => {
      list.begin().ip(ip('10.96.1.9')).protocol('TCP').port(80);
      list.data().ip(ip('10.244.1.11')).port(8080).comment('shop/api').end();
    }),
    elements('any-3', (list) => {
      for (const [index, text] of ['10.244.1.11', '10.244.1.12', '10.244.2.11'].entries()) {
        list.begin().ip(ip('10.96.1.1')).protocol('TCP').port(80).index(index);
        list.data().ip(ip(text)).port(8080).end();
      }
    }),
    elements('large', (list) =>
      list
        .begin()
        .ip(ip('10.96.1.3'))
        .protocol('UDP')
        .port(53)
        .verdict({ verdict: 'goto', chain: 'pool-1' })
        .comment('dns')
        .end(),
    ),
    elements('service-cidrs', (list) => {
      list.begin().raw(services.first).end();
      if (services.beyond) list.begin().raw(services.beyond).intervalEnd().end();
    }),
  ];
}

function hostNumber(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, LITTLE_ENDIAN);
  return bytes;
}
