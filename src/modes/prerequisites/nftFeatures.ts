/** Each part of nftables that our table leans on, in the words in which the table says it, and what brings it. Pure. */
import type { Element, HookSpec, Key, RuleSpec, Statement, TableSet } from '../nftables/rules/rule.ts';
import { type Family, type Ip, parseIp } from '../../model/ip.ts';
import type { Need } from './check.ts';

export interface NftFeature {
  /** In plain words: `refusing a connection before it is routed`. */
  readonly name: string;
  readonly needed: Need;
  /** Kernel modules that bring it. */
  readonly modules: readonly string[];
  /** The first kernel that has it, without what distributions brought to older ones. */
  readonly since: string;
  readonly sets: readonly TableSet[];
  readonly elements: readonly Element[];
  /** Where the rules must be allowed. */
  readonly at: HookSpec['point'];
  readonly rules: readonly RuleSpec[];
}

export const COUNTERS = 'counters of elements';

const AFFINITY: Need =
  'for Services with sessionAffinity: ClientIP, the first of which would keep all rules from being written';

const FRONTEND: Key = ['destination', 'protocol', 'port'];
const DRAWN_OF = 2;
const MARK = 0x4000;
const PORT = 65_535;
const SECONDS = 10_800;
const MOST_CLIENTS = 64;
/** Reserved for documentation: nobody has them. */
export const NOBODY: Readonly<Record<Family, Ip>> = {
  IPv4: known('198.51.100.0'),
  IPv6: known('2001:db8::'),
};

export function nftFeatures(family: Family): readonly NftFeature[] {
  const address = NOBODY[family];
  const number = family === 'IPv4' ? 4 : 6;
  const frontend = { address, protocol: 'TCP', port: PORT } as const;
  const endpoint = { ip: address, port: PORT };
  const comment = 'a trial of Junction';
  return [
    feature('sets of several fields', ['nf_tables'], '4.1', {
      sets: [{ name: 'several', key: ['address', 'protocol', 'port'], comment }],
      elements: [{ set: 'several', key: frontend, comment }],
      rules: [rule(inSet(FRONTEND, 'several'), { kind: 'drop' })],
    }),
    feature('sets of ranges', ['nf_tables'], '3.13', {
      sets: [{ name: 'ranges', key: ['address'], ranges: true }],
      rules: [rule(inSet(['destination'], 'ranges'), { kind: 'drop' })],
    }),
    feature('sets of several fields with ranges', ['nf_tables'], '5.6', {
      // The name by which the rules are known to ask for ranges.
      sets: [{ name: 'allowed', key: ['address', 'protocol', 'port', 'address'], ranges: true }],
      rules: [rule(inSet([...FRONTEND, 'source'], 'allowed', true), { kind: 'drop' })],
    }),
    feature('rewriting the destination by a map', ['nft_nat'], '4.1', {
      sets: [{ name: 'one', key: ['address', 'protocol', 'port'], data: 'endpoint' }],
      elements: [{ set: 'one', key: frontend, endpoint, comment }],
      rules: [rule({ kind: 'dnatByMap', key: FRONTEND, map: 'one' })],
    }),
    feature('drawing an endpoint at random', ['nft_numgen'], '4.9', {
      sets: [
        { name: 'drawn', key: ['address', 'protocol', 'port', { drawnOf: DRAWN_OF }], data: 'endpoint' },
      ],
      elements: [{ set: 'drawn', key: { ...frontend, index: 0 }, endpoint, comment }],
      rules: [rule({ kind: 'dnatByMap', key: [...FRONTEND, { drawnOf: DRAWN_OF }], map: 'drawn' })],
    }),
    feature('maps to chains', ['nf_tables'], '3.13', {
      sets: [{ name: 'large', key: ['address', 'protocol', 'port'], data: 'verdict' }],
      rules: [rule({ kind: 'verdictByMap', key: FRONTEND, map: 'large' })],
    }),
    feature('asking whether an address is local', [`nft_fib_ipv${number}`, 'nft_fib'], '4.10', {
      rules: (['source', 'destination'] as const).map((side) =>
        rule({ kind: 'addressType', side, not: true }, { kind: 'drop' }),
      ),
    }),
    feature('refusing a connection before it is routed', [`nft_reject_ipv${number}`, 'nft_reject'], '5.9', {
      rules: [rule({ kind: 'reject' })],
    }),
    feature('marks of packets', ['nf_tables'], '3.13', {
      rules: [rule({ kind: 'changeMark', operation: 'set', mark: MARK })],
    }),
    feature('asking connection tracking', ['nft_ct', 'nf_conntrack'], '3.13', {
      at: 'postrouting',
      rules: [rule({ kind: 'isRewritten' }, { kind: 'return' })],
    }),
    feature('masquerading with random ports', ['nft_masq'], '3.18', {
      at: 'postrouting',
      rules: [rule({ kind: 'hasMark', mark: MARK, not: false }, { kind: 'masquerade' })],
    }),
    feature(
      'remembering clients',
      ['nft_ct', 'nf_tables'],
      '4.3',
      {
        at: 'postrouting',
        sets: [
          {
            name: 'affinity',
            key: ['address', 'address', 'port'],
            data: 'endpoint',
            dynamicSize: MOST_CLIENTS,
          },
        ],
        rules: [
          rule(
            { kind: 'protocol', protocol: 'TCP' },
            {
              kind: 'learn',
              key: ['originalSource', 'originalDestination', 'originalPort'],
              map: 'affinity',
              seconds: SECONDS,
            },
          ),
        ],
      },
      AFFINITY,
    ),
    feature(
      'finding a remembered client',
      ['nft_nat', 'nf_tables'],
      '4.3',
      {
        sets: [{ name: 'clients', key: ['address', 'address', 'port'], data: 'endpoint', dynamicSize: 64 }],
        rules: [rule({ kind: 'dnatByMap', key: ['source', 'destination', 'port'], map: 'clients' })],
      },
      AFFINITY,
    ),
    feature(
      COUNTERS,
      ['nf_tables'],
      '5.7',
      {
        sets: [{ name: 'counted', key: ['address', 'protocol', 'port'], data: 'endpoint', counts: true }],
        elements: [{ set: 'counted', key: frontend, endpoint, comment }],
        rules: [rule({ kind: 'dnatByMap', key: FRONTEND, map: 'counted' })],
      },
      'for metrics that count connections by service and endpoint',
    ),
  ];
}

interface Parts {
  readonly sets?: readonly TableSet[];
  readonly elements?: readonly Element[];
  readonly at?: HookSpec['point'];
  readonly rules: readonly RuleSpec[];
}

function feature(
  name: string,
  modules: readonly string[],
  since: string,
  { sets = [], elements = [], at = 'prerouting', rules }: Parts,
  needed: Need = 'always',
): NftFeature {
  return { name, needed, modules, since, sets, elements, at, rules };
}

function rule(...statements: readonly Statement[]): RuleSpec {
  return { statements };
}

function inSet(key: Key, set: string, not = false): Statement {
  return { kind: 'inSet', key, set, not };
}

function known(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`not an address: ${text}`);
  return ip;
}
