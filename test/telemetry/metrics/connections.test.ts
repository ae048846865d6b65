import { beforeEach, describe, expect, test } from 'vitest';
import { Registry } from '../../../src/telemetry/metrics/instruments.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import { type ConnectionReading, Connections } from '../../../src/telemetry/metrics/connections.ts';

describe('connections by service and by endpoint', () => {
  let clock = new FakeClock();
  let readings: readonly ConnectionReading[] | Error = [];
  let hanging: Promise<readonly ConnectionReading[]> | undefined;
  let reads = 0;
  let registry = new Registry();

  beforeEach(() => start(4));

  function start(maxSeries: number): void {
    [clock, registry, reads, readings, hanging] = [new FakeClock(), new Registry(), 0, [], undefined];
    const read = (): Promise<readonly ConnectionReading[]> => {
      reads++;
      const waiting = hanging;
      hanging = undefined;
      return waiting ?? (readings instanceof Error ? Promise.reject(readings) : Promise.resolve(readings));
    };
    registry.add(new Connections({ maxSeries, clock, read }));
  }

  /** The next reading does not end before what is returned is called. */
  function hang(): (answer: typeof readings) => void {
    let end: (answer: readonly ConnectionReading[]) => void = () => undefined;
    hanging = new Promise((resolve) => {
      end = resolve;
    });
    return (answer) => end(answer instanceof Error ? [] : answer);
  }

  const page = (): Promise<string> => registry.print();

  /** `web a 3`: so many of a service went to an endpoint; `web a 3 any-2` names what counted them, `… *` says others did too. */
  function counted(...lines: readonly string[]): void {
    readings = lines.map((line) => {
      const [servicePort = '', endpoint = '', number, element = 'any-1', elsewhere] = line.split(' ');
      return {
        family: 'IPv4',
        protocol: 'TCP',
        servicePort,
        endpoint,
        element: `${element} ${endpoint}`,
        connections: Number(number),
        isCountedElsewhere: elsewhere === '*',
      };
    });
  }

  /** After the pause; `service web 3`, `endpoint web a 3`, `service - 3` for the rest. */
  async function shown(): Promise<readonly string[]> {
    await clock.advance(30_000);
    return shownNow();
  }

  async function shownNow(): Promise<readonly string[]> {
    const families = await registry.collect();
    const counters = families.filter(({ type }) => type === 'counter');
    return counters.flatMap(({ name, samples }) =>
      samples.map(({ labels, value }) => {
        const of = new Map(labels);
        const kind = name.replace(/^junction_(\w+)_connections_total$/, '$1');
        const words = [of.get('service_port') ?? '-', of.get('endpoint'), value];
        return [kind, ...words.filter((word) => word !== undefined)].join(' ');
      }),
    );
  }

  /** Each reading, and what is shown after it. */
  test.each<[string, maxSeries: number, ...readings: (readonly [read: string, shown: string])[]]>([
    [
      'a service has as many as its endpoints together',
      4,
      [
        'web a 3, web b 4, api c 1',
        'service web 7, service api 1, endpoint web a 3, endpoint web b 4, endpoint api c 1',
      ],
    ],
    [
      'what was counted stays when counting begins anew',
      4,
      ['web a 10', 'service web 10, endpoint web a 10'],
      ['web a 2', 'service web 12, endpoint web a 12'],
      ['web a 3', 'service web 13, endpoint web a 13'],
      ['web a 1', 'service web 14, endpoint web a 14'],
    ],
    [
      'a service keeps what its gone endpoints had, and never falls',
      4,
      ['web a 10, web b 20', 'service web 30, endpoint web a 10, endpoint web b 20'],
      ['web a 12', 'service web 32, endpoint web a 12'],
      ['web a 50, web b 0', 'service web 70, endpoint web a 50, endpoint web b 0'],
    ],
    [
      'each that counts for an endpoint counts for itself, and what one of them had is kept when it goes',
      4,
      ['web a 10 any-2, web a 5 ports-any-2', 'service web 15, endpoint web a 15'],
      ['web a 11 any-2', 'service web 16, endpoint web a 16'],
      ['web a 30 any-3', 'service web 46, endpoint web a 46'],
    ],
    [
      'what is counted in two places is added once; and so when it is not any more',
      4,
      ['web a 10', 'service web 10, endpoint web a 10'],
      ['web a 12 any-1 *, web a 90 connections-tcp', 'service web 100, endpoint web a 100'],
      ['web a 15 any-1 *, web a 91 connections-tcp', 'service web 101, endpoint web a 101'],
      ['web a 19', 'service web 105, endpoint web a 105'],
    ],
    [
      'nor is it added twice among those without a series',
      1,
      [
        'one a 1, web a 10 any-1 *, web a 40 connections-tcp',
        'service one 1, service - 40, endpoint one a 1, endpoint - 40',
      ],
    ],
    [
      'one that is met twice in a reading counts once',
      4,
      ['web a 10, web a 10', 'service web 10, endpoint web a 10'],
    ],
    [
      'what is gone is not shown',
      4,
      ['web a 10, api c 1', 'service web 10, service api 1, endpoint web a 10, endpoint api c 1'],
      ['api c 1', 'service api 1, endpoint api c 1'],
    ],
    [
      'there are only so many series; those that came first stay, the rest is added up and does not fall',
      2,
      [
        'one a 1, two a 2, three a 3, four a 4',
        'service one 1, service two 2, service - 7, endpoint one a 1, endpoint two a 2, endpoint - 7',
      ],
      [
        'four a 5, three a 3, two a 2, one a 1',
        'service one 1, service two 2, service - 8, endpoint one a 1, endpoint two a 2, endpoint - 8',
      ],
      [
        'one a 1, three a 3, four a 4',
        'service one 1, service three 3, service - 8, endpoint one a 1, endpoint three a 3, endpoint - 8',
      ],
    ],
  ])('%s', async (_, maxSeries, ...steps) => {
    start(maxSeries);
    for (const [read, expected] of steps) {
      counted(...read.split(', '));
      expect((await shown()).join(', ')).toBe(expected);
    }
  });

  test('a reading is kept for 30 s, and says how old it is', async () => {
    counted('web a 1');
    expect(await page()).toMatch(/^junction_connections_age_seconds 0$/m);
    await clock.advance(29_000);
    counted('web a 2');
    expect(await page()).toMatch(/^junction_connections_age_seconds 29$/m);
    expect(await shownNow()).toEqual(['service web 1', 'endpoint web a 1']);
    await clock.advance(1000);
    expect(await page()).toMatch(/^junction_connections_age_seconds 0$/m);
    expect(await shownNow()).toEqual(['service web 2', 'endpoint web a 2']);
    expect(reads).toBe(2);
  });

  test('a reading that takes more than 2 s is answered by the last one with its age, and shown when it is there', async () => {
    counted('web a 1');
    await page();
    await clock.advance(60_000);
    const answer = hang();
    const asked = page();
    await clock.advance(1999);
    expect(await Promise.race([asked, Promise.resolve('waits')])).toBe('waits');
    await clock.advance(1);
    expect(await asked).toMatch(/^junction_connections_age_seconds 62$/m);
    expect(await shownNow()).toEqual(['service web 1', 'endpoint web a 1']);
    await clock.advance(30_000);
    expect(await page()).toMatch(/^junction_connections_age_seconds 92$/m);
    expect(reads).toBe(2);
    counted('web a 5');
    answer(readings);
    await clock.advance(0);
    expect(await shownNow()).toEqual(['service web 5', 'endpoint web a 5']);
    // It is as old as its beginning, so the next scrape reads again.
    expect(reads).toBe(3);
  });

  test('a first reading that takes more than 2 s: a page without these series, and with them when it is there', async () => {
    counted('web a 1');
    const answer = hang();
    const asked = page();
    await clock.advance(2000);
    expect(await asked).toBe('');
    answer(readings);
    await clock.advance(0);
    expect(await page()).toContain('junction_endpoint_connections_total{endpoint="a",');
    expect(reads).toBe(1);
  });

  test('where it cannot be read, the last reading is shown', async () => {
    counted('web a 1');
    await shown();
    readings = new Error('the kernel does not answer');
    expect(await shown()).toEqual(['service web 1', 'endpoint web a 1']);
    expect(await page()).toMatch(/^junction_connections_age_seconds 30$/m);
  });

  test('two who ask at once wait for one reading', async () => {
    counted('web a 1');
    await Promise.all([shownNow(), shownNow()]);
    expect(reads).toBe(1);
  });
});
