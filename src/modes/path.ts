/**
 * The hooks that a packet passes, in their order.
 *
 * ```
 *  from elsewhere:  prerouting ─┬─ here:  input
 *                               └─ on:    forward ─ postrouting
 *  from the node:   output ─ postrouting ─┬─ here: prerouting and input, from lo
 *                                         └─ on
 * ```
 * IPVS, where a mode has it, stands between the chains of input and of output. What it takes it sends on as the node's own:
 * through output and postrouting.
 *
 * Chains of the type nat see a connection once for its destination and once for its source: what the node sends to itself
 * has been through output and postrouting, so neither nat prerouting nor nat input sees it again.
 */
import type { Ip } from '../model/ip.ts';

export type HookPoint = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';

export interface PathHook {
  readonly point: HookPoint;
  /** Asked with the destination as it is by then. `routed`, `balanced`: onward, without IPVS or by it. */
  readonly applies: 'always' | 'here' | 'onward' | 'routed' | 'balanced';
  /** The incoming interface, where it is no longer the one that the packet began with. */
  readonly inInterface?: '' | 'lo';
  /** Chains of the type nat do not see it. */
  readonly isWithoutNat?: true;
}

const FROM_ELSEWHERE: readonly PathHook[] = [
  { point: 'prerouting', applies: 'always' },
  { point: 'input', applies: 'here' },
  { point: 'forward', applies: 'routed' },
  { point: 'output', applies: 'balanced', inInterface: '', isWithoutNat: true },
  { point: 'postrouting', applies: 'onward', inInterface: '' },
];

const FROM_NODE: readonly PathHook[] = [
  { point: 'output', applies: 'always' },
  { point: 'output', applies: 'balanced', isWithoutNat: true },
  { point: 'postrouting', applies: 'always' },
  { point: 'prerouting', applies: 'here', inInterface: 'lo', isWithoutNat: true },
  { point: 'input', applies: 'here', inInterface: 'lo', isWithoutNat: true },
];

/** `undefined`: this node sends it. */
export function pathOf(inInterface: string | undefined): readonly PathHook[] {
  return inInterface === undefined ? FROM_NODE : FROM_ELSEWHERE;
}

export function isOnPath(
  { applies }: PathHook,
  { destination, virtualServer }: { readonly destination: Ip; readonly virtualServer: unknown },
  isLocal: (ip: Ip) => boolean,
): boolean {
  if (applies === 'always') return true;
  if (isLocal(destination)) return applies === 'here';
  if (applies === 'here') return false;
  return applies === 'onward' || (applies === 'balanced') === (virtualServer !== undefined);
}

/** The steps on a way, newest first, so that ways share their beginnings. */
export interface Trail<Step> {
  /** Printed for the outcomes' paths alone. */
  readonly step: () => Step;
  readonly before: Trail<Step> | undefined;
}

export function stepsOf<Step>(trail: Trail<Step> | undefined): Step[] {
  const steps: Step[] = [];
  for (let at = trail; at; at = at.before) steps.push(at.step());
  return steps.toReversed();
}
