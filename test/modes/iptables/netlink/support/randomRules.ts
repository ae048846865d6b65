/** Any rule that the layouts could write, of both families. */
import * as fc from 'fast-check';
import { type Cidr, type Family, type Ip, ipOfBytes, parseCidr } from '../../../../../src/model/ip.ts';
import type {
  ConntrackState,
  Match,
  Rule,
  Table,
  Target,
} from '../../../../../src/modes/iptables/rules/rule.ts';

const JUMP_CHAINS = [
  'KUBE-SVC-AAAAAAAAAAAAAAAA',
  'X',
  'KUBE-SEP-BBBBBBBBBBBBBBBB-1234'.slice(0, 28),
] as const;

const not = fc.boolean();
const u32 = fc.oneof(fc.constantFrom(0, 1, 0x4000, 0x8000_0000, 0xffff_ffff), fc.nat(0xffff_ffff));
const port = fc.oneof(fc.constantFrom(0, 80, 65_535), fc.nat(65_535));
const NAME = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.';
const name = (maxLength: number, minLength = 1): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...NAME), minLength, maxLength }).map((text) => `n${text.slice(1)}`);
const comment = fc
  .string({ unit: fc.constantFrom(...NAME, ..."/:;,>[]'+= "), minLength: 1, maxLength: 255 })
  .filter((text) => text.trim() === text);

function ip(family: Family): fc.Arbitrary<Ip> {
  const length = family === 'IPv4' ? 4 : 16;
  // An IPv4 address inside an IPv6 one is the IPv4 address, and belongs to the other family.
  return fc
    .uint8Array({ minLength: length, maxLength: length })
    .map((bytes) => ipOfBytes(family === 'IPv6' ? Uint8Array.of(0xfd, ...bytes.subarray(1)) : bytes) as Ip);
}

function cidr(family: Family): fc.Arbitrary<Cidr | Ip> {
  const longest = family === 'IPv4' ? 32 : 128;
  const prefix = fc.oneof(fc.constantFrom(8, 16, 24, longest), fc.integer({ min: 1, max: longest }));
  return fc.oneof(
    ip(family),
    fc.tuple(ip(family), prefix).map(([each, bits]) => parseCidr(`${each}/${bits}`) as Cidr),
  );
}

const STATES: readonly ConntrackState[] = [
  'NEW',
  'ESTABLISHED',
  'RELATED',
  'INVALID',
  'DNAT',
  'SNAT',
  'UNTRACKED',
];

/** In no order; those of one rule only. */
function otherMatches(): fc.Arbitrary<Match> {
  return fc.oneof(
    comment.map((text): Match => ({ kind: 'comment', text })),
    fc
      .record({ side: fc.constantFrom('src', 'dst'), not })
      .map((each): Match => ({ kind: 'addressType', type: 'LOCAL', ...each })),
    fc
      .record({ states: fc.subarray([...STATES], { minLength: 1 }), not })
      .map((each): Match => ({ kind: 'conntrackState', ...each })),
    fc.record({ value: u32, mask: u32, not }).map((each): Match => ({ kind: 'mark', ...each })),
    fc
      .nat(10_000_000_000)
      .map((part): Match => ({ kind: 'statistic', probability: (part / 10_000_000_000).toFixed(10) })),
    name(28, 7).map((each): Match => ({ kind: 'recentSet', name: each })),
    fc
      .record({ name: name(28, 7), seconds: fc.integer({ min: 1, max: 0x7fff_ffff }), reap: fc.boolean() })
      .map((each): Match => ({ kind: 'recentCheck', ...each })),
    not.map((each): Match => ({ kind: 'physdevIsIn', not: each })),
  );
}

function header(family: Family): fc.Arbitrary<readonly Match[]> {
  const address = (kind: 'source' | 'destination'): fc.Arbitrary<Match> =>
    fc.record({ cidr: cidr(family), not }).map((each): Match => ({ kind, ...each }));
  const inInterface = fc
    .record({
      name: fc.oneof(
        name(15),
        name(14).map((text) => `${text}+`),
      ),
      not,
    })
    .map((each): Match => ({ kind: 'inInterface', ...each }));
  const maybe = (each: fc.Arbitrary<Match>): fc.Arbitrary<readonly Match[]> =>
    fc.option(each).map((match) => (match ? [match] : []));
  return fc
    .tuple(maybe(address('source')), maybe(address('destination')), maybe(inInterface))
    .map((parts) => parts.flat());
}

const protocol: fc.Arbitrary<readonly Match[]> = fc
  .tuple(fc.constantFrom('tcp', 'udp', 'sctp'), fc.constantFrom('none', 'bare', 'module', 'port'), port)
  .map(([of, how, number]) => {
    if (how === 'none') return [];
    if (how === 'bare') return [{ kind: 'protocol', protocol: of, bare: true }];
    const module: Match = { kind: 'protocol', protocol: of };
    return how === 'module' ? [module] : [module, { kind: 'destinationPort', port: number }];
  });

function target(family: Family, table: Table): fc.Arbitrary<Target | undefined> {
  const everywhere: fc.Arbitrary<Target | undefined>[] = [
    fc.constant(undefined),
    fc.constantFrom<Target>({ kind: 'accept' }, { kind: 'return' }),
    fc.constantFrom(...JUMP_CHAINS).map((chain): Target => ({ kind: 'jump', chain })),
    fc
      .record({ operation: fc.constantFrom('or', 'xor', 'set'), value: u32 })
      .filter(({ operation, value }) => operation === 'xor' || value !== 0)
      .map((each): Target => ({ kind: 'mark', ...each })),
  ];
  const inNat: fc.Arbitrary<Target>[] = [
    fc.boolean().map((randomFully): Target => ({ kind: 'masquerade', randomFully })),
    fc.tuple(ip(family), fc.integer({ min: 1, max: 65_535 })).map(([to, number]): Target => {
      return { kind: 'dnat', to: family === 'IPv4' ? `${to}:${number}` : `[${to}]:${number}` };
    }),
  ];
  const inFilter = [fc.constantFrom<Target>({ kind: 'drop' }, { kind: 'reject' })];
  return fc.oneof(...everywhere, ...(table === 'nat' ? inNat : inFilter));
}

/** What has a port needs a protocol that has some. */
function isTaken({ matches, target: to }: Rule): boolean {
  return to?.kind !== 'dnat' || matches.some(({ kind }) => kind === 'protocol');
}

export function randomRule(family: Family, table: Table): fc.Arbitrary<Rule> {
  return fc
    .record({
      header: header(family),
      protocol,
      others: fc.uniqueArray(otherMatches(), { maxLength: 4, selector: ({ kind }) => kind }),
      order: fc.boolean(),
      target: target(family, table),
    })
    .map(({ order, target: to, ...parts }): Rule => {
      const matches = order
        ? [...parts.header, ...parts.protocol, ...parts.others]
        : [...parts.others, ...parts.protocol, ...parts.header];
      return { matches, target: to };
    })
    .filter(isTaken);
}
