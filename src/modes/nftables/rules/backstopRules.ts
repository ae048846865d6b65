/**
 * The backstop's rules: they come after ours, so that they see the first packets that ours did nothing with. While ours
 * are there, that is none for a service. While somebody has taken them away, a new connection to a service is held back:
 * its first packet is dropped, the kernel remembers nothing of it, and the client sends it again a second later.
 */
import type { ServicePortPlan } from '../../../plan/types.ts';
import { CHAINS, ownerComment, SETS } from './names.ts';
import {
  type Chain,
  type Element,
  inSet,
  jump,
  rule,
  type Rule,
  type Ruleset,
  type TableSet,
} from './rule.ts';
import {
  FIELDS,
  FRONTEND,
  HAIRPIN_SET,
  hooked,
  masqueradeRules,
  PRIORITIES,
  type RulesetOptions,
  toNodePorts,
} from './ruleset.ts';

const HELD = { frontends: 'frontends', ports: 'ports' } as const;
const HOLD_BACK = 'hold-back';

export function backstopRuleset(options: RulesetOptions): Ruleset {
  return { sets: setsOf(options), chains: chainsOf(options) };
}

function setsOf({ view }: RulesetOptions): readonly TableSet[] {
  return [
    { name: HELD.frontends, key: FIELDS.address, comment: 'addresses of services that have endpoints' },
    { name: HELD.ports, key: FIELDS.nodePort, comment: 'node ports of services that have endpoints' },
    HAIRPIN_SET,
    ...(view.nodePorts.ranges === 'all'
      ? []
      : [{ name: SETS.nodePortIPs, key: ['address'], comment: 'where node ports answer' } as const]),
  ];
}

function chainsOf(options: RulesetOptions): readonly Chain[] {
  const held: readonly Rule[] = [
    rule(inSet(FRONTEND.address, HELD.frontends), { kind: 'drop' }),
    rule(inSet(FRONTEND.nodePort, HELD.ports), ...toNodePorts(options), { kind: 'drop' }),
  ];
  return [
    { name: HOLD_BACK, rules: held },
    hooked(CHAINS.prerouting, PRIORITIES.backstopDestination, [jump(HOLD_BACK)]),
    hooked(CHAINS.output, PRIORITIES.backstopDestination, [jump(HOLD_BACK)]),
    // Also for what was sent on just before the rules went.
    hooked(CHAINS.postrouting, PRIORITIES.backstopSource, masqueradeRules(options)),
  ];
}

/** Frontends that our rules send somewhere, for some clients at least: those they never leave alone. */
export function heldFrontends({ frontends, protocol, name }: ServicePortPlan): readonly Element[] {
  const comment = ownerComment(name);
  return frontends
    .filter(({ routes }) => Object.values(routes).some(({ verdict }) => verdict === 'forward'))
    .map(({ address, port }) =>
      address === undefined
        ? { set: HELD.ports, key: { protocol, port }, comment }
        : { set: HELD.frontends, key: { address, protocol, port }, comment },
    );
}
