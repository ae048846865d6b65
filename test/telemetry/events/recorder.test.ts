/** Events, from what the daemon records to what an API server holds. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { ApiClient } from '../../../src/sources/api/client.ts';
import {
  type EventReport,
  failedToStartServiceHealthcheck,
  starting,
} from '../../../src/telemetry/events/event.ts';
import {
  END_LIMITS_OF_FAILURE,
  EventRecorder,
  type RecorderOptions,
} from '../../../src/telemetry/events/recorder.ts';
import { openAccess } from '../../sources/api/harness.ts';
import { type Fault, TestApiServer } from '../../support/apiServer/index.ts';
import { MemoryNetwork } from '../../support/apiServer/memoryNetwork.ts';
import { ALWAYS, status } from '../../sources/api/faults.ts';
import type { FakeClock } from '../../time/fakeClock.ts';

const MINUTE = 60_000;
const HANGS: Fault = { kind: 'hang' };
const FAILING = 'FailedToStartServiceHealthcheck';

interface Stage {
  readonly clock: FakeClock;
  readonly server: TestApiServer;
  readonly recorder: EventRecorder;
  readonly logged: readonly string[];
  /** From now on there is an API server to tell. */
  readonly start: () => void;
  /** The next requests meet these. */
  readonly meet: (...faults: readonly Fault[]) => void;
  /** `POST Starting`, `PATCH count=3`; those that reached the server. */
  readonly requests: readonly string[];
}

async function begin(options: Partial<RecorderOptions> = {}): Promise<Stage> {
  const network = new MemoryNetwork();
  const { clock } = network;
  const server = await TestApiServer.start({ network });
  const createDispatcher = network.createDispatcher.bind(network);
  const client = new ApiClient({ access: openAccess(server.url), clock, createDispatcher });
  onTestFinished(async () => {
    await client.close();
    await server.close();
  });
  const logged: string[] = [];
  const requests: string[] = [];
  let random = 0;
  const recorder = new EventRecorder({
    nodeName: 'node-a',
    clock,
    time: () => 1_000_000_000_000 + clock.now(),
    random: () => {
      random = (random + 0.1) % 1;
      return random;
    },
    log: {
      warn: (message, fields) => logged.push(`W ${message} ${JSON.stringify(fields)}`),
      verbose: (level, message) => logged.push(`${level} ${message}`),
    },
    ...options,
  });
  return {
    clock,
    server,
    recorder,
    logged,
    requests,
    start: () =>
      recorder.start((request, signal) => {
        const { reason, series } = request.body as { reason?: string; series?: { count: number } };
        requests.push([request.method, reason, series && `count=${series.count}`].filter(Boolean).join(' '));
        return client.send(request, signal);
      }),
    meet: (...faults) => {
      for (const fault of faults) server.faults.add({ on: 'other', fault });
    },
  };
}

async function started(options: Partial<RecorderOptions> = {}): Promise<Stage> {
  const stage = await begin(options);
  stage.start();
  return stage;
}

function failing(name = 'web', error = 'in use'): EventReport {
  return failedToStartServiceHealthcheck('node-a', `shop/${name}`, 31000, error);
}

describe('recording', () => {
  it('sends one after the other, in order, and not before whoever records goes on', async () => {
    const { recorder, requests, clock, server } = await started();
    for (const report of [starting('node-a'), failing(), failing('api')]) recorder.record(report);
    expect(requests).toEqual([]);
    await clock.advance(0);
    expect(requests).toEqual(['POST Starting', `POST ${FAILING}`, `POST ${FAILING}`]);
    const [event] = server.events;
    expect(event?.path).toBe('/apis/events.k8s.io/v1/namespaces/default/events');
    expect(event?.body).toMatchObject({ metadata: { name: expect.stringMatching(/^node-a\.[0-9a-f]+$/) } });
    expect(recorder.counts).toEqual({ sent: 3, failed: 0, dropped: 0 });
  });

  it('keeps what comes before there is an API server to tell', async () => {
    const { recorder, start, clock, server, requests } = await begin();
    recorder.record(starting('node-a'));
    for (let time = 0; time < 5; time++) recorder.record(failing());
    await clock.advance(MINUTE);
    start();
    await clock.advance(7 * MINUTE);
    expect(requests).toEqual(['POST Starting', `POST ${FAILING}`, 'PATCH count=5']);
    expect(server.events[0]?.body).toMatchObject({ eventTime: '2001-09-09T01:46:40.000000Z' });
  });
});

describe('repetitions', () => {
  /** Minutes at which the same happens. */
  it.each<[string, readonly number[], readonly string[], events: number]>([
    [
      'count up one event: the first at once, later ones every six minutes',
      Array.from({ length: 14 }, (_, minute) => minute),
      [`POST ${FAILING}`, 'PATCH count=2', 'PATCH count=6', 'PATCH count=12', 'PATCH count=14'],
      1,
    ],
    ['after six quiet minutes are a new event', [0, 6], [`POST ${FAILING}`, `POST ${FAILING}`], 2],
  ])('%s', async (_, minutes, expected, events) => {
    const { recorder, clock, requests, server } = await started();
    for (const minute of minutes) {
      await clock.advance(minute * MINUTE - clock.now());
      recorder.record(failing('web', `attempt ${minute}`));
    }
    await clock.advance(60 * MINUTE);
    expect(requests).toEqual(expected);
    expect(server.events).toHaveLength(events);
    expect(server.events[0]?.body).toMatchObject({ note: expect.stringContaining('attempt 0') });
    expect(clock.pending).toBe(0);
  });

  it('of an event that the API server has forgotten make a new one with the count', async () => {
    const { recorder, clock, requests, server } = await started();
    for (let time = 0; time < 3; time++) {
      recorder.record(failing());
      await clock.advance(0);
      if (time === 0) server.events.length = 0;
    }
    await clock.advance(7 * MINUTE);
    const again = [`POST ${FAILING} count=2`, 'PATCH count=3'];
    expect(requests).toEqual([`POST ${FAILING}`, 'PATCH count=2', ...again]);
    expect(server.events.map(({ body }) => body)).toMatchObject([{ series: { count: 3 } }]);
  });
});

describe('trouble', () => {
  it.each([
    ...[503, 429].map((code) => [String(code), status(code)] as const),
    ['a broken connection', { kind: 'reset' }] as const,
  ])('%s is tried again, later and later', async (_, fault) => {
    const { recorder, clock, requests, meet } = await started({ random: () => 0.5 });
    meet(fault, fault, fault);
    recorder.record(starting('node-a'));
    const counts: number[] = [];
    for (const wait of [0, 750, 1500, 3000]) {
      await clock.advance(wait);
      counts.push(requests.length);
    }
    expect(counts).toEqual([1, 2, 3, 4]);
    expect(recorder.counts).toEqual({ sent: 1, failed: 0, dropped: 0 });
  });

  it.each([400, 403])('%s is not tried again', async (code) => {
    const { recorder, clock, requests, meet } = await started();
    meet(status(code));
    recorder.record(starting('node-a'));
    recorder.record(failing());
    await clock.advance(10 * MINUTE);
    expect(requests).toEqual(['POST Starting', `POST ${FAILING}`]);
    expect(recorder.counts).toEqual({ sent: 1, failed: 1, dropped: 0 });
  });

  it('that is a refusal is logged once, with what to allow', async () => {
    const { recorder, clock, logged, meet } = await started();
    meet(status(403), status(403));
    recorder.record(starting('node-a'));
    recorder.record(failing());
    await clock.advance(0);
    expect(logged).toEqual([
      expect.stringMatching(/^W The API server refused an event .*"status":403.*create, patch and update/),
      '2 The API server refused an event',
    ]);
  });

  it.each([
    // Its answer was lost: it exists already.
    ['a post', [starting('node-a')], ['POST Starting', 'POST Starting']],
    ['a patch', [failing(), failing()], [`POST ${FAILING}`, 'PATCH count=2', 'PATCH count=2']],
  ])('of a conflict with %s ends well', async (what, reports, expected) => {
    const { recorder, clock, requests, meet, server } = await started();
    for (const [index, report] of reports.entries()) {
      if (index === reports.length - 1) meet(...(what === 'a post' ? [HANGS, status(409)] : [status(409)]));
      recorder.record(report);
      await clock.advance(0);
    }
    await clock.advance(20_000);
    expect(requests).toEqual(expected);
    expect(recorder.counts.failed).toBe(0);
    expect(server.log.map(({ headers }) => headers['content-length'])[0]).toBeDefined();
  });

  it('is given up after ten seconds, and an event after twelve attempts', async () => {
    const { recorder, clock, server, requests } = await started();
    server.faults.add({ on: 'other', fault: HANGS, times: 12 });
    recorder.record(starting('node-a'));
    await clock.advance(10_000);
    expect(requests).toHaveLength(1);
    await clock.advance(1000);
    expect(requests).toHaveLength(2);
    await clock.advance(60 * MINUTE);
    expect(requests).toHaveLength(12);
    expect(recorder.counts).toEqual({ sent: 0, failed: 1, dropped: 0 });
  });

  it('leaves no room in the queue: what is dropped is counted, and new when it comes again', async () => {
    const { recorder, clock, meet, requests } = await started({ capacity: 3 });
    meet(HANGS);
    for (let index = 0; index < 10; index++) recorder.record(failing(`web-${index}`));
    await clock.advance(0);
    expect(recorder.counts.dropped).toBe(7);
    await clock.advance(MINUTE);
    expect(recorder.counts).toEqual({ sent: 3, failed: 0, dropped: 7 });
    recorder.record(failing('web-9'));
    await clock.advance(0);
    expect(requests.at(-1)).toBe(`POST ${FAILING}`);
  });
});

describe('the end', () => {
  /** When it came, in milliseconds. */
  async function ended({ recorder, clock }: Stage, limits?: typeof END_LIMITS_OF_FAILURE): Promise<number> {
    const from = clock.now();
    const ends: number[] = [];
    const stopping = recorder.stop(limits).then(() => ends.push(clock.now() - from));
    await clock.advance(0);
    while (ends.length === 0) await clock.advanceToNext();
    await stopping;
    expect(clock.pending).toBe(0);
    return ends[0] ?? 0;
  }

  /** Two events; the requests meet the fault, each, until the end comes so much later. */
  it.each<[string, Fault, times: number, after: number, comes: number, sent: number]>([
    ['without the pause of a failure', status(503), 1, 0, 0, 2],
    ['with the next failure', status(503), ALWAYS, 0, 0, 0],
    ['half a second after the request', HANGS, ALWAYS, 0, 500, 0],
    ['at once where the request is old', HANGS, ALWAYS, 5000, 0, 0],
    ['at the deadline, where answers are slow', { kind: 'late', ms: 400 }, ALWAYS, 0, 800, 2],
  ])('comes %s', async (_, fault, times, after, comes, sent) => {
    const stage = await started();
    stage.server.faults.add({ on: 'other', fault, times });
    stage.recorder.record(starting('node-a'));
    stage.recorder.record(failing());
    await stage.clock.advance(after);
    expect(await ended(stage)).toBe(comes);
    expect(stage.recorder.counts).toEqual({ sent, failed: 0, dropped: 2 - sent });
  });

  it('waits longer for the event that says why the process ends', async () => {
    const stage = await started();
    stage.server.faults.add({ on: 'other', fault: { kind: 'late', ms: 4900 } });
    stage.recorder.record(failing());
    expect(await ended(stage, END_LIMITS_OF_FAILURE)).toBe(4900);
    expect(stage.recorder.counts).toEqual({ sent: 1, failed: 0, dropped: 0 });
  });

  it('is at once when there never was an API server', async () => {
    const stage = await begin();
    stage.recorder.record(starting('node-a'));
    expect(await ended(stage)).toBe(0);
    stage.recorder.record(failing());
    stage.start();
    await stage.clock.advance(0);
    expect(stage.requests).toEqual([]);
    expect(stage.recorder.counts).toEqual({ sent: 0, failed: 0, dropped: 2 });
  });
});
