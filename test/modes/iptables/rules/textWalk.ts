/** Sends packets through tables that are all in memory. */
import type { Tables } from '../../../../src/modes/iptables/rules/parse.ts';
import {
  type IptablesPacket,
  type IptablesWalkOptions,
  type WalkedTables,
  walkTables,
} from '../../../../src/modes/iptables/rules/walk.ts';
import type { WalkResult } from '../../../../src/modes/walk.ts';
import type { Host } from '../../../../src/plan/decide.ts';
import { runToEnd } from '../../../../src/time/timeSlice.ts';

export function walkIptables(
  tables: Tables,
  packet: IptablesPacket,
  host: Host,
  options: IptablesWalkOptions = {},
): WalkResult<string> {
  return runToEnd(walkTables(walkedTables(tables), packet, host, options));
}

export function walkedTables(tables: Tables): WalkedTables {
  return {
    base: (table, chain) => tables.get(table)?.get(chain),
    rules: (table, chain) => tables.get(table)?.get(chain)?.rules,
  };
}
