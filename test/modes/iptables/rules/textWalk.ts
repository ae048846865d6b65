/** Sends packets through tables that are all in memory. */
import { Chain, type Chains } from '../../../../src/modes/iptables/chains.ts';
import type { ParsedChain, Tables } from '../../../../src/modes/iptables/rules/parse.ts';
import { printRule } from '../../../../src/modes/iptables/rules/print.ts';
import { IptablesRules } from '../../../../src/modes/iptables/walk.ts';
import { walkPacket } from '../../../../src/modes/walk.ts';
import type { PacketPlace, WalkResult } from '../../../../src/modes/kernelRules.ts';
import type { Host, Packet } from '../../../../src/plan/decide.ts';
import { runToEnd } from '../../../../src/time/timeSlice.ts';

export function walkIptables(tables: Tables, packet: Packet, host: Host, place?: PacketPlace): WalkResult {
  return runToEnd(walkPacket(walkedTables(tables), packet, host, place));
}

export function walkedTables(tables: Tables): IptablesRules {
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

const printed = new WeakMap<ParsedChain, Chain>();

function chainOf(table: string, name: string, parsed: ParsedChain): Chain {
  let chain = printed.get(parsed);
  if (chain && chain.length === parsed.rules.length) return chain;
  chain = new Chain(table, name);
  chain.policy = parsed.policy;
  for (const rule of parsed.rules) chain.add(printRule(rule), rule.counters?.packets);
  printed.set(parsed, chain);
  return chain;
}
