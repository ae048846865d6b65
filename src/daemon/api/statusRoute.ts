/** `/v1/status`: the status now or, with `wait=applied`, when everything that was received is in the kernel. */
import { parseDuration } from '../../config/goFormats.ts';
import type { Status } from '../../explain/status.ts';
import { objectKey, type ObjectKey } from '../../model/objects.ts';
import { fits, LABEL } from '../../model/project/names.ts';
import type { Clock } from '../../time/clock.ts';
import { json } from '../../telemetry/http/server.ts';
import type { Wait } from '../applied.ts';
import { type ApiRoute, data, RefusedQuestion } from './routes.ts';

export interface StatusOptions {
  readonly status: () => Status;
  /** Unset: there is no proxy that writes into a kernel. */
  readonly applied?: {
    readonly clock: Clock;
    readonly wait: (wait: Wait) => Promise<readonly string[]>;
    /** What the source has not received of this Service; `undefined`: nothing. */
    readonly missing: (service: ObjectKey, resourceVersion: string | undefined) => string | undefined;
  };
}

interface AskedWait {
  readonly timeoutMs: number;
  readonly service: ObjectKey | undefined;
  readonly resourceVersion: string | undefined;
}

const DEFAULT_MS = 30_000;
const MAX_MS = 600_000;
const ASK_PROXY = 'Ask a running proxy at its socket.';
const DETAILS = ['timeout', 'service', 'resourceVersion'];

export function statusRoute({ status, applied }: StatusOptions): ApiRoute {
  return {
    path: '/v1/status',
    parameters: ['wait', ...DETAILS],
    answer: async ({ query, signal }) => {
      const asked = askedWait(query);
      if (!asked) return data(status());
      if (!applied)
        throw new RefusedQuestion(404, 'no-proxy', 'there is no proxy here to wait for', ASK_PROXY, 'wait');
      const { clock } = applied;
      const began = clock.now();
      const open = await untilTimeout(clock, asked.timeoutMs, signal, (end) =>
        applied.wait({ missing: () => missingOf(applied, asked), signal: end }),
      );
      return answered(status(), open, Math.round(clock.now() - began));
    },
  };
}

function missingOf(
  { missing }: NonNullable<StatusOptions['applied']>,
  { service, resourceVersion }: AskedWait,
): readonly string[] {
  if (service === undefined) return [];
  const sentence = missing(service, resourceVersion);
  return sentence === undefined ? [] : [sentence];
}

/** Nothing stays behind: no timer and no listener. */
async function untilTimeout<T>(
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal,
  work: (end: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const end = (): void => controller.abort();
  if (signal.aborted) end();
  signal.addEventListener('abort', end);
  const cancel = clock.schedule(timeoutMs, end);
  try {
    return await work(controller.signal);
  } finally {
    cancel();
    signal.removeEventListener('abort', end);
  }
}

function answered(status: Status, open: readonly string[], milliseconds: number) {
  const isApplied = open.length === 0;
  const warnings = status.findings.map(({ text, evidence }) =>
    evidence === undefined ? text : `${text}: ${evidence}`,
  );
  const answer: Status = { ...status, wait: { isApplied, milliseconds, open, warnings } };
  if (isApplied) return data(answer);
  const message = `not everything is applied after ${milliseconds / 1000} s: ${open.join('; ')}`;
  return json(504, `${JSON.stringify({ ...answer, error: { code: 'not-applied', message } })}\n`);
}

function askedWait(query: URLSearchParams): AskedWait | undefined {
  const wait = query.get('wait');
  if (wait === null) {
    const detail = DETAILS.find((name) => query.has(name));
    if (detail === undefined) return undefined;
    throw refusal(detail, `${detail} goes with wait=applied`);
  }
  if (wait !== 'applied') throw refusal('wait', 'wait must be applied');
  const service = query.get('service');
  const resourceVersion = query.get('resourceVersion') ?? undefined;
  if (resourceVersion !== undefined && service === null)
    throw refusal('resourceVersion', 'resourceVersion goes with service');
  if (resourceVersion !== undefined && !/^(?:0|[1-9]\d*)$/.test(resourceVersion))
    throw refusal('resourceVersion', 'resourceVersion must be a number, as kubectl get -o yaml shows it');
  return {
    timeoutMs: timeoutOf(query.get('timeout')),
    service: service === null ? undefined : serviceNamed(service),
    resourceVersion,
  };
}

function timeoutOf(text: string | null): number {
  if (text === null) return DEFAULT_MS;
  const timeoutMs = parseDuration(text);
  if (timeoutMs !== undefined && timeoutMs > 0 && timeoutMs <= MAX_MS) return timeoutMs;
  throw refusal('timeout', 'timeout must be a duration such as 30s, more than 0 and at most 10m');
}

function serviceNamed(text: string): ObjectKey {
  const [namespace = '', name = '', ...more] = text.split('/');
  if (more.length === 0 && fits(LABEL, namespace) && fits(LABEL, name)) return objectKey(namespace, name);
  throw refusal('service', 'service must be NAMESPACE/NAME');
}

function refusal(parameter: string, message: string): RefusedQuestion {
  return new RefusedQuestion(400, 'parameter', message, undefined, parameter);
}
