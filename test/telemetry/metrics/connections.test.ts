import { beforeEach, describe, expect, test } from 'vitest';
import { type ConnectionReading, Connections } from '../../../src/telemetry/metrics/connections.ts';

describe('connections by service and by endpoint', () => {
  let time = 0;
  let costMs = 0;
  let readings: readonly ConnectionReading[] | Error = [];
  let reads = 0;
  let connections = new Connections({ read: () => Promise.resolve([]), now: () => 0 });

  beforeEach(() => {
    [time, costMs, reads, readings] = [0, 0, 0, []];
    start(4);
  });

  function start(mostSeries: number): void {
    connections = new Connections({
      mostSeries,
      now: () => time,
      read: () => {
        reads++;
        time += costMs;
        return readings instanceof Error ? Promise.reject(readings) : Promise.resolve(readings);
      },
    });
  }

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
    time += 10_000;
    return shownNow();
  }

  async function shownNow(): Promise<readonly string[]> {
    const families = await connections.collect();
    return families.flatMap(({ name, samples }) =>
      samples.map(({ labels, value }) => {
        const of = new Map(labels);
        const kind = name.replace(/^junction_(\w+)_connections_total$/, '$1');
        const words = [of.get('service_port') ?? '-', of.get('endpoint'), value];
        return [kind, ...words.filter((word) => word !== undefined)].join(' ');
      }),
    );
  }

  test('a service has as many as its endpoints together', async () => {
    counted('web a 3', 'web b 4', 'api c 1');
    expect(await shown()).toEqual([
      'service web 7',
      'service api 1',
      'endpoint web a 3',
      'endpoint web b 4',
      'endpoint api c 1',
    ]);
  });

  test('what was counted stays when counting begins anew', async () => {
    counted('web a 10');
    await shown();
    counted('web a 2');
    expect(await shown()).toEqual(['service web 12', 'endpoint web a 12']);
    counted('web a 3');
    expect(await shown()).toEqual(['service web 13', 'endpoint web a 13']);
    counted('web a 1');
    expect(await shown()).toEqual(['service web 14', 'endpoint web a 14']);
  });

  test('a service keeps what its gone endpoints had; never does a number fall', async () => {
    counted('web a 10', 'web b 20');
    await shown();
    counted('web a 12');
    const [service, ...endpoints] = await shown();
    expect(service).toBe('service web 32');
    expect(endpoints).toEqual(['endpoint web a 12']);
    counted('web a 12', 'web b 1');
    expect((await shown())[0]).toBe('service web 33');
  });

  test('one endpoint begins anew while another has more than it lost', async () => {
    counted('web a 10', 'web b 20');
    await shown();
    counted('web a 50', 'web b 0');
    expect((await shown())[0]).toBe('service web 70');
  });

  test('each that counts for an endpoint counts for itself, and what one of them had is kept when it goes', async () => {
    counted('web a 10 any-2', 'web a 5 ports-any-2');
    expect(await shown()).toEqual(['service web 15', 'endpoint web a 15']);
    counted('web a 11 any-2');
    expect(await shown()).toEqual(['service web 16', 'endpoint web a 16']);
    counted('web a 30 any-3');
    expect(await shown()).toEqual(['service web 46', 'endpoint web a 46']);
  });

  test('what is counted in two places is added once; and so when it is not any more', async () => {
    counted('web a 10');
    await shown();
    counted('web a 12 any-1 *', 'web a 90 connections-tcp');
    expect(await shown()).toEqual(['service web 100', 'endpoint web a 100']);
    counted('web a 15 any-1 *', 'web a 91 connections-tcp');
    expect(await shown()).toEqual(['service web 101', 'endpoint web a 101']);
    counted('web a 19');
    expect(await shown()).toEqual(['service web 105', 'endpoint web a 105']);
  });

  test('nor is it added twice among those without a series', async () => {
    start(1);
    counted('one a 1', 'web a 10 any-1 *', 'web a 40 connections-tcp');
    expect(await shown()).toEqual(['service one 1', 'service - 40', 'endpoint one a 1', 'endpoint - 40']);
  });

  test('one that is met twice in a reading counts once', async () => {
    counted('web a 10', 'web a 10');
    expect(await shown()).toEqual(['service web 10', 'endpoint web a 10']);
  });

  test('what is gone is not shown', async () => {
    counted('web a 10', 'api c 1');
    await shown();
    counted('api c 1');
    expect(await shown()).toEqual(['service api 1', 'endpoint api c 1']);
  });

  test('there are only so many series; those that came first stay, the others are added up', async () => {
    start(2);
    counted('one a 1', 'two a 2', 'three a 3', 'four a 4');
    expect(await shown()).toEqual([
      'service one 1',
      'service two 2',
      'service - 7',
      'endpoint one a 1',
      'endpoint two a 2',
      'endpoint - 7',
    ]);
    counted('four a 5', 'three a 3', 'two a 2', 'one a 1');
    expect(await shown()).toEqual([
      'service one 1',
      'service two 2',
      'service - 8',
      'endpoint one a 1',
      'endpoint two a 2',
      'endpoint - 8',
    ]);
  });

  test('the rest does not fall when some of it goes, or gets a series of its own', async () => {
    start(2);
    counted('one a 1', 'two a 2', 'three a 3', 'four a 4');
    await shown();
    counted('one a 1', 'three a 3', 'four a 4');
    const later = await shown();
    expect(later.filter((line) => line.startsWith('service'))).toEqual([
      'service one 1',
      'service three 3',
      'service - 7',
    ]);
  });

  test('it is read once in a while, the more seldom the more it costs', async () => {
    counted('web a 1');
    await shown();
    await shownNow();
    time += 4000;
    await shownNow();
    expect(reads).toBe(1);
    time += 2000;
    costMs = 300;
    await shownNow();
    expect(reads).toBe(2);
    time += 20_000;
    await shownNow();
    expect(reads).toBe(2);
    time += 11_000;
    await shownNow();
    expect(reads).toBe(3);
  });

  test('where it cannot be read, the last reading is shown', async () => {
    counted('web a 1');
    await shown();
    readings = new Error('the kernel does not answer');
    expect(await shown()).toEqual(['service web 1', 'endpoint web a 1']);
  });

  test('two who ask at once wait for one reading', async () => {
    counted('web a 1');
    time += 10_000;
    await Promise.all([shownNow(), shownNow()]);
    expect(reads).toBe(1);
  });
});
