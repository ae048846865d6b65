/** What `junction plan` prints of the iptables mode: input for iptables-restore, and what such input cannot say. */
import { type ChainRef, type CompileOptions, compileOptionsOf, nodePortIpsOf } from './rules/fragment.ts';
import { LAYOUTS } from './rules/layouts/index.ts';
import { type WholeRules, wholeRules } from './rules/whole.ts';
import type { Settings } from '../../config/settings.ts';
import { localIps } from '../../system/interfaces.ts';
import type { Family } from '../../model/ip.ts';
import type { Plan } from '../../plan/types.ts';

/**
 * Before the texts of two families. Not a comment: one program would take both, and what it declares of the second
 * family empties the chains of the first. So it stops here, and has done nothing.
 */
export const BOTH_IN_ONE = 'Two families, two programs: choose one with --family.\n\n';

export function rulesOf(plan: Plan, settings: Settings): WholeRules {
  return wholeRules(LAYOUTS[settings.layout], plan, compileOptions(plan, settings));
}

export function printRestore(plan: Plan, settings: Settings): string {
  const rules = rulesOf(plan, settings);
  const head = `# ${plan.family}, layout ${settings.layout}, for: ${restoreCommand(plan.family)}\n# Junction's own chains. The jumps that lead to them are at the end, as comments.\n`;
  return head + rules.restore + printJumps(rules);
}

export function restoreCommand(family: Family): string {
  return `${family === 'IPv4' ? 'iptables-restore' : 'ip6tables-restore'} --noflush`;
}

/** As comments: what a restore would add again each time. */
export function printJumps({ sharedChains, sharedRules, jumps }: WholeRules): string {
  const line = (operation: string, { table, chain }: ChainRef, rule = ''): string =>
    `#   -t ${table} ${operation} ${chain}${rule}\n`;
  return [
    '# Once each, where other programs have rules too. A restore would add them again each time, so it has none of them:\n',
    ...sharedChains.map((ref) => line('-N', ref)),
    ...sharedRules.map((each) => line('-A', each, ` ${each.rule}`)),
    ...jumps.map((each) => line('-I', each, ` ${each.rule}`)),
  ].join('');
}

function compileOptions(plan: Plan, settings: Settings): CompileOptions {
  return compileOptionsOf(plan, {
    nodePortIps: nodePortIpsOf(plan.view.nodePorts, () => localIps(plan.family)),
    masqueradeMark: (1 << settings.masqueradeBit) >>> 0,
    randomFully: true,
    dropInvalid: true,
    nfacct: { invalidDropped: false, localhostNodePorts: false },
  });
}
