/** Sends packets through tables that are all in memory. */
import { Chain, type Chains } from '../../../../src/modes/iptables/chains.ts';
import { IptablesRules } from '../../../../src/modes/iptables/walk.ts';
import { walkPacket } from '../../../../src/modes/walk.ts';
import type { PacketPlace, WalkResult } from '../../../../src/modes/kernelRules.ts';
import type { Host, Packet } from '../../../../src/plan/decide.ts';
import { runToEnd } from '../../../../src/time/timeSlice.ts';
import type { MemoryChain, MemoryTables } from './tables.ts';

export function walkIptables(
  tables: MemoryTables,
  packet: Packet,
  host: Host,
  place?: PacketPlace,
): WalkResult {
  return runToEnd(walkPacket(walkedTables(tables), packet, host, place));
}

export function walkedTables(tables: MemoryTables): IptablesRules {
  return new IptablesRules({
    tables: new Set(tables.keys()),
    read: (table, names): Chains =>
      new Map(
        names.flatMap((name) => {
          const chain = tables.get(table)?.get(name);
          return chain ? [[name, chainOf(table, name, chain)] as const] : [];
        }),
      ),
  });
}

const printed = new WeakMap<MemoryChain, Chain>();

function chainOf(table: string, name: string, parsed: MemoryChain): Chain {
  let chain = printed.get(parsed);
  if (chain && chain.rules.length === parsed.rules.length) return chain;
  chain = new Chain(table, name);
  chain.policy = parsed.policy;
  for (const rule of parsed.rules) chain.add(rule.text, rule.packets);
  printed.set(parsed, chain);
  return chain;
}
