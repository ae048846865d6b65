/** What questions about a time in the past are answered from: services as they were then, planned again. */
import type { FamilySubject, Subject } from '../../explain/subject.ts';
import type { DestinationQuestion } from '../../explain/question.ts';
import { familyOf } from '../../model/ip.ts';
import type { ObjectKey } from '../../model/objects.ts';
import { mergeSlices } from '../../model/endpointTracker.ts';
import type { Capacity } from '../../plan/capacity.ts';
import { Planner } from '../../plan/planner.ts';
import type { ChangeHistory, ServiceInputs } from '../../proxy/history.ts';
import { RefusedQuestion } from './routes.ts';

export interface PastFamily {
  readonly subject: FamilySubject;
  readonly history: ChangeHistory;
  readonly capacity: Capacity;
}

/**
 * Of services without a later change the plan of now has what it had then. Planned again are those that changed since, and
 * the one that is asked for, so that who had an address then is decided among all that may have had it. The node is taken
 * as it is now, and no kernel is asked.
 */
export async function pastSubject(
  now: Subject,
  families: readonly PastFamily[],
  time: number,
  asked: DestinationQuestion,
): Promise<Subject> {
  const past: FamilySubject[] = [];
  for (const family of families) past.push(await pastFamily(now, family, time, asked));
  // Flows are those of now.
  return { ...now, families: past, flowsOf: () => Promise.resolve(new Map()) };
}

async function pastFamily(
  now: Subject,
  { subject, history, capacity }: PastFamily,
  time: number,
  asked: DestinationQuestion,
): Promise<FamilySubject> {
  const then = history.at(time);
  if (!then) {
    const since = new Date(history.status.since).toISOString();
    throw new RefusedQuestion(
      404,
      'too-early',
      `what was before ${since} is not known any more`,
      undefined,
      'at',
    );
  }
  const inputsOf = (service: ObjectKey): ServiceInputs =>
    then.get(service) ?? { ports: subject.portsOf(service), slices: subject.slicesOf(service) };
  const plan = new Planner(
    subject.family,
    subject.plan.view,
    {
      portsOf: (service) => inputsOf(service).ports,
      endpointsOf: (service, limits) => mergeSlices(inputsOf(service).slices, now.nodeName, limits),
      endpointCountOf: (service) =>
        inputsOf(service).slices.reduce((sum, { endpoints }) => sum + endpoints.length, 0),
    },
    capacity,
  );
  const steps = plan.updating([...then.keys(), ...servicesAskedFor(subject, asked)]);
  while (!steps.next().done) {
    const waiting = now.pause?.();
    if (waiting) await waiting;
  }
  return {
    family: subject.family,
    plan,
    host: subject.host,
    portsOf: (service) => inputsOf(service).ports,
    slicesOf: (service) => inputsOf(service).slices,
    services: () => new Set([...subject.services(), ...then.keys()]),
    refused: new Map(),
  };
}

/** Those that have what is asked for now; who had it then and has it no more has changed since. */
function servicesAskedFor({ family, plan }: FamilySubject, asked: DestinationQuestion): readonly ObjectKey[] {
  if (asked.kind === 'service') return [asked.service];
  if (familyOf(asked.ip) !== family) return [];
  return [asked.ip, undefined].flatMap(
    (address) => plan.find(address, asked.protocol, asked.port)?.servicePort.service ?? [],
  );
}

const CLOCK_TIME = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/;
const DAY_MS = 86_400_000;

/** Milliseconds since the epoch, RFC 3339, or a time of this node's day (`14:03`): the last one that was. */
export function parseTime(text: string, now: number): number {
  if (/^\d{11,14}(?:\.\d+)?$/.test(text)) return Number(text);
  const [, hours, minutes, seconds = '0'] = CLOCK_TIME.exec(text) ?? [];
  if (hours !== undefined && Number(hours) < 24 && Number(minutes) < 60 && Number(seconds) < 60) {
    const at = new Date(now).setHours(Number(hours), Number(minutes), Number(seconds), 999);
    return at - 999 > now ? at - DAY_MS : at;
  }
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw new RefusedQuestion(
    400,
    'parameter',
    `${JSON.stringify(text)} is not a time`,
    'Say 14:03, 14:03:20, 2026-05-01T14:03:20Z, or milliseconds since 1970.',
    'at',
  );
}
