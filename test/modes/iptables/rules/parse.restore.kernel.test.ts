/** The stand-in for the kernel against two real ones. */
import { beforeEach, describe, expect, test } from 'vitest';
import { type MemoryTables, parseSave } from './tables.ts';
import { applyRestore, RestoreError } from './restore.ts';
import { askKernel, requireIptables, VARIANTS } from './realKernel.ts';
import { RESTORE_CASES, type RestoreCase } from './restoreCases.ts';

/** Chains sorted by name: a save sorts them, each variant in its own way. Tables without any content are left out. */
function asText(tables: MemoryTables): string[] {
  const lines: string[] = [];
  for (const [table, chains] of tables) {
    for (const [name, { policy, rules }] of chains) {
      if (policy !== 'ACCEPT') lines.push(`${table} ${name} ${policy ?? '-'}`);
      lines.push(...rules.map((rule, index) => `${table} ${name} ${index} ${rule.key}`));
    }
  }
  return lines.sort();
}

function afterRestore(one: RestoreCase): MemoryTables {
  const state = applyRestore(new Map(), one.state);
  try {
    return applyRestore(state, one.restore);
  } catch (error) {
    if (error instanceof RestoreError) return error.after;
    throw error;
  }
}

describe.each(VARIANTS)('iptables-%s', (variant) => {
  beforeEach((context) => requireIptables(context));

  test.each(RESTORE_CASES.map((one) => [one.name, one] as const))('%s', (_, one) => {
    const isMinded = one.minds === undefined || one.minds === variant;
    const answer = askKernel('iptables', variant, [one.state, one.restore]);
    const failed = answer.statuses.map((status) => status !== 0);
    expect({ ...answer, failed }).toMatchObject({ failed: [false, one.fails !== undefined && isMinded] });
    if (!isMinded) return;
    expect(asText(parseSave(answer.save))).toEqual(asText(afterRestore(one)));
  });
});
