import { afterEach, describe, expect, test } from 'vitest';
import {
  healthCheckAddresses,
  type HealthCheckFailure,
  type ServiceHealthOptions,
  ServiceHealthServers,
} from '../../../src/telemetry/http/healthCheckNodePorts.ts';
import { cidr, ip } from '../../plan/given.ts';
import { ask, freePort, holdPort, keptLog, requireIpv6 } from './support.ts';

const opened: ServiceHealthServers[] = [];
afterEach(() => Promise.all(opened.splice(0).map((servers) => servers.close())));

function stage(options: Partial<ServiceHealthOptions> = {}) {
  const { log, lines } = keptLog();
  const failures: HealthCheckFailure[] = [];
  const health = { healthy: true };
  const servers = new ServiceHealthServers({
    family: 'IPv4',
    nodeName: 'node1',
    addresses: [ip('127.0.0.1')],
    isHealthy: () => health.healthy,
    log,
    onFailure: (failure) => failures.push(failure),
    ...options,
  });
  opened.push(servers);
  return { servers, lines, failures, health };
}

const refused = (port: number, host = '127.0.0.1'): Promise<unknown> =>
  expect(ask(port, '/', { host })).rejects.toThrow('ECONNREFUSED');

test.each([
  [1, true, 200],
  [0, true, 503],
  [3, false, 503],
])('%d endpoints here, proxy healthy %s: %d', async (count, healthy, expected) => {
  const { servers, health } = stage();
  const port = await freePort();
  await servers.sync(new Map([['a/b', port]]), new Map([['a/b', count]]));
  health.healthy = healthy;
  const { status, headers, body } = await ask(port, '/');
  expect(status).toBe(expected);
  expect(headers['x-load-balancing-endpoint-weight']).toBe(String(count));
  expect(JSON.parse(body)).toMatchObject({ localEndpoints: count, serviceProxyHealthy: healthy });
});

describe('which servers there are', () => {
  test('what stays the same is left alone, with its count', async () => {
    const { servers, lines } = stage();
    const port = await freePort();
    await servers.sync(new Map([['a/b', port]]), new Map([['a/b', 4]]));
    await servers.syncServices(new Map([['a/b', port]]));
    expect((await ask(port, '/')).headers['x-load-balancing-endpoint-weight']).toBe('4');
    expect(lines).toHaveLength(1);
  });

  test('two services change ports with each other', async () => {
    const { servers, failures } = stage();
    const [one, two] = [await freePort(), await freePort()];
    await servers.syncServices(
      new Map([
        ['a/one', one],
        ['a/two', two],
      ]),
    );
    await servers.syncServices(
      new Map([
        ['a/one', two],
        ['a/two', one],
      ]),
    );
    expect(failures).toEqual([]);
    expect((await ask(two, '/')).body).toContain('"name": "one"');
  });

  test('changes that come while ports are opened wait for their turn', async () => {
    const { servers } = stage();
    const port = await freePort();
    const ports = new Map([['a/b', port]]);
    await Promise.all([
      servers.syncServices(ports),
      servers.syncServices(new Map()),
      servers.syncServices(ports),
      servers.syncEndpoints(new Map([['a/b', 1]])),
    ]);
    expect((await ask(port, '/')).status).toBe(200);
  });
});

describe('a port that somebody else has', () => {
  test('on one of several addresses: none is kept', async () => {
    const held = await holdPort(0, '127.0.0.2');
    const { servers, failures } = stage({ addresses: [ip('127.0.0.1'), ip('127.0.0.2')] });
    await servers.syncServices(new Map([['a/b', held.port]]));
    expect(failures).toHaveLength(1);
    await refused(held.port, '127.0.0.1');
    await held.free();
  });
});

describe('where they listen', () => {
  test('on all addresses of one family: both can have the same port', async (context) => {
    requireIpv6(context);
    const four = stage({ addresses: 'all' });
    const six = stage({ family: 'IPv6', addresses: 'all' });
    const port = await freePort();
    await six.servers.syncServices(new Map([['a/b', port]]));
    await refused(port);
    await four.servers.sync(new Map([['a/b', port]]), new Map([['a/b', 1]]));
    expect([...six.failures, ...four.failures]).toEqual([]);
    expect((await ask(port, '/')).status).toBe(200);
    expect((await ask(port, '/', { host: '::1' })).status).toBe(503);
  });

  const own = [ip('127.0.0.1'), ip('192.0.2.1'), ip('198.51.100.7')];
  test.each([
    ['all', 'all'],
    [[cidr('192.0.2.0/24')], ['192.0.2.1']],
    [
      [cidr('127.0.0.0/8'), cidr('192.0.2.1/32')],
      ['127.0.0.1', '192.0.2.1'],
    ],
    [[cidr('203.0.113.0/24')], []],
  ] as const)('node ports on %s: %s', (ranges, expected) => {
    expect(healthCheckAddresses({ ranges, loopback: false }, own)).toEqual(expected);
  });
});

describe('other addresses', () => {
  test('the sockets follow: one that stays is left alone, with its connections', async () => {
    const { servers } = stage({ addresses: [ip('127.0.0.1'), ip('127.0.0.2')] });
    const port = await freePort();
    const ports = new Map([['a/b', port]]);
    const counts = new Map([['a/b', 1]]);
    await servers.sync(ports, counts);
    servers.setAddresses([ip('127.0.0.2'), ip('127.0.0.3')]);
    await servers.sync(ports, counts);
    await refused(port);
    expect((await ask(port, '/', { host: '127.0.0.2' })).status).toBe(200);
    expect((await ask(port, '/', { host: '127.0.0.3' })).status).toBe(200);
    servers.setAddresses('all');
    await servers.sync(ports, counts);
    expect((await ask(port, '/', { host: '127.0.0.4' })).status).toBe(200);
    servers.setAddresses([ip('127.0.0.1')]);
    await servers.sync(ports, counts);
    await refused(port, '127.0.0.4');
    expect((await ask(port, '/')).status).toBe(200);
  });

  test('one that cannot be had is tried again, and the others are served meanwhile', async () => {
    const { servers, failures } = stage();
    const port = await freePort();
    const ports = new Map([['a/b', port]]);
    await servers.sync(ports, new Map([['a/b', 1]]));
    servers.setAddresses([ip('127.0.0.1'), ip('192.0.2.1')]);
    await servers.sync(ports, new Map([['a/b', 1]]));
    expect(servers.hasFailures).toBe(true);
    expect(failures.map(({ error }) => String(error))).toEqual([expect.stringContaining('EADDRNOTAVAIL')]);
    expect((await ask(port, '/')).status).toBe(200);
    servers.setAddresses([ip('127.0.0.1')]);
    await servers.sync(ports, new Map([['a/b', 1]]));
    expect(servers.hasFailures).toBe(false);
  });
});
