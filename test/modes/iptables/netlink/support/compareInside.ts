/** Compares in a namespace, where netlink sockets and programs run. */
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as fc from 'fast-check';
import type { Family } from '../../../../../src/model/ip.ts';
import { appendLine, chainLine } from '../../../../../src/modes/iptables/rules/print.ts';
import { type Table, TABLES } from '../../../../../src/modes/iptables/rules/rule.ts';
import { inside } from '../../../../system/support/inside.ts';
import type { Namespace } from '../../../../system/support/namespace.ts';
import type { Comparison, CompareOptions, RestoreCase } from './compareRules.ts';
import { JUMP_CHAINS, randomRule } from './randomRules.ts';

/** `folder`: where another version of iptables is. */
export async function compareInside(
  namespace: Namespace,
  cases: readonly RestoreCase[],
  options: CompareOptions & { readonly folder?: string } = {},
): Promise<Comparison> {
  const file = join(dirname(namespace.lockPath), 'cases.json');
  await writeFile(file, JSON.stringify({ cases, options }));
  const source = `
    import { readFileSync } from 'node:fs';
    import { compareAll } from './test/modes/iptables/netlink/support/compareRules.ts';
    const { cases, options } = JSON.parse(readFileSync(${JSON.stringify(file)}, 'utf8'));
    if (options.folder) process.env.PATH = options.folder + ':' + process.env.PATH;
    console.log(JSON.stringify(await compareAll(cases, options)));`;
  return (await inside(namespace, 'compare-rules', source)) as Comparison;
}

/** So many rules of each table, in one chain. */
export function randomRules(
  family: Family,
  {
    numRuns,
    seed,
    counters,
  }: { readonly numRuns: number; readonly seed: number; readonly counters: boolean },
): RestoreCase {
  const tableText = (table: Table): string => {
    const chains = [...JUMP_CHAINS, 'RULES'].map(chainLine);
    const lines = fc.sample(randomRule(family, table), { numRuns, seed }).map((rule, index) => {
      const counted = counters ? `[${index}:${index * 2 ** 33}] ` : '';
      return counted + appendLine('RULES', rule);
    });
    return `*${table}\n${[...chains, ...lines].join('\n')}\nCOMMIT\n`;
  };
  return { name: 'random rules', family, text: TABLES.map(tableText).join('') };
}
