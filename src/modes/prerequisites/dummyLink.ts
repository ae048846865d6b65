/** The dummy device that service addresses are bound to. */
import { absent, type Check, present } from './check.ts';
import type { Machine } from './machine.ts';
import { moduleRemedy, tryWithModule } from './modules.ts';

const DEVICE = 'kube-ipvs0';

export async function dummyLinkCheck(machine: Machine): Promise<Check> {
  const link = machine.link(DEVICE);
  if (link?.kind === 'dummy') return present(`device ${DEVICE}`, 'always', 'it is there, of kind dummy');
  if (link) {
    return absent(
      `device ${DEVICE}`,
      'always',
      `it is there, and is no dummy device but ${link.kind ?? 'hardware'}`,
      `Give that device another name, or delete it: ip link delete ${DEVICE}. Junction makes its own.`,
    );
  }
  const subject = 'kernel module dummy';
  const trial = await tryWithModule(machine, 'dummy', () => machine.tryLink('dummy'));
  return trial.state === 'done'
    ? present(subject, 'always', 'a trial device could be made')
    : absent(
        subject,
        'always',
        `no dummy device can be made: ${trial.reason}`,
        moduleRemedy(machine, ['dummy']),
      );
}
