/**
 * Rulesets that nftables.service loads and that contain our tables. While Junction runs, the kernel lets no other program
 * write these tables, so `nft -f` refuses such a file as a whole, with the operator's own firewall in it.
 */
import { isOurTable } from '../modes/nftables/rules/names.ts';
import type { GroupFindings } from './group.ts';
import type { DoctorMachine } from './machine.ts';

const TABLE = /^\s*(?:(?:add|create|delete|flush)\s+)?table\s+(ip6?)\s+([\w-]+)/;
const MAX_SHOWN = 4;

export function checkSavedRulesets(
  group: GroupFindings,
  machine: Pick<DoctorMachine, 'savedRulesets'>,
): void {
  const rulesets = machine.savedRulesets();
  let isClean = true;
  for (const { path, text } of rulesets) {
    const lines = text.split('\n').flatMap((line, index) => {
      const [, family = '', table = ''] = TABLE.exec(line) ?? [];
      return isOurTable(table) ? [`line ${index + 1}: table ${family} ${table}`] : [];
    });
    if (lines.length === 0) continue;
    isClean = false;
    const more = lines.length > MAX_SHOWN ? [`${lines.length - MAX_SHOWN} more`] : [];
    group.found({
      code: 'our-table-in-saved-ruleset',
      severity: 'warning',
      text: `${path} contains Junction's nftables tables`,
      evidence: [...lines.slice(0, MAX_SHOWN), ...more].join('; '),
      consequence:
        'while Junction runs, nft refuses the whole file (Operation not permitted): a firewall in it is not loaded',
      cure: `delete these tables from ${path}, and save rulesets without them: docs/nftables.md#saving-a-ruleset`,
    });
  }
  if (rulesets.length > 0 && isClean) group.fine('no saved ruleset contains our tables');
}
