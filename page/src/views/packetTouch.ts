/** Which events make the answer about a packet old. */
import type { PacketExplanation, WatchEvent } from '../../../src/explain/types.ts';
import { serviceOfPortId } from '../../../src/model/serviceTracker.ts';

/** `asked`: the destination as it was asked for. */
export function isPacketTouched(
  event: WatchEvent,
  asked: string,
  answers: readonly PacketExplanation[],
): boolean {
  const services = new Set(answers.flatMap(({ frontend }) => frontend?.service ?? []));
  const [, named] = /^(?:svc|services?)\/([^/]+\/[^/:]+)/.exec(asked) ?? [];
  if (named !== undefined) services.add(named);
  switch (event.kind) {
    case 'change': {
      if (services.has(event.service)) return true;
      // Where nobody answers, or nothing was answered, a Service that gets the address may.
      const isOpen = answers.length === 0 || answers.some(({ frontend }) => !frontend);
      return isOpen && event.causes.some((cause) => cause.startsWith('Service '));
    }
    case 'refused':
      return services.has(serviceOfPortId(event.servicePort));
    // Rules of other programs, and repairs of ours.
    case 'foreign':
      return answers.some(({ family }) => family === event.family);
    default:
      return false;
  }
}
