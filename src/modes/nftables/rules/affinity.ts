/** Session affinity in the table: its sets, chains and rules. */
import type { Family } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import { affinityMap, connectionsSet, NFT_CHAINS, SCOPE_LIST, stickyChain, stickyMap } from './names.ts';
import { byName, inSet, nftRule } from './table.ts';
import type { ChainSpec, Key, Ruleset, RuleSpec, Statement, TableSet } from './table.ts';

/*
 * Session affinity: which endpoint a known client gets, and how long its entry lasts.
 *
 * The kernel takes a time-out from the rule that adds the entry, and from nowhere else: so each time-out in use has a
 * chain. A verdict map leads there. Whatever their number, a connection to a service without affinity is one lookup that
 * misses. (A rule for each, tried in turn, cost every new connection 0.14 µs: 0.7 ms with five thousand.)
 */

/** A time-out that some service has, for one protocol. */
export interface AffinityTimeout {
  readonly protocol: Protocol;
  readonly seconds: number;
}

const CLIENT: Key = ['source', 'destination', 'port'];
const ORIGINAL_CLIENT: Key = ['originalSource', 'originalDestination', 'originalPort'];
const ORIGINAL: Key = ['originalDestination', 'originalPort'];
/** The endpoint first: with its port named before it, nft can read `ct original proto-dst` again. */
const CONNECTION: Key = ['destination', 'port', 'originalDestination', 'originalPort'];
/** Affinity entries at any one time. */
const MOST_CLIENTS = 1_000_000;

export function affinitySet(protocol: Protocol): TableSet {
  return {
    name: affinityMap(protocol),
    key: ['address', 'address', 'port'],
    data: 'endpoint',
    dynamicSize: MOST_CLIENTS,
    comment: 'client and frontend',
  };
}

export function affinitySets(timeouts: readonly AffinityTimeout[], counters: boolean): readonly TableSet[] {
  const protocols = protocolsOf(timeouts);
  return [
    ...protocols.map(affinitySet),
    ...protocols.map(
      (protocol): TableSet => ({
        name: stickyMap(protocol),
        key: ['address', 'port'],
        data: 'verdict',
        comment: 'frontends with affinity, by time-out',
      }),
    ),
    ...(counters ? connectionSets(protocols) : []).map(
      ({ name }): TableSet => ({
        name,
        key: ['address', 'port', 'address', 'port'],
        counts: true,
        comment: 'endpoint and frontend',
      }),
    ),
  ];
}

/** Node ports have a set of their own: an address of the node may be a service's too. */
function connectionSets(protocols: readonly Protocol[]): readonly { name: string; protocol: Protocol }[] {
  return protocols.flatMap((protocol) =>
    SCOPE_LIST.map((scope) => ({ name: connectionsSet(scope, protocol), protocol })),
  );
}

/** `before`: a ruleset of the same family, whose chains are used again. */
export function affinityChains(
  timeouts: readonly AffinityTimeout[],
  { family, counters }: { readonly family: Family; readonly counters: boolean },
  before: Ruleset | undefined,
): readonly ChainSpec[] {
  const known = byName(before?.chains ?? []);
  const protocols = protocolsOf(timeouts);
  const of = (protocol: Protocol, ...statements: readonly Statement[]): RuleSpec =>
    nftRule({ kind: 'protocol', protocol }, ...statements);
  return [
    ...timeouts.map((timeout) => {
      const name = stickyChain(timeout.protocol, timeout.seconds);
      return known.get(name) ?? { name, rules: [learnRule(timeout, family)] };
    }),
    {
      name: NFT_CHAINS.remembered,
      rules: protocols.map((protocol) =>
        of(protocol, { kind: 'dnatByMap', key: CLIENT, map: affinityMap(protocol) }),
      ),
    },
    {
      name: NFT_CHAINS.remember,
      rules: [
        // To be found is to be counted.
        ...(counters ? connectionSets(protocols) : []).map(({ name, protocol }) =>
          of(protocol, inSet(CONNECTION, name)),
        ),
        // nft reads `ct original proto-dst` only where a port was named before it.
        ...protocols.map((protocol) =>
          of(
            protocol,
            { kind: 'hasPort' },
            { kind: 'verdictByMap', key: ORIGINAL, map: stickyMap(protocol) },
          ),
        ),
      ],
    },
  ];
}

function protocolsOf(timeouts: readonly AffinityTimeout[]): readonly Protocol[] {
  return [...new Set(timeouts.map(({ protocol }) => protocol))];
}

/**
 * After the rewriting, when it is known where to; what was dialled is still known too.
 *
 * Of IPv6, nft could not read the line whatever stood before it: it has no registers for two addresses, a port and an
 * endpoint, and would end with a failed assertion.
 */
function learnRule({ protocol, seconds }: AffinityTimeout, family: Family): RuleSpec {
  return nftRule(
    { kind: 'protocol', protocol },
    ...(family === 'IPv4' ? [{ kind: 'hasPort' } as const] : []),
    { kind: 'learn', key: ORIGINAL_CLIENT, map: affinityMap(protocol), seconds },
  );
}
