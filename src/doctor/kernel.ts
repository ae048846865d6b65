/** The kernel, its modules and the programs that the mode needs: what `junction check` says, as findings. */
import type { ValidConfig } from '../config/effective.ts';
import type { Family } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import { checkMode } from '../modes/prerequisites.ts';
import type { Check } from '../modes/prerequisites/check.ts';
import type { Machine } from '../modes/prerequisites/machine.ts';
import type { GroupFindings } from './group.ts';

export async function checkKernel(
  group: GroupFindings,
  config: ValidConfig,
  families: readonly Family[],
  machine: Machine,
): Promise<void> {
  group.fine(`Linux ${machine.kernelRelease}`);
  for (const check of await checkMode(config, families, machine)) report(group, config.mode, check);
}

function report(
  group: GroupFindings,
  mode: ModeName,
  { subject, state, needed, found, remedy }: Check,
): void {
  if (state === 'present') group.fine(`${subject}: ${found}`);
  else if (state === 'unknown') group.notEvaluated(subject, `${found}. ${remedy}`);
  else
    group.found({
      code: state === 'missing' ? 'prerequisite-missing' : 'prerequisite-degraded',
      severity: state === 'missing' ? 'error' : 'warning',
      text: `${subject} is ${state === 'missing' ? 'missing' : 'only partly there'}`,
      evidence: found,
      consequence:
        needed === 'always'
          ? `${mode} mode cannot run here`
          : `does not work: ${needed.replace(/^for /, '')}`,
      cure: remedy,
    });
}
