/** Whether our rules in the kernel are those that are planned. */
import type { FamilySubject } from '../explain/subject.ts';
import type { KernelDifference } from '../modes/kernelRules.ts';
import type { GroupFindings } from './group.ts';

const MOST_SHOWN = 5;
const WORDS: Readonly<Record<KernelDifference['kind'], string>> = {
  missing: 'missing',
  extra: 'not planned',
  different: 'different',
};

export async function checkRules(
  group: GroupFindings,
  families: readonly FamilySubject[],
  isProxyAnswering: boolean,
): Promise<void> {
  for (const { plan, kernel } of families) {
    if (!kernel) {
      group.notEvaluated(`rules, ${plan.family}`, 'no kernel is asked');
      continue;
    }
    const differences = await kernel.compare(plan);
    if (differences.length === 0) {
      group.fine(`the ${plan.family} rules in the kernel are those that are planned`);
      continue;
    }
    const counts = Object.entries(WORDS).flatMap(([kind, word]) => {
      const count = differences.filter((each) => each.kind === kind).length;
      return count === 0 ? [] : [`${count} ${word}`];
    });
    const services = [...new Set(differences.flatMap(({ servicePort }) => servicePort ?? []))];
    const shown = differences
      .slice(0, MOST_SHOWN)
      .map(({ kind, object, text }) => `${WORDS[kind]}: ${object}: ${text}`);
    group.found({
      code: 'kernel-differs',
      severity: 'error',
      text: `the ${plan.family} rules in the kernel are not those that are planned: ${counts.join(', ')}`,
      evidence: [...shown, ...(differences.length > MOST_SHOWN ? ['…'] : [])].join('; '),
      consequence:
        services.length === 0
          ? 'packets to services may go astray'
          : `packets to ${services.slice(0, MOST_SHOWN).join(', ')}${services.length > MOST_SHOWN ? ` and ${services.length - MOST_SHOWN} more` : ''} go astray`,
      cure: isProxyAnswering
        ? 'Junction repairs what another program changed, at once or within its sync period: ask again. junction diff shows all; what stays is in the log as Sync failed'
        : 'start Junction, which writes what is missing and deletes what is not planned: systemctl restart junction. junction diff shows all',
    });
  }
}
