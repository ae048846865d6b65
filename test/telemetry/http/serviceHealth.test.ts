import { afterEach, describe, expect, test } from 'vitest';
import {
  healthCheckAddresses,
  type HealthCheckFailure,
  type ServiceHealthOptions,
  ServiceHealthServers,
} from '../../../src/telemetry/http/healthCheckNodePorts.ts';
import { cidr, ip } from '../../plan/given.ts';
import { ask, freePort, holdPort, keptLog, type Reply, requireIpv6 } from './support.ts';

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

describe('the answer', () => {
  test('the bytes that kube-proxy sends', async () => {
    const { servers } = stage();
    const port = await freePort();
    await servers.sync(new Map([['shop/web', port]]), new Map([['shop/web', 2]]));
    const { status, headers, body } = await ask(port, '/');
    expect(status).toBe(200);
    expect(body).toBe(
      '{\n\t"service": {\n\t\t"namespace": "shop",\n\t\t"name": "web"\n\t},\n\t"localEndpoints": 2,\n\t"serviceProxyHealthy": true\n}',
    );
    expect(headers['content-type']).toBe('application/json');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['x-load-balancing-endpoint-weight']).toBe('2');
    expect(headers['content-length']).toBe(String(body.length));
  });

  test.each([
    [1, true, 200],
    [0, true, 503],
    [3, false, 503],
    [0, false, 503],
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

  test('every path and method', async () => {
    const { servers } = stage();
    const port = await freePort();
    await servers.sync(new Map([['a/b', port]]), new Map([['a/b', 1]]));
    const replies: Reply[] = [];
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const headers = { 'content-length': 1 };
      replies.push(await ask(port, `/any/${method}?x`, { method, headers, body: 'x' }));
    }
    expect(new Set(replies.map(({ status, body }) => `${status} ${body}`)).size).toBe(1);
    expect((await ask(port, '/', { method: 'HEAD' })).status).toBe(200);
  });
});

describe('which servers there are', () => {
  test('those of the services that are there', async () => {
    const { servers, lines } = stage();
    const [one, two] = [await freePort(), await freePort()];
    await servers.sync(new Map([['a/one', one]]), new Map([['a/one', 1]]));
    await servers.syncServices(new Map([['a/two', two]]));
    await refused(one);
    expect((await ask(two, '/')).status).toBe(503);
    await servers.close();
    await refused(two);
    expect(lines).toEqual([
      `{"level":"info","msg":"Opening healthcheck","service":"a/one","port":${one}}`,
      `{"level":"info","msg":"Closing healthcheck","service":"a/one","port":${one}}`,
      `{"level":"info","msg":"Opening healthcheck","service":"a/two","port":${two}}`,
      `{"level":"info","msg":"Closing healthcheck","service":"a/two","port":${two}}`,
    ]);
  });

  test('what stays the same is left alone, with its count', async () => {
    const { servers, lines } = stage();
    const port = await freePort();
    await servers.sync(new Map([['a/b', port]]), new Map([['a/b', 4]]));
    await servers.syncServices(new Map([['a/b', port]]));
    expect((await ask(port, '/')).headers['x-load-balancing-endpoint-weight']).toBe('4');
    expect(lines).toHaveLength(1);
  });

  test('another port is another server, whose count is not known yet', async () => {
    const { servers } = stage();
    const [before, after] = [await freePort(), await freePort()];
    await servers.sync(new Map([['a/b', before]]), new Map([['a/b', 4]]));
    await servers.syncServices(new Map([['a/b', after]]));
    await refused(before);
    expect((await ask(after, '/')).status).toBe(503);
    await servers.syncEndpoints(new Map([['a/b', 4]]));
    expect((await ask(after, '/')).status).toBe(200);
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

  test('counts: absent is none, unknown services are no harm', async () => {
    const { servers } = stage();
    const port = await freePort();
    await servers.sync(
      new Map([['a/b', port]]),
      new Map([
        ['a/b', 1],
        ['x/y', 7],
      ]),
    );
    await servers.syncEndpoints(new Map([['x/y', 7]]));
    expect((await ask(port, '/')).headers['x-load-balancing-endpoint-weight']).toBe('0');
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
  test('is told, left, and tried again at the next sync', async () => {
    const { servers, failures, lines } = stage();
    const held = await holdPort();
    const free = await freePort();
    const ports = new Map([
      ['a/taken', held.port],
      ['a/free', free],
    ]);
    await servers.sync(
      ports,
      new Map([
        ['a/taken', 1],
        ['a/free', 1],
      ]),
    );
    expect(servers.hasFailures).toBe(true);
    expect(failures).toEqual([
      {
        service: 'a/taken',
        port: held.port,
        error: expect.objectContaining({
          message: `listen EADDRINUSE: address already in use 127.0.0.1:${held.port}`,
        }),
      },
    ]);
    expect(lines.join('\n')).toContain('"level":"error","msg":"Failed to start healthcheck","node":"node1"');
    expect((await ask(free, '/')).status).toBe(200);

    await held.free();
    await servers.sync(
      ports,
      new Map([
        ['a/taken', 1],
        ['a/free', 1],
      ]),
    );
    expect(servers.hasFailures).toBe(false);
    expect((await ask(held.port, '/')).status).toBe(200);
  });

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
  test('on the given addresses', async () => {
    const { servers } = stage({ addresses: [ip('127.0.0.2'), ip('127.0.0.3')] });
    const port = await freePort();
    await servers.syncServices(new Map([['a/b', port]]));
    expect((await ask(port, '/', { host: '127.0.0.2' })).status).toBe(503);
    expect((await ask(port, '/', { host: '127.0.0.3' })).status).toBe(503);
    await refused(port);
  });

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
