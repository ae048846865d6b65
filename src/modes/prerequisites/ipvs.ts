/** IPVS, and the scheduler that shares connections out. */
import { absent, type Check, present, unknown } from './check.ts';
import type { Machine } from './machine.ts';
import { moduleRemedy, tryWithModule } from './modules.ts';

export async function ipvsChecks(machine: Machine, scheduler: string): Promise<readonly Check[]> {
  const subject = 'kernel module ip_vs';
  const trial = await tryWithModule(machine, 'ip_vs', () => machine.findIpvs());
  if (trial.state === 'done') {
    return [present(subject, 'always', 'the kernel has IPVS'), await schedulerCheck(machine, scheduler)];
  }
  return [
    absent(subject, 'always', trial.reason, moduleRemedy(machine, ['ip_vs'])),
    unknown(
      schedulerSubject(scheduler),
      'always',
      'not tried without IPVS',
      'Check again with ip_vs loaded.',
    ),
  ];
}

async function schedulerCheck(machine: Machine, scheduler: string): Promise<Check> {
  const subject = schedulerSubject(scheduler);
  // A virtual server that has it proves more than a trial, and nothing needs to be made.
  if (machine.schedulersInUse().includes(scheduler)) return present(subject, 'always', 'in use');
  const module = `ip_vs_${scheduler}`;
  const trial = await tryWithModule(machine, module, () => machine.tryScheduler(scheduler));
  if (trial.state === 'done') return present(subject, 'always', 'a trial virtual server took it');
  return absent(
    subject,
    'always',
    `a virtual server with it is refused: ${trial.reason}`,
    `Check the spelling of --ipvs-scheduler (rr, wrr, lc, sh, mh …). ${moduleRemedy(machine, [module])}`,
  );
}

function schedulerSubject(scheduler: string): string {
  return `IPVS scheduler ${scheduler}`;
}
