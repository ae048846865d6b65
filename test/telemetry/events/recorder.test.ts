import { beforeEach, describe, expect, it } from 'vitest';
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
import { FakeClock, settle } from '../../time/fakeClock.ts';
import { FakeApi } from './fakeApi.ts';

const MINUTE = 60_000;

let clock: FakeClock;
let api: FakeApi;
let logged: string[];

beforeEach(() => {
  clock = new FakeClock();
  api = new FakeApi();
  logged = [];
});

function makeRecorder(options: Partial<RecorderOptions> = {}): EventRecorder {
  let random = 0;
  return new EventRecorder({
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
}

function startRecorder(options: Partial<RecorderOptions> = {}): EventRecorder {
  const recorder = makeRecorder(options);
  recorder.start(api.send);
  return recorder;
}

function failing(name = 'web', error = 'in use'): EventReport {
  return failedToStartServiceHealthcheck('node-a', `shop/${name}`, 31000, error);
}

describe('recording', () => {
  it('posts', async () => {
    const recorder = startRecorder();
    recorder.record(starting('node-a'));
    expect(api.requests).toEqual([]); // not before whoever records goes on
    await settle();
    expect(api.requests).toEqual(['POST Starting']);
    expect([...api.events.keys()][0]).toMatch(/\/namespaces\/default\/events\/node-a\.[0-9a-f]+$/);
    expect(recorder.counts).toEqual({ sent: 1, failed: 0, dropped: 0 });
  });

  it('keeps what comes before there is an API server to tell', async () => {
    const recorder = makeRecorder();
    recorder.record(starting('node-a'));
    await clock.advance(MINUTE);
    recorder.start(api.send);
    await settle();
    expect(api.requests).toEqual(['POST Starting']);
    expect(api.bodies[0]).toMatchObject({ eventTime: '2001-09-09T01:46:40.000000Z' });
  });

  it('takes one after the other, in order', async () => {
    const recorder = startRecorder();
    recorder.record(starting('node-a'));
    recorder.record(failing());
    recorder.record(failing('api'));
    await settle();
    expect(api.requests).toEqual([
      'POST Starting',
      'POST FailedToStartServiceHealthcheck',
      'POST FailedToStartServiceHealthcheck',
    ]);
    expect(api.events.size).toBe(3);
  });
});

describe('repetitions', () => {
  it('count up one event: the first at once, later ones every six minutes', async () => {
    const recorder = startRecorder();
    for (let minute = 0; minute < 14; minute++) {
      recorder.record(failing('web', `attempt ${minute}`));
      await clock.advance(MINUTE);
    }
    expect(api.requests).toEqual([
      'POST FailedToStartServiceHealthcheck',
      'PATCH count=2',
      'PATCH count=6',
      'PATCH count=12',
    ]);
    const [event] = api.events.values();
    expect(api.events.size).toBe(1);
    expect(event).toMatchObject({
      note: expect.stringContaining('attempt 0'),
      series: { count: 12, lastObservedTime: '2001-09-09T01:57:40.000000Z' },
    });
  });

  it('after six quiet minutes are a new event', async () => {
    const recorder = startRecorder();
    recorder.record(failing());
    await clock.advance(6 * MINUTE);
    recorder.record(failing());
    await settle();
    expect(api.events.size).toBe(2);
  });

  it('after six quiet minutes are a new event, though the series is looked at later', async () => {
    const recorder = startRecorder();
    recorder.record(failing());
    await clock.advance(MINUTE);
    recorder.record(failing());
    await clock.advance(6.5 * MINUTE);
    recorder.record(failing());
    await settle();
    expect(api.requests).toEqual([
      'POST FailedToStartServiceHealthcheck',
      'PATCH count=2',
      'POST FailedToStartServiceHealthcheck',
    ]);
    await clock.advance(60 * MINUTE);
    expect(clock.pending).toBe(0);
  });

  it('of an event that the API server has forgotten make a new one with the count', async () => {
    const recorder = startRecorder();
    recorder.record(failing());
    await settle();
    api.events.clear();
    recorder.record(failing());
    await settle();
    recorder.record(failing());
    await clock.advance(7 * MINUTE);
    expect(api.requests).toEqual([
      'POST FailedToStartServiceHealthcheck',
      'PATCH count=2',
      'POST FailedToStartServiceHealthcheck count=2',
      'PATCH count=3',
    ]);
    expect([...api.events.values()]).toMatchObject([{ series: { count: 3 } }]);
  });

  it('that come before the event is sent are one patch with the newest count', async () => {
    const recorder = makeRecorder();
    for (let time = 0; time < 5; time++) recorder.record(failing());
    recorder.start(api.send);
    await clock.advance(7 * MINUTE);
    expect(api.requests).toEqual(['POST FailedToStartServiceHealthcheck', 'PATCH count=5']);
  });
});

describe('trouble', () => {
  it.each([500, 503, 429, 408, 401, 'refuse'] as const)(
    '%s is tried again, later and later',
    async (answer) => {
      const recorder = startRecorder({ random: () => 0.5 });
      api.answers.push(answer, answer, answer);
      recorder.record(starting('node-a'));
      const counts: number[] = [];
      for (const wait of [0, 750, 1500, 3000]) {
        await clock.advance(wait);
        counts.push(api.requests.length);
      }
      expect(counts).toEqual([1, 2, 3, 4]);
      expect(recorder.counts).toEqual({ sent: 1, failed: 0, dropped: 0 });
    },
  );

  it.each([400, 403, 404, 413, 422])('%s is not tried again', async (status) => {
    const recorder = startRecorder();
    api.answers.push(status);
    recorder.record(starting('node-a'));
    recorder.record(failing());
    await clock.advance(10 * MINUTE);
    expect(api.requests).toEqual(['POST Starting', 'POST FailedToStartServiceHealthcheck']);
    expect(recorder.counts).toEqual({ sent: 1, failed: 1, dropped: 0 });
  });

  it('says once that events are forbidden, and what to allow', async () => {
    const recorder = startRecorder();
    api.answers.push(403, 403);
    recorder.record(starting('node-a'));
    recorder.record(failing());
    await settle();
    expect(logged).toEqual([
      expect.stringMatching(/^W The API server refused an event .*"status":403.*create, patch and update/),
      '2 The API server refused an event',
    ]);
  });

  it('takes "already exists" for an attempt whose answer was lost', async () => {
    const recorder = startRecorder();
    api.answers.push('hang', 409);
    recorder.record(starting('node-a'));
    await clock.advance(12_000);
    expect(api.requests).toEqual(['POST Starting', 'POST Starting']);
    expect(api.bodies[0]).toEqual(api.bodies[1]);
    expect(recorder.counts).toEqual({ sent: 1, failed: 0, dropped: 0 });
  });

  it('tries a patch again that met another', async () => {
    const recorder = startRecorder();
    recorder.record(failing());
    await settle();
    api.answers.push(409);
    recorder.record(failing());
    await clock.advance(2000);
    expect(api.requests.slice(1)).toEqual(['PATCH count=2', 'PATCH count=2']);
  });

  it('gives up a request after ten seconds, and an event after twelve attempts', async () => {
    const recorder = startRecorder();
    api.answers.push(...Array.from({ length: 12 }, () => 'hang' as const));
    recorder.record(starting('node-a'));
    await clock.advance(9_999);
    expect(api.aborted).toBe(0);
    await clock.advance(1);
    expect(api.aborted).toBe(1);
    await clock.advance(60 * MINUTE);
    expect(api.aborted).toBe(12);
    expect(recorder.counts).toEqual({ sent: 0, failed: 1, dropped: 0 });
  });

  it('survives a sender that throws at once', async () => {
    const recorder = makeRecorder();
    let calls = 0;
    recorder.start(() => {
      calls += 1;
      throw new Error('no client');
    });
    expect(() => recorder.record(starting('node-a'))).not.toThrow();
    await clock.advance(1000);
    expect(calls).toBe(2);
  });

  it('drops what the queue has no room for, and counts it', async () => {
    const recorder = startRecorder({ capacity: 3 });
    api.answers.push('hang');
    for (let index = 0; index < 10; index++) recorder.record(failing(`web-${index}`));
    await settle();
    expect(recorder.counts.dropped).toBe(7);
    await clock.advance(MINUTE);
    expect(recorder.counts).toEqual({ sent: 3, failed: 0, dropped: 7 });
    recorder.record(failing('web-9')); // had no room before, so it is no repetition
    await settle();
    expect(api.requests.at(-1)).toBe('POST FailedToStartServiceHealthcheck');
  });
});

describe('the end', () => {
  it('sends what waits, and counts that nobody has been told', async () => {
    const recorder = startRecorder();
    for (let time = 0; time < 4; time++) {
      recorder.record(failing());
      await settle();
    }
    recorder.record(starting('node-a'));
    await recorder.stop();
    expect(api.requests).toEqual([
      'POST FailedToStartServiceHealthcheck',
      'PATCH count=2',
      'POST Starting',
      'PATCH count=4',
    ]);
    expect(clock.pending).toBe(0);
  });

  it('does not sit out a pause', async () => {
    const recorder = startRecorder();
    api.answers.push(503);
    recorder.record(starting('node-a'));
    await settle();
    await recorder.stop();
    expect(recorder.counts).toEqual({ sent: 1, failed: 0, dropped: 0 });
  });

  it.each(['refuse', 503] as const)('comes with the next failure, without a pause: %s', async (answer) => {
    const recorder = startRecorder();
    api.answers.push(...Array.from({ length: 20 }, () => answer));
    recorder.record(starting('node-a'));
    recorder.record(failing());
    await settle();
    expect(api.requests).toHaveLength(1);
    await recorder.stop();
    expect(api.requests).toHaveLength(2);
    expect(recorder.counts).toEqual({ sent: 0, failed: 0, dropped: 2 });
    expect(clock.pending).toBe(0);
  });

  it.each([
    ['half a second after the request', 0, 499],
    ['at once where the request is old', 5000, 0],
    ['half a second after the next request, where the last one was given up', 10_001, 499],
  ])('comes %s, where the API server does not answer', async (_, after, still) => {
    const recorder = startRecorder();
    api.answers.push(...Array.from({ length: 20 }, () => 'hang' as const));
    recorder.record(starting('node-a'));
    recorder.record(failing());
    await settle();
    await clock.advance(after);
    let ended = false;
    const stopping = recorder.stop().then(() => {
      ended = true;
    });
    if (still > 0) {
      await clock.advance(still);
      expect(ended).toBe(false);
    }
    await clock.advance(1);
    expect(ended).toBe(true);
    await stopping;
    expect(recorder.counts).toEqual({ sent: 0, failed: 0, dropped: 2 });
    expect(clock.pending).toBe(0);
  });

  it('waits longer for the event that says why the process ends', async () => {
    const recorder = makeRecorder();
    recorder.start(
      () =>
        new Promise((resolve) => {
          clock.schedule(4900, () => resolve({ status: 201 }));
        }),
    );
    recorder.record(failing());
    await settle();
    const stopping = recorder.stop(END_LIMITS_OF_FAILURE);
    await clock.advance(4900);
    await stopping;
    expect(recorder.counts).toEqual({ sent: 1, failed: 0, dropped: 0 });
  });

  it('comes at the deadline, however many wait for an API server that answers slowly', async () => {
    const recorder = makeRecorder();
    let asked = 0;
    recorder.start(
      () =>
        new Promise((resolve) => {
          asked++;
          clock.schedule(400, () => resolve({ status: 201 }));
        }),
    );
    for (let number = 0; number < 20; number++) recorder.record(failing(`web-${number}`));
    await settle();
    let ended = false;
    const stopping = recorder.stop().then(() => {
      ended = true;
    });
    await clock.advance(1999);
    expect(ended).toBe(false);
    await clock.advance(1);
    expect(ended).toBe(true);
    await stopping;
    expect(asked).toBeGreaterThanOrEqual(5);
  });

  it('is at once when there never was an API server', async () => {
    const recorder = makeRecorder();
    recorder.record(starting('node-a'));
    await recorder.stop();
    recorder.record(failing());
    recorder.start(api.send);
    await settle();
    expect(api.requests).toEqual([]);
    expect(recorder.counts).toEqual({ sent: 0, failed: 0, dropped: 2 });
  });
});
