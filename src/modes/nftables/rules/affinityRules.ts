/**
 * Session affinity: where a client goes that was here before, and who is noted down for how long.
 *
 * The kernel takes a time-out from the rule that notes an entry down, and from nowhere else: so each time-out in use has a
 * chain. A verdict map leads there. Whatever their number, a connection to a service without affinity is one lookup that
 * misses. (A rule for each, tried in turn, cost every new connection 0.14 µs: 0.7 ms with five thousand.)
 */
import type { Family } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import { affinityMap, CHAINS, connectionsSet, SCOPE_LIST, stickyChain, stickyMap } from './names.ts';
import { type Chain, inSet, type Key, rule, type Rule, type Ruleset, type TableSet } from './rule.ts';

/** A time-out that some service has, for one protocol. */
export interface AffinityTimeout {
  readonly protocol: Protocol;
  readonly seconds: number;
}

interface AffinityOptions {
  readonly family: Family;
  readonly counters: boolean;
}

const CLIENT: Key = ['source', 'destination', 'port'];
const ORIGINAL_CLIENT: Key = ['originalSource', 'originalDestination', 'originalPort'];
const ORIGINAL: Key = ['originalDestination', 'originalPort'];
/** The endpoint first: with its port named before it, nft can read `ct original proto-dst` again. */
const CONNECTION: Key = ['destination', 'port', 'originalDestination', 'originalPort'];
/** Clients that are remembered at one time. */
const MOST_CLIENTS = 1_000_000;

export function affinitySets(timeouts: readonly AffinityTimeout[], counters: boolean): readonly TableSet[] {
  const protocols = protocolsOf(timeouts);
  return [
    ...protocols.map(
      (protocol): TableSet => ({
        name: affinityMap(protocol),
        key: ['address', 'address', 'port'],
        data: 'endpoint',
        remembers: MOST_CLIENTS,
        comment: 'client and frontend',
      }),
    ),
    ...protocols.map(
      (protocol): TableSet => ({
        name: stickyMap(protocol),
        key: ['address', 'port'],
        data: 'verdict',
        comment: 'frontends with affinity, by time-out',
      }),
    ),
    ...(counters ? protocols : []).flatMap((protocol) =>
      SCOPE_LIST.map(
        (scope): TableSet => ({
          name: connectionsSet(scope, protocol),
          key: ['address', 'port', 'address', 'port'],
          counts: true,
          comment: 'endpoint and frontend',
        }),
      ),
    ),
  ];
}

/** `before`: a ruleset of the same family, whose chains are used again. */
export function affinityChains(
  timeouts: readonly AffinityTimeout[],
  { family, counters }: AffinityOptions,
  before: Ruleset | undefined,
): readonly Chain[] {
  const known = new Map(before?.chains.map((chain) => [chain.name, chain]));
  const protocols = protocolsOf(timeouts);
  return [
    ...timeouts.map((timeout) => {
      const name = stickyChain(timeout.protocol, timeout.seconds);
      return known.get(name) ?? { name, rules: [learnRule(timeout, family)] };
    }),
    { name: CHAINS.remembered, rules: protocols.map(rememberedRule) },
    {
      name: CHAINS.remember,
      rules: [...(counters ? protocols.flatMap(countRules) : []), ...protocols.map(stickyRule)],
    },
  ];
}

function protocolsOf(timeouts: readonly AffinityTimeout[]): readonly Protocol[] {
  return [...new Set(timeouts.map(({ protocol }) => protocol))];
}

function rememberedRule(protocol: Protocol): Rule {
  return rule({ kind: 'protocol', protocol }, { kind: 'dnatByMap', key: CLIENT, map: affinityMap(protocol) });
}

/** To be found is to be counted. Node ports have a set of their own: an address of the node may be a service's too. */
function countRules(protocol: Protocol): readonly Rule[] {
  return SCOPE_LIST.map((scope) =>
    rule({ kind: 'protocol', protocol }, inSet(CONNECTION, connectionsSet(scope, protocol))),
  );
}

/** nft reads `ct original proto-dst` only where a port was named before it. */
function stickyRule(protocol: Protocol): Rule {
  return rule(
    { kind: 'protocol', protocol },
    { kind: 'hasPort' },
    { kind: 'verdictByMap', key: ORIGINAL, map: stickyMap(protocol) },
  );
}

/**
 * After the rewriting, when it is known where to; what was dialled is still known too.
 *
 * Of IPv6, nft could not read the line whatever stood before it: it has no registers for two addresses, a port and an
 * endpoint, and would end with a failed assertion.
 */
function learnRule({ protocol, seconds }: AffinityTimeout, family: Family): Rule {
  return rule({ kind: 'protocol', protocol }, ...(family === 'IPv4' ? [{ kind: 'hasPort' } as const] : []), {
    kind: 'remember',
    key: ORIGINAL_CLIENT,
    map: affinityMap(protocol),
    seconds,
  });
}
