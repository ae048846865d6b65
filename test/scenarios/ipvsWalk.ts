/** Junction's IPVS mode over a kernel in memory, and what that kernel makes of a packet. */
import { deepEqual } from '../../src/model/equal.ts';
import { type Family, isLoopback } from '../../src/model/ip.ts';
import { IptablesClient } from '../../src/modes/iptables/client.ts';
import { walkedTables } from '../modes/iptables/rules/textWalk.ts';
import { IpvsProxier } from '../../src/modes/ipvs/proxier.ts';
import { TablesReader } from '../../src/modes/iptables/tablesReader.ts';
import { IpvsReader } from '../../src/modes/ipvs/inspect.ts';
import {
  type IpvsSnapshot,
  type WalkedIpvs,
  walkedSnapshot,
  type WalkedServer,
  walkIpvs,
} from '../../src/modes/ipvs/rules/walk.ts';
import type { WalkOutcome, WalkResult } from '../../src/modes/walk.ts';
import type { Plan } from '../../src/plan/types.ts';
import { runToEnd } from '../../src/time/timeSlice.ts';
import { FakeIpvsKernel } from '../modes/ipvs/rules/fakeKernel.ts';
import { ALL_TABLES } from '../modes/iptables/fakeReader.ts';
import { FakeIptables } from './fakeIptables.ts';
import { printWalk } from './expectations.ts';
import { printRow, type Subject } from './packets.ts';
import { NODE1, node1Addresses } from './scenario.ts';

/** Sets, virtual servers and the device; and the rules. */
export class FakeIpvsNode {
  readonly family: Family;
  readonly kernel: FakeIpvsKernel;
  readonly iptables: FakeIptables;
  /** What readers asked for, and how much of it. */
  readonly asked: string[] = [];

  constructor(family: Family, iptables = new FakeIptables()) {
    this.iptables = iptables;
    this.family = family;
    this.kernel = new FakeIpvsKernel(family, iptables);
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

  /** As a question would open it. */
  async reader(scheduler = 'rr'): Promise<IpvsReader> {
    const { family, kernel, iptables } = this;
    const lookups = (): WalkedIpvs => walkedSnapshot(this.snapshot);
    const count = (kind: string, asked: readonly unknown[]): void =>
      void this.asked.push(`${kind} ${asked.length}`);
    return new IpvsReader({
      family,
      tables: new TablesReader({
        client: await IptablesClient.open({ family, variant: 'nft', runner: iptables.runner }),
        tables: () => ALL_TABLES,
        generation: () => 1,
        bridges: () => new Set(['cni0']),
      }),
      lookups: {
        hasEntries: async (questions) => {
          count('entries', questions);
          return questions.map(({ set, entry }) => lookups().has(set, entry));
        },
        typesOf: async (sets) => sets.map((set) => kernel.sets.get(set)?.type),
        servers: async (keys) => {
          count('servers', keys);
          return keys.map((key) => lookups().server(key));
        },
        haveMarks: async (marks) => marks.map(() => false),
        areLocal: async (ips) => ips.map((ip) => lookups().isBound(ip)),
      },
      client: kernel,
      settings: { scheduler, masqueradeBit: 14, randomFully: true, excludeCIDRs: [] },
      nodeIps: () => node1Addresses(family).filter((ip) => !isLoopback(ip)),
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

/** In the words of a row. What cannot be said in them is wrong. */
export function walkedIpvs(snapshot: IpvsSnapshot, { view }: Plan, row: Subject): string {
  const packet = { ...row.packet, viaBridge: row.packet.inInterface === 'cni0' };
  const kernel = walkedSnapshot(snapshot);
  const walk = (affinity: (entry: string) => boolean): WalkResult<string> =>
    runToEnd(walkIpvs(kernel, packet, { ...NODE1, nodeIp: view.nodeIp }, { record: false, affinity }));
  const first = walk(() => false);
  const isKept = (outcome: WalkOutcome<string>): boolean => {
    const again = walk((entry) => outcome.learned.includes(entry)).outcomes;
    return again.length === 1 && deepEqual(again[0], { ...outcome, probability: 1, byAffinity: true });
  };
  const sticky = first.outcomes.filter(({ learned }) => learned.length > 0);
  return sticky.every(isKept) ? printWalk(row, first) : printRow(row, 'forgets its client');
}
