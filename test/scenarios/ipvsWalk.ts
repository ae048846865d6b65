/** Junction's IPVS mode over a kernel in memory, and what that kernel makes of a packet. */
import { type Family, isLoopback } from '../../src/model/ip.ts';
import { IptablesClient } from '../../src/modes/iptables/client.ts';
import { walkedTables } from '../../src/modes/iptables/rules/walk.ts';
import { IpvsProxier } from '../../src/modes/ipvs/proxier.ts';
import {
  type IpvsSnapshot,
  walkedSnapshot,
  type WalkedServer,
  walkIpvs,
} from '../../src/modes/ipvs/rules/walk.ts';
import type { WalkOutcome, WalkResult } from '../../src/modes/walk.ts';
import type { Plan } from '../../src/plan/types.ts';
import { FakeIpvsKernel } from '../modes/ipvs/rules/fakeKernel.ts';
import { FakeIptables } from './fakeIptables.ts';
import { printRow, printTarget, type Subject, type Target, targetAt } from './packets.ts';
import { NODE1, node1Addresses } from './scenario.ts';

/** Sets, virtual servers and the device; and the rules. */
export class FakeIpvsNode {
  readonly family: Family;
  readonly kernel: FakeIpvsKernel;
  readonly iptables = new FakeIptables();

  constructor(family: Family) {
    this.family = family;
    this.kernel = new FakeIpvsKernel(family);
  }

  async proxier(scheduler = 'rr'): Promise<IpvsProxier> {
    const { family, kernel, iptables } = this;
    return new IpvsProxier({
      iptables: await IptablesClient.open({ family, variant: 'nft', runner: iptables.runner }),
      client: kernel,
      masqueradeBit: 14,
      scheduler,
      excludeCIDRs: [],
      drainLimitMs: 0,
      nodeIps: () => node1Addresses(family).filter((ip) => !isLoopback(ip)),
      onDrainFailure: (error) => {
        throw error;
      },
    });
  }

  get snapshot(): IpvsSnapshot {
    const { sets, servers, device } = this.kernel;
    return {
      tables: walkedTables(this.iptables.tables),
      sets,
      servers: new Map(
        [...servers].map(([key, { attributes, destinations }]): [string, WalkedServer] => [
          key,
          {
            ...attributes,
            destinations: [...destinations.values()].map(({ destination, weight }) => ({
              ...destination,
              weight,
            })),
          },
        ]),
      ),
      bound: device?.addresses ?? new Set(),
    };
  }
}

const TOLERANCE = 1e-9;

/** In the words of a row. What cannot be said in them is wrong. */
export function walkedIpvs(snapshot: IpvsSnapshot, { view }: Plan, row: Subject): string {
  const packet = { ...row.packet, viaBridge: row.packet.inInterface === 'cni0' };
  const walk = (affinity?: (entry: string) => boolean): WalkResult<string> =>
    walkIpvs(walkedSnapshot(snapshot), packet, NODE1, {
      record: false,
      nodeIp: view.nodeIp,
      ...(affinity && { affinity }),
    });
  const { outcomes, notes } = walk();
  const again = (first: WalkOutcome<string>): readonly WalkOutcome<string>[] =>
    walk((entry) => first.learned.includes(entry)).outcomes;
  return printOutcomes(row, outcomes, notes, again);
}

/** `again`: what becomes of the next connection of the client of an outcome. */
export function printOutcomes(
  row: Subject,
  outcomes: readonly WalkOutcome<unknown>[],
  notes: readonly string[],
  again?: (first: WalkOutcome<string>) => readonly WalkOutcome<string>[],
): string {
  const [note] = notes;
  if (note !== undefined) return printRow(row, note);
  const verdicts = new Set(outcomes.map(({ kind }) => kind));
  const [verdict = 'pass'] = verdicts;
  if (verdicts.size > 1) return printRow(row, [...verdicts].join(' or '));
  if (verdict !== 'forward') return printRow(row, { verdict });
  const targets = outcomes.map((outcome) => target(row, outcome));
  const unfair = outcomes.find(({ probability }) => Math.abs(probability * outcomes.length - 1) > TOLERANCE);
  if (unfair) return printRow(row, `${printTarget(target(row, unfair))} with ${unfair.probability}`);
  const sticky = outcomes.filter(({ learned }) => learned.length > 0);
  if (again && !sticky.every((first) => isRemembered(row, first as WalkOutcome<string>, again)))
    return printRow(row, 'forgets its client');
  return printRow(row, { verdict, targets, sticky: sticky.length > 0 && sticky.length === outcomes.length });
}

function isRemembered(
  row: Subject,
  first: WalkOutcome<string>,
  again: (first: WalkOutcome<string>) => readonly WalkOutcome<string>[],
): boolean {
  const outcomes = again(first);
  return outcomes.length === 1 && outcomes.every((only) => same(row, only, first));
}

function same(row: Subject, one: WalkOutcome<unknown>, other: WalkOutcome<unknown>): boolean {
  return printTarget(target(row, one)) === printTarget(target(row, other));
}

function target(row: Subject, outcome: WalkOutcome<unknown>): Target {
  if (outcome.kind !== 'forward') throw new Error('not forwarded');
  return targetAt(row, outcome.to, outcome.port, outcome.masqueraded);
}
